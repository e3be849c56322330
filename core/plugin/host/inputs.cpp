// The tensors a run is given, against what the model wants.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "core/plugin/host/ports.h"
#include "dlc/base/checked.h"

namespace dlc {

namespace {

// For the two things that most often do not fit: many samples at once, and another type.
std::string next_step(const Tensor& t, const TensorType& type) {
  const auto dims = static_cast<int64_t>(type.shape.size());
  if (const DType kept = numpy_type(type.dtype); t.dtype() != type.dtype)
    return kept == type.dtype
               ? fmt::format("convert it to {}", to_string(kept))
               : fmt::format("give its {} as {}", type.dtype.is_float() ? "bits" : "values", to_string(kept));
  if (static_cast<int64_t>(t.shape().size()) != dims || dims == 0 || !type.shape[0].is(1)) return {};
  for (int64_t d = 1; d < dims; ++d)
    if (const auto n = type.shape[static_cast<size_t>(d)].constant(); n && *n != t.shape()[static_cast<size_t>(d)])
      return {};
  return fmt::format("dlc run --each runs the model once for each of the {}", t.shape()[0]);
}

// The first element of an array as files hold the type, that is none of it.
std::optional<int64_t> foreign_element(const Tensor& t, DType type) {
  if (t.dtype() == type || t.dtype() != numpy_type(type)) return std::nullopt;
  for (int64_t i = 0; i < t.elements(); ++i)
    if (const int64_t v = t.get_int(i); type.is_float() ? v >> type.bits != 0 : wrap_to(type, v) != v) return i;
  return std::nullopt;
}

constexpr size_t kMostNames = 8;  // in one message

std::string describe(std::span<const Port> ports) {
  if (ports.empty()) return "none";
  std::string s;
  for (const Port& p : ports) s += fmt::format("{}{}: {}", s.empty() ? "" : ", ", p.name, to_string(p.type));
  return s;
}

}  // namespace

std::optional<std::string> detail::mismatch(const TensorType& type, const Tensor& t, Bindings& symbols) {
  if (t.dtype() != type.dtype || t.shape().size() != type.shape.size()) return "";
  for (size_t d = 0; d < t.shape().size(); ++d) {
    const Expr& want = type.shape[d];
    if (const auto s = want.as_symbol(); s && !symbols.contains(*s)) symbols[std::string(*s)] = t.shape()[d];
    const auto known = evaluate(want, symbols);
    if (known && *known != t.shape()[d])
      return want.constant() ? "" : fmt::format(" with {} = {}", to_string(want), *known);
  }
  return {};
}

Result<std::vector<Tensor>> bind_inputs(std::span<const Port> ports, const Ranges& symbols, const NamedTensors& given) {
  std::vector<Tensor> out;
  Bindings values;
  const bool nameless = given.size() == 1 && ports.size() == 1 && given[0].first.empty();
  for (const Port& p : ports) {
    const auto it = std::ranges::find_if(given, [&](const auto& g) { return nameless || g.first == p.name; });
    if (it == given.end()) {
      std::string has;
      for (size_t i = 0; i < std::min(given.size(), kMostNames); ++i) has += (i == 0 ? "" : ", ") + given[i].first;
      if (given.size() > kMostNames) has += fmt::format(" and {} more", given.size() - kMostNames);
      return fail({}, fmt::format("input '{}' is missing: the model takes {}", p.name, describe(ports)),
                  given.empty() ? "give it with --input x.npz"
                                : fmt::format("given were {}; in an .npz the names are the model's", has));
    }
    if (std::ranges::count(given, it->first, &NamedTensors::value_type::first) > 1)
      return fail({}, fmt::format("input '{}' is given twice", p.name));
    const Tensor t = unpacked(it->second, p.type.dtype);
    if (const auto i = foreign_element(t, p.type.dtype))
      return fail({}, fmt::format("element {} of input '{}' is {}, which is no {}", *i, p.name, t.get_int(*i),
                                  to_string(p.type.dtype)));
    if (const auto why = detail::mismatch(p.type, t, values))
      return fail({},
                  fmt::format("input '{}' is {}, the model takes {}{}", p.name, to_string(t.dtype(), t.shape()),
                              to_string(p.type), *why),
                  next_step(t, p.type));
    out.push_back(t);
  }
  for (const auto& [name, t] : given)
    if (!nameless && std::ranges::none_of(ports, [&](const Port& p) { return p.name == name; }))
      return fail({}, fmt::format("the model has no input '{}': it takes {}", name, describe(ports)));
  for (const auto& [name, value] : values) {
    const auto r = symbols.find(name);
    if (r == symbols.end()) continue;
    const bool has_upper = r->second.upper != nullptr;  // S in 1..7 - P
    const int64_t lo = r->second.bounds.lo,
                  hi = has_upper ? bounds(Expr(r->second.upper), symbols).hi : r->second.bounds.hi;
    // Beyond an upper bound that depends on others is for those who know them.
    if (value < lo || value > r->second.bounds.hi)
      return fail(
          {},
          fmt::format("dim {} is {}, the model takes {} to {}", name, value, lo,
                      has_upper ? to_string(Expr(r->second.upper)) : std::to_string(hi)),
          fmt::format("compile the model with --dim {}={}..{}", name, std::min(value, lo), std::max(value, hi)));
    if (value % r->second.divisible_by != 0)
      return fail({},
                  fmt::format("dim {} is {}, the model takes multiples of {}", name, value, r->second.divisible_by));
  }
  return out;
}

Result<std::vector<Tensor>> seeded_inputs(std::span<const Port> ports, const Ranges& symbols, const Bindings& dims,
                                          uint64_t seed) {
  Bindings values = dims;
  for (const auto& [name, r] : symbols) {
    const int64_t least = std::max<int64_t>(1, r.bounds.lo);
    const auto multiple = checked_mul(1 + (least - 1) / r.divisible_by, r.divisible_by);
    if (!multiple) return fail({}, fmt::format("dim {} has no value that fits 64 bits", name));
    values.try_emplace(name, *multiple);
  }
  std::mt19937_64 random(seed);
  std::vector<Tensor> out;
  for (const Port& p : ports) {
    std::vector<int64_t> shape;
    for (const Expr& d : p.type.shape) {
      const auto v = evaluate(d, values);
      if (!v) return fail({}, fmt::format("dim {} of input '{}' is not known", to_string(d), p.name));
      shape.push_back(*v);
    }
    DLC_TRY(Tensor t, Tensor::make(p.type.dtype, shape));
    const bool is_float = p.type.dtype.is_float(), is_wide = p.type.dtype.bits > 8;
    const bool is_power = p.type.dtype == kF8E8M0;  // has no other numbers than positive ones
    const int64_t lo = is_float || is_wide ? 0 : p.type.dtype.min_value();
    const int64_t hi = is_float || is_wide ? 1 : p.type.dtype.max_value();
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (is_float)
        t.set_double(i, static_cast<double>(random() >> 11) * 0x1p-52 - (is_power ? 0 : 1));
      else
        t.set_int(i, lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1)));
    }
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace dlc
