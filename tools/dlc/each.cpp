#include "tools/dlc/each.h"

#include <fmt/format.h>

#include <cstring>

namespace dlc::cli {

Result<int64_t> sample_count(const NamedTensors& given) {
  int64_t count = -1;
  for (const auto& [name, t] : given) {
    const int64_t n = t.rank() > 0 ? t.shape()[0] : 0;
    if (n < 1)
      return fail({}, fmt::format("input {} has no samples: {}", name, to_string(t.dtype(), t.shape())),
                  "the samples lie along the leading dim");
    if (count >= 0 && n != count)
      return fail({}, fmt::format("input {} has {} samples, another has {}", name, n, count),
                  "give as many of each along the leading dim");
    count = n;
  }
  if (count < 0) return fail({}, "--each needs --input");
  return count;
}

Result<NamedTensors> sample(const NamedTensors& given, int64_t i) {
  NamedTensors out;
  for (const auto& [name, t] : given) {
    std::vector<int64_t> shape = t.shape();
    shape[0] = 1;
    DLC_TRY(Tensor one, Tensor::make(t.dtype(), std::move(shape)));
    std::memcpy(one.mutable_bytes(), t.bytes() + static_cast<size_t>(i) * one.byte_size(), one.byte_size());
    out.emplace_back(name, std::move(one));
  }
  return out;
}

Result<> Stacked::add(const std::vector<Tensor>& results, int64_t index, int64_t count) {
  for (size_t r = 0; r < results.size(); ++r) {
    const Tensor& t = results[r];
    if (index == 0) {
      std::vector<int64_t> shape = t.shape();
      if (shape.empty() || shape[0] != 1)
        return fail({}, fmt::format("result {} has no leading dim of 1 to stack along", r));
      shape[0] = count;
      DLC_TRY(Tensor all, Tensor::make(t.dtype(), std::move(shape)));
      all_.push_back(std::move(all));
    }
    if (t.byte_size() * static_cast<size_t>(count) != all_[r].byte_size())
      return fail({}, fmt::format("result {} changes its shape between samples", r));
    std::memcpy(all_[r].mutable_bytes() + static_cast<size_t>(index) * t.byte_size(), t.bytes(), t.byte_size());
  }
  return {};
}

}  // namespace dlc::cli
