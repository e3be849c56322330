// Ops that only move or select elements commute with quantisation: they work on the integers as they are. What an op
// does is read off its kernel, so that a reshape, a transpose, a slice and a max pool are all found by the same test.
//
//   max_pool(dequantize_linear(q))  ->  dequantize_linear(max_pool(q))    // order is kept: the scale is positive
//   quantize_linear(reshape(x))     ->  reshape(quantize_linear(x))
#include <algorithm>
#include <limits>

#include "core/numerics/kinds.h"
#include "core/numerics/rewriter.h"

namespace dlc::numerics {

namespace {

// A value that is one of the elements read: a read, the largest of some, the lowest number where there is none.
bool selects(const Val& v) {
  switch (v->kind) {
    case ValKind::read:
      return true;
    case ValKind::real:
      return v->real == -std::numeric_limits<double>::infinity();
    case ValKind::orelse:
      return selects(v->args[0]) && selects(v->args[1]);
    case ValKind::select:
      return selects(v->args[1]) && selects(v->args[2]);
    case ValKind::undef:
      return true;
    case ValKind::reduce:
      return (v->reduce_op() == ReduceOp::max || v->reduce_op() == ReduceOp::min) && selects(v->args[0]);
    case ValKind::call:
      return (v->fn() == Fn::max || v->fn() == Fn::min) && std::ranges::all_of(v->args, selects);
    default:
      return false;
  }
}

}  // namespace

Result<bool> moves(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (n.inputs.empty() || n.outputs.size() != 1 || n.inputs[0] == kNoValue) return false;
  if (n.inputs.size() > 1) {  // others say where the elements are
    const auto copy = as_copy(g, id);
    return copy && copy->from == n.inputs[0] && !g.value(copy->from).constant;
  }
  const Record* record = g.record_set().find(n.op);
  if (record == nullptr || record->is_extern()) return false;
  DLC_TRY(const Kernel k, g.kernel(id));
  return std::ranges::all_of(k.body, [](const Stmt& s) { return s.kind == Stmt::Kind::assign && selects(s.value); });
}

namespace {

// The same (de)quantize_linear on another value, which is no scalar: the axis does not matter for one scale, but must
// exist.
Result<ValueId> like(Graph& g, const Node& n, ValueId data, const std::vector<std::string>& locations) {
  std::vector<ValueId> inputs = n.inputs;
  inputs[0] = data;
  Attrs attrs = n.attrs;
  attrs["axis"] = Expr(0);
  DLC_TRY(const NodeId added, g.add_node(n.op, std::move(inputs), std::move(attrs), locations));
  return g.node(added).outputs[0];
}

Result<> sink_dequantize(Graph& g) {
  for (const NodeId id : g.order()) {
    DLC_TRY(const bool movement, moves(g, id));
    if (!movement) continue;
    const Node n = g.node(id);
    const NodeId source = g.value(n.inputs[0]).producer;
    if (source == kNoNode || g.node(source).op != "dequantize_linear" || !per_tensor(g, g.node(source))) continue;
    const Node dq = g.node(source);
    if (g.value(dq.inputs[0]).constant) continue;  // weights stay what they are
    if (g.value(n.outputs[0]).type.shape.empty()) continue;
    std::vector<ValueId> inputs = n.inputs;
    inputs[0] = dq.inputs[0];
    DLC_TRY(const NodeId moved, g.add_node(n.op, std::move(inputs), n.attrs, n.locations));
    DLC_TRY(const ValueId real, like(g, dq, g.node(moved).outputs[0], dq.locations));
    g.replace_uses(n.outputs[0], real);
    g.erase(id);
  }
  return {};
}

// The quantize_linear `id` above the node that makes its input, if that one only moves elements: the new one.
Result<NodeId> hoist(Graph& g, NodeId id, const std::vector<std::vector<NodeId>>& users) {
  const Node q = g.node(id);
  const NodeId source = g.value(q.inputs[0]).producer;
  if (source == kNoNode || users[static_cast<size_t>(q.inputs[0])].size() != 1 || !per_tensor(g, q)) return kNoNode;
  if (std::ranges::find(g.outputs, q.inputs[0]) != g.outputs.end()) return kNoNode;
  DLC_TRY(const bool movement, moves(g, source));
  if (!movement) return kNoNode;
  const Node n = g.node(source);
  if (g.value(n.inputs[0]).type.shape.empty()) return kNoNode;
  DLC_TRY(const ValueId quantized, like(g, q, n.inputs[0], q.locations));
  std::vector<ValueId> inputs = n.inputs;
  inputs[0] = quantized;
  DLC_TRY(const NodeId moved, g.add_node(n.op, std::move(inputs), n.attrs, n.locations));
  g.replace_uses(q.outputs[0], g.node(moved).outputs[0]);
  g.erase(id);
  g.erase(source);
  return g.value(quantized).producer;
}

Result<> hoist_quantize(Graph& g) {
  // How many nodes use a value that was there before stays the same: the new quantize_linear takes the place of what it
  // passed.
  const auto users = g.all_users();
  for (NodeId id : g.order()) {
    while (id != kNoNode && g.node(id).op == "quantize_linear") {
      DLC_TRY(id, hoist(g, id, users));
    }
  }
  return {};
}

}  // namespace

Result<> commute_with_movement(Rewriter& r) {
  DLC_CHECK(sink_dequantize(r.graph()));
  return hoist_quantize(r.graph());
}

}  // namespace dlc::numerics
