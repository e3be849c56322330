#include "tests/fuzz/oracle.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>

#include "core/graph/extern_ops.h"
#include "core/passes/rebuild.h"

namespace dlc::fuzz {

namespace {

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double epsilon(DType t) {
  if (t == kF16) return 0x1p-11;
  if (t == kBF16) return 0x1p-8;
  return t == kF64 ? 0x1p-50 : 0x1p-24;
}

// Below this a type has no more digits.
double floor_of(DType t) { return t == kF16 ? 0x1p-24 : t == kF64 ? 1e-300 : 1e-36; }

bool exact(double x, DType t) {
  if (x == 0 || !std::isfinite(x)) return true;
  if (std::abs(x) > 2048 || x * 64 != std::round(x * 64)) return false;
  if (t == kBF16) return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x)))) == x;
  return t != kF16 || static_cast<double>(f16_to_f32(f32_to_f16(static_cast<float>(x)))) == x;
}

// What noise on the inputs does to a result; jumps are no errors of this size.
void add_errors(const Tensor& base, const Tensor& shaken, std::vector<double>& errors) {
  if (!base.dtype().is_float() || shaken.shape() != base.shape()) return;
  errors.resize(static_cast<size_t>(base.elements()));
  for (int64_t i = 0; i < base.elements(); ++i) {
    const double d = std::abs(shaken.get_double(i) - base.get_double(i));
    if (d < 0.02 * (std::abs(base.get_double(i)) + 0.01))
      errors[static_cast<size_t>(i)] = std::max(errors[static_cast<size_t>(i)], d);
  }
}

}  // namespace

void Oracle::set(ValueId v, const Tensor& t) {
  const Tensor wide = t.dtype().is_float() ? t.cast(kF64).value() : t;
  values_[v] = Ensemble(kMembers, wide);
}

Ensemble Oracle::noisy(ValueId v, uint64_t salt, const std::vector<double>& error) const {
  Ensemble e = values_.at(v);
  const DType type = g_.value(v).type.dtype;
  if (!type.is_float()) return e;
  for (size_t m = 1; m < e.size(); ++m) {
    auto elements = e[m].as_mutable<double>();
    for (size_t i = 0; i < elements.size(); ++i) {
      if (exact(elements[i], type)) continue;
      const double size = std::max(epsilon(type) * std::abs(elements[i]), i < error.size() ? error[i] : 0);
      elements[i] +=
          mix(seed_ + salt * 0x9e3779b97f4a7c15u + mix(static_cast<uint64_t>(v) * kMembers + m) + i) & 1 ? size : -size;
    }
  }
  return e;
}

// Every element with noise, exact or not: rounding inside an op has the size of what it reads.
Tensor Oracle::shaken(const Tensor& t, DType type, uint64_t salt) const {
  Tensor x = t;
  if (!type.is_float()) return x;
  auto elements = x.as_mutable<double>();
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] *= 1 + epsilon(type) * (mix(seed_ + salt * 0x9e3779b97f4a7c15u + i) & 1 ? 1 : -1);
  return x;
}

const Ensemble& Oracle::leaf_or_value(ValueId v) {
  if (!values_.contains(v)) set(v, *g_.value(v).constant);
  return values_.at(v);
}

Result<std::vector<Tensor>> Oracle::evaluate(const Node& n, const std::vector<Tensor>& inputs,
                                             double attr_noise) const {
  const Record& record = *g_.record_set().find(n.op);
  std::vector<std::optional<TensorType>> types;
  for (const Tensor& t : inputs) types.push_back(t.is_valid() ? std::optional(type_of(t)) : std::nullopt);
  Attrs attrs = n.attrs;
  for (auto& [name, a] : attrs) {
    if (auto* t = std::get_if<DType>(&a); t && t->is_float()) *t = kF64;
    if (auto* x = std::get_if<double>(&a)) *x *= 1 + attr_noise;
    if (auto* list = std::get_if<std::vector<double>>(&a))
      for (double& x : *list) x *= 1 + attr_noise;
  }
  if (record.is_extern()) return find_extern_op(n.op)(inputs, attrs);
  DLC_TRY(const auto operands, group_operands(record, types, {}));
  DLC_TRY(const Kernel kernel, g_.record_set().instantiate(record, operands, attrs));
  std::vector<Tensor> given = inputs;
  given.resize(kernel.inputs.size());  // absent operands at the end
  return run_kernel(kernel, given, {.floats_as_double = true, .tree_walk = true});
}

