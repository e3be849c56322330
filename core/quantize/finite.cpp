#include "core/quantize/finite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace dlc::quantization {

std::string not_finite(const Tensor& t) {
  if (t.dtype() != kF32) return {};
  const auto values = t.as<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    std::vector<int64_t> at(t.shape().size());
    auto rest = static_cast<int64_t>(i);
    for (size_t d = at.size(); d-- > 0; rest /= t.shape()[d]) at[d] = rest % t.shape()[d];
    const char* what = std::isnan(values[i]) ? "nan" : values[i] < 0 ? "-inf" : "inf";
    return fmt::format("{} at [{}]", what, fmt::join(at, ","));
  }
  return {};
}

Result<> check_constants(const Graph& g, const Plan& plan) {
  for (const Layer& l : plan.layers) {
    if (l.weight_axis < 0) continue;
    for (const ValueId v : g.node(l.root).inputs) {
      if (v == kNoValue || !g.value(v).constant) continue;
      if (const std::string what = not_finite(*g.value(v).constant); !what.empty())
        return fail({{}, 0, 0, name_of(g, l.root)}, fmt::format("its constant '{}' is {}", g.value(v).name, what),
                    fmt::format("--keep {} leaves the node in float", name_of(g, l.root)));
    }
  }
  return {};
}

}  // namespace dlc::quantization
