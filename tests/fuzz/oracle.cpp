#include "tests/fuzz/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/passes/rebuild.h"

namespace dlc::fuzz {

void Oracle::set(ValueId v, const Tensor& t) {
  const auto& shape = g_.value(v).type.shape;
  for (size_t d = 0; d < shape.size(); ++d)
    if (const auto symbol = shape[d].as_symbol()) symbols_.insert_or_assign(std::string(*symbol), t.shape()[d]);
  values_[v] = bound_tensor(t);
}

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
  DLC_TRY(const Kernel kernel, g_.record_set().instantiate(record, operands, n.attrs, g_.symbols));
  DLC_TRY(auto results, walk(kernel, inputs, kMostWork, symbols_));
  for (size_t r = 0; r < results.size(); ++r) values_[n.outputs[r]] = std::move(results[r]);
  return {};
}

bool is_meaningful(DType t, const Number& x) {
  if (!x.is_usable() || !t.is_float() || x.exact()) return x.is_usable();
  const double share = t.bits <= 8 ? 0.5 : t == kBF16 ? 0.25 : t == kF16 ? 0.05 : 0.02;
  return x.error < share * (std::abs(x.v) + 0.01);
}

bool is_meaningful(const BoundTensor& t) {
  return std::ranges::all_of(t.elements, [&](const Number& x) { return is_meaningful(t.dtype, x); });
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
