#include "tests/fuzz/oracle.h"

#include <fmt/format.h>

#include <cmath>

#include "core/passes/rebuild.h"

namespace dlc::fuzz {

Result<> Oracle::run(NodeId id) {
  const Node& n = g_.node(id);
  const Record& record = *g_.record_set().find(n.op);
  if (record.is_extern()) return fail({}, "no kernel states " + n.op);
  std::vector<std::optional<TensorType>> types;
  std::vector<const BoundTensor*> inputs;
  for (const ValueId v : n.inputs) {
    types.push_back(v == kNoValue ? std::nullopt : std::optional(g_.value(v).type));
    if (v != kNoValue && !values_.contains(v)) set(v, *g_.value(v).constant);
    inputs.push_back(v == kNoValue ? nullptr : &values_.at(v));
  }
  DLC_TRY(const auto operands, group_operands(record, types, {}));
  DLC_TRY(const Kernel kernel, g_.record_set().instantiate(record, operands, n.attrs));
  DLC_TRY(auto results, walk(kernel, inputs));
  for (size_t r = 0; r < results.size(); ++r) values_[n.outputs[r]] = std::move(results[r]);
  return {};
}

bool is_meaningful(DType t, const Number& x) {
  if (!x.is_usable() || !t.is_float() || x.exact()) return x.is_usable();
  const double share = t.bits <= 8 ? 0.5 : t == kBF16 ? 0.25 : t == kF16 ? 0.05 : 0.02;
  return x.error < share * (std::abs(x.v) + 0.01);
}

Result<std::vector<BoundTensor>> expectations(const Sample& s) {
  Oracle oracle(s.graph);
  for (size_t i = 0; i < s.inputs.size(); ++i) oracle.set(s.graph.inputs[i], s.inputs[i]);
  for (const NodeId n : s.graph.order()) DLC_CHECK(oracle.run(n));
  std::vector<BoundTensor> all;
  for (const ValueId v : s.graph.outputs) {
    if (s.graph.value(v).constant) oracle.set(v, *s.graph.value(v).constant);
    all.push_back(oracle.at(v));
  }
  return all;
}

std::optional<std::string> difference(const BoundTensor& want, const Tensor& got) {
  if (got.shape() != want.shape)
    return fmt::format("shape {} expected, {} computed", to_string(want.dtype, want.shape),
                       to_string(got.dtype(), got.shape()));
  for (int64_t i = 0; i < got.elements(); ++i) {
    const Number& x = want.elements[static_cast<size_t>(i)];
    if (!x.is_usable()) continue;
    if (!want.dtype.is_float()) {
      if (got.get_int(i) != x.i) return fmt::format("element {}: {} expected, {} computed", i, x.i, got.get_int(i));
      continue;
    }
    const double y = got.get_double(i), tolerance = kForms * x.error;
    const bool same = x.v == y || (std::isnan(x.v) && std::isnan(y)) || std::abs(x.v - y) <= tolerance;
    if (!same) return fmt::format("element {}: {} expected, {} computed, may differ by {:.2g}", i, x.v, y, tolerance);
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
