#include "core/graph/bind.h"

#include <algorithm>

namespace dlc {

namespace {

Result<> bind_symbol(const std::string& what, std::string_view symbol, int64_t value, const Ranges& ranges,
                     Bindings& bindings) {
  if (auto range = ranges.find(symbol); range != ranges.end()) {
    const Range& r = range->second;
    if (value < r.bounds.lo || value > r.bounds.hi || value % r.divisible_by != 0) {
      std::string allowed = (r.bounds.lo == Interval::kNegInf ? "" : std::to_string(r.bounds.lo)) + ".." +
                            (r.bounds.hi == Interval::kPosInf ? "" : std::to_string(r.bounds.hi));
      if (r.divisible_by != 1) allowed += " by " + std::to_string(r.divisible_by);
      return fail({}, what + " makes " + std::string(symbol) + " = " + std::to_string(value) +
                          ", which is outside its range " + allowed);
    }
  }
  bindings.emplace(symbol, value);
  return {};
}

// The symbol of e without a value, when there is exactly one and e is affine in it with a constant coefficient.
std::optional<std::pair<std::string, int64_t>> solve(const Expr& e, int64_t value, const Bindings& bindings) {
  std::string unknown;
  for (auto& s : e.symbols()) {
    if (bindings.contains(s)) continue;
    if (!unknown.empty()) return std::nullopt;
    unknown = s;
  }
  if (unknown.empty()) return std::nullopt;
  auto form = affine(e, std::span(&unknown, 1));
  if (!form) return std::nullopt;
  auto base = evaluate(form->base, bindings), coefficient = evaluate(form->coefficients[0], bindings);
  if (!base || !coefficient || *coefficient == 0 || (value - *base) % *coefficient != 0) return std::nullopt;
  return std::pair(unknown, (value - *base) / *coefficient);
}

}  // namespace

Result<> bind_shown(const std::string& what, const TensorType& type, std::span<const int64_t> shape,
                    const Ranges& ranges, Bindings& bindings) {
  for (size_t i = 0; i < std::min(shape.size(), type.shape.size()); ++i)
    if (auto s = type.shape[i].as_symbol(); s && !bindings.contains(*s))
      DLC_CHECK(bind_symbol(what, *s, shape[i], ranges, bindings));
  return {};
}

Result<> bind_shape(const std::string& what, const TensorType& type, std::span<const int64_t> shape,
                    const Ranges& ranges, Bindings& bindings) {
  const auto mismatch = [&] {
    return fail({}, what + " is " + to_string(type.dtype, shape) + ", which does not fit " + to_string(type));
  };
  if (type.shape.size() != shape.size()) return mismatch();
  DLC_CHECK(bind_shown(what, type, shape, ranges, bindings));
  for (size_t i = 0; i < shape.size(); ++i)
    if (auto solved = solve(type.shape[i], shape[i], bindings))
      DLC_CHECK(bind_symbol(what, solved->first, solved->second, ranges, bindings));
  for (size_t i = 0; i < shape.size(); ++i)
    if (evaluate(type.shape[i], bindings) != shape[i]) {
      auto error = mismatch();
      std::string values;
      for (const auto& s : type.shape[i].symbols())
        if (auto b = bindings.find(s); b != bindings.end())
          values += (values.empty() ? "" : ", ") + s + " = " + std::to_string(b->second);
      if (!values.empty()) error.error().diagnostics[0].message += " with " + values;
      return error;
    }
  return {};
}

Result<Attrs> concrete_attrs(const Attrs& attrs, const Bindings& bindings, const Loc& where) {
  Attrs result = attrs;
  for (auto& [name, value] : result) {
    const auto make_concrete = [&](Expr& e) -> Result<> {
      auto v = evaluate(e, bindings);
      if (!v) return fail(where, "attribute " + name + " = " + to_string(e) + " has no value here");
      e = Expr(*v);
      return {};
    };
    if (auto* e = std::get_if<Expr>(&value)) DLC_CHECK(make_concrete(*e));
    if (auto* list = std::get_if<std::vector<Expr>>(&value))
      for (Expr& e : *list) DLC_CHECK(make_concrete(e));
  }
  return result;
}

Attrs known_attrs(const Attrs& attrs, const Bindings& bindings) {
  Attrs known;
  for (const auto& [name, value] : attrs)
    if (auto concrete = concrete_attrs({{name, value}}, bindings, {})) known.insert(concrete->begin(), concrete->end());
  return known;
}

}  // namespace dlc
