// Roundings that exporters put between steps of one linear function are left out.
//
//   mul(dequantize_linear(q, s, z), c)                 ->  dequantize_linear(q, s * c, z)      // c > 0
//   add(dequantize_linear(quantize_linear(matmul)), b)  ->  add(matmul, b)
//   matmul(dequantize_linear(quantize_linear(dequantize_linear(q))), ...)  ->  matmul(dequantize_linear(q), ...)
#include "core/numerics/rewriter.h"

namespace dlc::numerics {

namespace {

const Node* made_by(const Graph& g, ValueId v, std::string_view op) {
  if (v == kNoValue || g.value(v).producer == kNoNode) return nullptr;
  const Node& n = g.node(g.value(v).producer);
  return n.op == op ? &n : nullptr;
}

// The one positive number that v is.
std::optional<double> factor(const Rewriter& r, ValueId v) {
  const auto values = r.constant_values(v);
  if (!values || values->size() != 1 || !usable_scale(values->front())) return std::nullopt;
  return values->front();
}

Result<> fold_factor(Rewriter& r, NodeId id) {
  Graph& g = r.graph();
  const Node n = g.node(id);
  const bool divides = n.op == "div";
  if ((n.op != "mul" && !divides) || n.inputs.size() != 2) return {};
  for (size_t x = 0; x < (divides ? 1 : 2); ++x) {
    const auto c = factor(r, n.inputs[1 - x]);
    const Node* dq = made_by(g, n.inputs[x], "dequantize_linear");
    if (!c || dq == nullptr || g.value(dq->inputs[0]).constant) continue;
    const Node source = *dq;
    const auto p = per_tensor(g, source);
    if (!p || g.value(n.outputs[0]).type != g.value(source.outputs[0]).type) continue;
    const double scale = divides ? p->scale / *c : p->scale * *c;
    if (!usable_scale(static_cast<float>(scale))) continue;
    DLC_TRY(Tensor t, Tensor::make(g.value(source.inputs[1]).type.dtype, g.value(source.inputs[1]).constant->shape()));
    t.set_double(0, scale);
    std::vector<ValueId> inputs = source.inputs;
    inputs[1] = r.constant(std::move(t), g.value(source.inputs[1]).name + ".times");
    DLC_TRY(const NodeId made, g.add_node(source.op, std::move(inputs), source.attrs, n.locations));
    g.replace_uses(n.outputs[0], g.node(made).outputs[0]);
    g.erase(id);
    return {};
  }
  return {};
}

bool only_use(const Graph& g, const std::vector<std::vector<NodeId>>& users, ValueId v) {
  return users[static_cast<size_t>(v)].size() == 1 && std::ranges::find(g.outputs, v) == g.outputs.end();
}

Result<bool> join_bias(Rewriter& r, NodeId id, const std::vector<std::vector<NodeId>>& users) {
  Graph& g = r.graph();
  const Node n = g.node(id);
  if (n.op != "add" || n.inputs.size() != 2) return false;
  for (size_t x = 0; x < 2; ++x) {
    const Node* dq = made_by(g, n.inputs[x], "dequantize_linear");
    const Node* q = dq != nullptr ? made_by(g, dq->inputs[0], "quantize_linear") : nullptr;
    if (q == nullptr || !per_tensor(g, *q) || !per_tensor(g, *dq) || !r.constant_values(n.inputs[1 - x])) continue;
    const ValueId product = q->inputs[0];
    const Node* matmul = made_by(g, product, "matmul");
    if (matmul == nullptr || !r.dequantized_weight(matmul->inputs[1])) continue;
    if (!only_use(g, users, product) || !only_use(g, users, q->outputs[0]) || !only_use(g, users, dq->outputs[0]))
      continue;
    std::vector<ValueId> inputs = n.inputs;
    inputs[x] = product;
    DLC_TRY(const NodeId made, g.add_node("add", std::move(inputs), n.attrs, n.locations));
    g.replace_uses(n.outputs[0], g.node(made).outputs[0]);
    g.erase(id);
    return true;
  }
  return false;
}

// Whether what stands for the reals of `narrow` holds those of `wide` but for a rounding.
bool covers(const PerTensor& wide, DType wide_type, const PerTensor& narrow, DType narrow_type) {
  const auto end = [](const PerTensor& p, int64_t q) { return static_cast<double>(q - p.zero) * p.scale; };
  return end(wide, wide_type.min_value()) <= end(narrow, narrow_type.min_value()) + wide.scale / 2 &&
         end(wide, wide_type.max_value()) >= end(narrow, narrow_type.max_value()) - wide.scale / 2;
}

// An operand of a matrix product at another scale is the operand.
Result<> skip_rescale(Rewriter& r, NodeId id, const std::vector<std::vector<NodeId>>& users) {
  Graph& g = r.graph();
  const Node last = g.node(id);
  if (last.op != "dequantize_linear" || std::ranges::find(g.outputs, last.outputs[0]) != g.outputs.end()) return {};
  const Node* q = made_by(g, last.inputs[0], "quantize_linear");
  const Node* first = q != nullptr ? made_by(g, q->inputs[0], "dequantize_linear") : nullptr;
  if (first == nullptr || g.value(first->inputs[0]).constant) return {};
  const auto& to = users[static_cast<size_t>(last.outputs[0])];
  if (!std::ranges::all_of(to, [&](NodeId u) { return g.node(u).op == "matmul"; })) return {};
  const auto wide = per_tensor(g, *q), again = per_tensor(g, last), narrow = per_tensor(g, *first);
  const DType wide_type = g.value(q->outputs[0]).type.dtype, narrow_type = g.value(first->inputs[0]).type.dtype;
  if (!wide || !again || !narrow || wide->scale != again->scale || wide->zero != again->zero) return {};
  if (!wide_type.is_int() || !narrow_type.is_int() || !covers(*wide, wide_type, *narrow, narrow_type)) return {};
  g.replace_uses(last.outputs[0], first->outputs[0]);
  return {};
}

}  // namespace

Result<bool> fold_linear(Rewriter& r) {
  bool any = false;
  for (const NodeId id : r.graph().order()) DLC_CHECK(fold_factor(r, id));
  const auto users = r.graph().all_users();
  for (const NodeId id : r.graph().order()) {
    DLC_TRY(const bool joined, join_bias(r, id, users));
    any |= joined;
    DLC_CHECK(skip_rescale(r, id, users));
  }
  return any;
}

}  // namespace dlc::numerics