Result<> Oracle::run(NodeId id) {
  const Node& n = g_.node(id);
  const auto salt = static_cast<uint64_t>(id) + 1;
  std::map<ValueId, Ensemble> arguments;
  for (const ValueId v : n.inputs)
    if (v != kNoValue && !arguments.contains(v)) {
      leaf_or_value(v);
      arguments[v] = noisy(v, salt, {});
    }
  const auto inputs = [&](const std::function<Tensor(ValueId)>& of) {
    std::vector<Tensor> list;
    for (const ValueId v : n.inputs) list.push_back(v == kNoValue ? Tensor() : of(v));
    return list;
  };
  std::vector<Ensemble> results(n.outputs.size());
  for (size_t m = 0; m < kMembers; ++m) {
    DLC_TRY(auto out, evaluate(n, inputs([&](ValueId v) { return arguments[v][m]; }), 0));
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(std::move(out[r]));
  }
  std::vector<std::vector<double>> errors(n.outputs.size());
  for (uint64_t shake = 0; shake < 2; ++shake) {
    const auto again = evaluate(n, inputs([&](ValueId v) {
                                  return shaken(arguments[v][0], g_.value(v).type.dtype,
                                                salt * 64 + shake + static_cast<uint64_t>(v) * 4096);
                                }),
                                shake == 0 ? 0x1p-21 : -0x1p-21);
    for (size_t r = 0; again && r < results.size(); ++r) add_errors(results[r][0], (*again)[r], errors[r]);
  }
  for (size_t r = 0; r < results.size(); ++r) {
    values_[n.outputs[r]] = std::move(results[r]);
    values_[n.outputs[r]] = noisy(n.outputs[r], 0, errors[r]);
  }
  return {};
}

Expectation expectation(DType dtype, const Ensemble& e) {
  Expectation x{dtype, e[0].shape(), {}, {}, {}};
  for (int64_t i = 0; i < e[0].elements(); ++i) {
    bool same_shape = true;
    for (const Tensor& t : e) same_shape &= t.shape() == e[0].shape();
    if (!dtype.is_float()) {
      bool stable = same_shape;
      for (const Tensor& t : e) stable = stable && t.get_int(i) == e[0].get_int(i);
      x.integer.push_back(e[0].get_int(i));
      x.tolerance.push_back(stable ? 0 : -1);
      continue;
    }
    const double base = e[0].get_double(i);
    double spread = 0;
    bool special = !std::isfinite(base), stable = same_shape;
    for (const Tensor& t : e) {
      if (!stable) break;
      const double y = t.get_double(i);
      if (special || !std::isfinite(y))
        stable = stable && (y == base || (std::isnan(y) && std::isnan(base)));
      else
        spread = std::max(spread, std::abs(y - base));
    }
    // A jump: much more than rounding does to a result of this size.
    if (!special && spread > std::max(0.02, 16 * epsilon(dtype)) * (std::abs(base) + 0.01)) stable = false;
    x.value.push_back(base);
    x.tolerance.push_back(!stable   ? -1
                          : special ? 0
                                    : kFactor * spread + 16 * epsilon(dtype) * std::abs(base) + 4 * floor_of(dtype));
  }
  return x;
}

Result<std::vector<Expectation>> expectations(const Sample& s, uint64_t seed) {
  Oracle oracle(s.graph, seed);
  for (size_t i = 0; i < s.inputs.size(); ++i) oracle.set(s.graph.inputs[i], s.inputs[i]);
  for (const NodeId n : s.graph.order()) DLC_CHECK(oracle.run(n));
  std::vector<Expectation> all;
  for (const ValueId v : s.graph.outputs) {
    if (s.graph.value(v).constant) oracle.set(v, *s.graph.value(v).constant);
    all.push_back(expectation(s.graph.value(v).type.dtype, oracle.at(v)));
  }
  return all;
}

std::optional<std::string> difference(const Expectation& want, const Tensor& got) {
  if (got.shape() != want.shape)
    return fmt::format("shape {} expected, {} computed", to_string(want.dtype, want.shape),
                       to_string(got.dtype(), got.shape()));
  for (int64_t i = 0; i < got.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    const double tolerance = want.tolerance[at];
    if (tolerance < 0) continue;
    if (!want.dtype.is_float()) {
      if (got.get_int(i) != want.integer[at])
        return fmt::format("element {}: {} expected, {} computed", i, want.integer[at], got.get_int(i));
      continue;
    }
    const double a = want.value[at], b = got.get_double(i);
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance;
    if (!same) return fmt::format("element {}: {} expected, {} computed, may differ by {:.2g}", i, a, b, tolerance);
  }
  return std::nullopt;
}

Result<Sample> with_constant_shapes(const Sample& s) {
  Edits edits = no_edits(s.graph);
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const auto& shape = s.graph.value(s.graph.inputs[i]).type.shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (const auto symbol = shape[d].as_symbol())
        edits.symbols.insert_or_assign(std::string(*symbol), Expr(s.inputs[i].shape()[d]));
  }
  return rebuild(s, edits);
}

}  // namespace dlc::fuzz
