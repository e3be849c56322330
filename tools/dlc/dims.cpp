#include "tools/dlc/dims.h"

#include <fmt/format.h>

#include <charconv>

namespace dlc::cli {

namespace {

constexpr const char* kExample = "--dim N=1 or --dim S=1..512";

Result<int64_t> size(std::string_view text, const std::string& option) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || v < 0)
    return fail({}, fmt::format("--dim {}: '{}' is not a size", option, text), kExample);
  if (v > Tensor::max_bytes())
    return fail(
        {},
        fmt::format("--dim {}: {} is more than the {} bytes that a tensor may have", option, v, Tensor::max_bytes()),
        kExample);
  return v;
}

std::string range_text(const Range& r) {
  const auto& [lo, hi] = r.bounds;
  return fmt::format("{}..{}", lo == Interval::kNegInf ? "" : std::to_string(lo),
                     hi == Interval::kPosInf ? "" : std::to_string(hi));
}

}  // namespace

Result<Dims> parse_dims(const std::vector<std::string>& given) {
  Dims out;
  for (const std::string& d : given) {
    const size_t equals = d.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail({}, fmt::format("--dim {}: a name and a size are wanted", d), kExample);
    const std::string value = d.substr(equals + 1);
    const size_t dots = value.find("..");
    Interval r;
    DLC_TRY(r.lo, size(value.substr(0, dots), d));
    r.hi = r.lo;
    if (dots != std::string::npos) {
      DLC_TRY(r.hi, size(value.substr(dots + 2), d));
    }
    if (r.hi < r.lo) return fail({}, fmt::format("--dim {}: the range is empty", d), kExample);
    if (!out.emplace(d.substr(0, equals), r).second)
      return fail({}, fmt::format("--dim {}: the dim is given twice", d), kExample);
  }
  return out;
}

Bindings single_values(const Dims& dims) {
  Bindings out;
  for (const auto& [name, r] : dims)
    if (r.lo == r.hi) out.emplace(name, r.lo);
  return out;
}

Result<> check_dims(const Dims& dims, const Ranges& symbols, const std::string& file) {
  std::string all;
  std::vector<std::string> names;
  for (const auto& [name, r] : symbols) {
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", name, range_text(r));
    names.push_back(name);
  }
  for (const auto& [name, r] : dims) {
    const auto s = symbols.find(name);
    if (s == symbols.end()) {
      const std::string near = nearest(name, names);
      return fail({file, 0, 0, {}},
                  all.empty() ? fmt::format("--dim {}: the model has no symbolic dims", name)
                              : fmt::format("--dim {}: the model has no such dim, but {}", name, all),
                  near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
    const Range& range = s->second;
    if (r.lo < range.bounds.lo || r.hi > range.bounds.hi)
      return fail({file, 0, 0, {}}, fmt::format("--dim {}: {} is outside of the model's {}", name,
                                                r.lo == r.hi ? std::to_string(r.lo) : fmt::format("{}..{}", r.lo, r.hi),
                                                range_text(range)));
    if (r.lo == r.hi && r.lo % range.divisible_by != 0)
      return fail({file, 0, 0, {}}, fmt::format("--dim {}: {} is no multiple of {}", name, r.lo, range.divisible_by));
  }
  return {};
}

Result<> bind_dims(Graph& g, const Dims& dims, const std::string& file) {
  if (dims.empty()) return {};
  DLC_CHECK(check_dims(dims, g.symbols, file));
  std::map<std::string, Expr, std::less<>> values;
  for (const auto& [name, value] : single_values(dims)) values.emplace(name, Expr(value));
  const auto bind = [&](std::vector<Expr>& list) {
    for (Expr& e : list) e = substitute(e, values);
  };
  for (size_t v = 0; v < g.value_count(); ++v) bind(g.value(static_cast<ValueId>(v)).type.shape);
  for (const NodeId n : g.order())
    for (auto& [name, attr] : g.node(n).attrs) {
      if (auto* e = std::get_if<Expr>(&attr)) *e = substitute(*e, values);
      if (auto* list = std::get_if<std::vector<Expr>>(&attr)) bind(*list);
    }
  for (const auto& [name, r] : dims) {
    if (r.lo == r.hi)
      g.symbols.erase(name);
    else
      g.symbols.at(name).bounds = r;
  }
  for (auto& [name, r] : g.symbols)
    if (r.upper != nullptr) r.upper = substitute(Expr(r.upper), values).node();
  return verify(g);
}

}  // namespace dlc::cli
