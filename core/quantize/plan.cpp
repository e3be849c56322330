#include "core/quantize/plan.h"

#include <algorithm>
#include <set>

#include "core/numerics/kinds.h"
#include "dlc/ops/attributes.h"

namespace dlc::quantization {

namespace {

bool is_float(const Graph& g, ValueId v) { return g.value(v).type.dtype == kF32; }
bool is_constant(const Graph& g, ValueId v) { return g.value(v).constant.has_value(); }
bool has(const Node& n, size_t i) { return i < n.inputs.size() && n.inputs[i] != kNoValue; }
size_t rank(const Graph& g, ValueId v) { return g.value(v).type.shape.size(); }

class Planner {
 public:
  Planner(const Graph& g, const std::map<std::string, std::string>& keep) : g_(g), users_(g.all_users()), keep_(keep) {
    plan_.shares.assign(g.value_count(), kNoValue);
  }

  Result<Plan> run() {
    for (const NodeId id : g_.order()) {
      DLC_TRY(auto layer, layer_at(id));
      if (!layer || taken_.contains(id)) continue;
      add_tail(*layer);
      for (const NodeId n : layer->tail) taken_.insert(n);
      if (const auto kept = keep_.find(name_of(g_, id)); kept != keep_.end()) {
        plan_.in_float.emplace_back(std::move(*layer), kept->second);
        continue;
      }
      for (const ValueId v : layer->inputs) want(v);
      want(layer->result);
      plan_.layers.push_back(std::move(*layer));
    }
    // What is moved keeps its scale.
    for (const NodeId id : g_.order()) {
      const Node& n = g_.node(id);
      if (n.inputs.size() != 1 || !plan_.quantised(n.inputs[0]) || !is_float(g_, n.outputs[0])) continue;
      DLC_TRY(const bool moves, numerics::moves(g_, id));
      if (moves && rank(g_, n.outputs[0]) > 0)
        plan_.shares[static_cast<size_t>(n.outputs[0])] = plan_.shares[static_cast<size_t>(n.inputs[0])];
    }
    return std::move(plan_);
  }

 private:
  void want(ValueId v) { plan_.shares[static_cast<size_t>(v)] = v; }

  Result<std::optional<Layer>> layer_at(NodeId id) const {
    const Node& n = g_.node(id);
    if (n.outputs.size() != 1 || !n.bodies.empty() || !is_float(g_, n.outputs[0]) || rank(g_, n.outputs[0]) == 0)
      return std::nullopt;
    Layer l{.root = id, .result = n.outputs[0]};
    for (const ValueId v : n.inputs)
      if (v != kNoValue && !is_constant(g_, v)) {
        if (!is_float(g_, v) || rank(g_, v) == 0) return std::nullopt;
        l.inputs.push_back(v);
      }
    if (l.inputs.empty()) return std::nullopt;
    DLC_TRY(const bool is_layer, fits(n, l));
    if (!is_layer) return std::nullopt;
    return l;
  }

  Result<bool> fits(const Node& n, Layer& l) const {
    const auto& shape = g_.value(n.outputs[0]).type.shape;
    if (n.op == "conv" || n.op == "gemm" || n.op == "matmul") return has_weight(n, l);
    if (n.op == "add" || n.op == "mul")  // of two tensors of one shape: no operand is broadcast
      return l.inputs.size() == 2 &&
             std::ranges::all_of(l.inputs, [&](ValueId v) { return g_.value(v).type.shape == shape; });
    if (n.op == "concat") return l.inputs.size() == n.inputs.size();
    if (n.op == "avg_pool") return true;
    if (n.op == "reduce_mean") return is_spatial_mean(n);
    return is_function(n);
  }

  // Weights are constants, and the products are sums over them with nothing else.
  bool has_weight(const Node& n, Layer& l) const {
    if (n.inputs[0] == kNoValue || l.inputs[0] != n.inputs[0] || l.inputs.size() != 1 || !has(n, 1)) return false;
    if (!is_float(g_, n.inputs[1]) || (has(n, 2) && rank(g_, n.inputs[2]) != 1)) return false;
    if (n.op == "conv") {
      l.weight_axis = 0;
      return true;
    }
    l.channel_axis = static_cast<int64_t>(rank(g_, n.outputs[0])) - 1;
    if (n.op == "matmul") {
      l.weight_axis = 1;
      return rank(g_, n.inputs[1]) == 2 && l.channel_axis > 0;
    }
    const Attributes a(*g_.record_set().find(n.op), n.attrs);
    l.weight_axis = a.integer("trans_b") == 1 ? 0 : 1;
    return a.real("alpha") == 1 && a.real("beta") == 1 && a.integer("trans_a") == 0;
  }

  bool is_spatial_mean(const Node& n) const {
    const auto axes = n.attrs.find("axes");
    const auto* list = axes == n.attrs.end() ? nullptr : std::get_if<std::vector<Expr>>(&axes->second);
    const auto dims = static_cast<int64_t>(rank(g_, n.inputs[0]));
    if (list == nullptr || dims < 3 || std::ssize(*list) != dims - 2) return false;
    return std::ranges::all_of(*list, [&](const Expr& e) {
      const auto a = e.constant();
      return a && (*a < 0 ? *a + dims : *a) >= 2;
    });
  }

  // One of 256 values: it becomes a table.
  Result<bool> is_function(const Node& n) const {
    if (n.op == "quantize_linear" || n.op == "dequantize_linear" || g_.is_extern(g_.value(n.outputs[0]).producer))
      return false;
    for (const ValueId v : n.inputs)
      if (v != kNoValue && is_constant(g_, v) && g_.value(v).constant->elements() != 1) return false;
    if (g_.value(n.inputs[0]).constant || g_.value(n.inputs[0]).type != g_.value(n.outputs[0]).type) return false;
    DLC_TRY(const Kernel k, g_.kernel(g_.value(n.outputs[0]).producer));
    if (std::ranges::count_if(n.inputs, [&](ValueId v) { return v != kNoValue && !is_constant(g_, v); }) != 1)
      return false;
    DLC_TRY(const bool moves, numerics::moves(g_, g_.value(n.outputs[0]).producer));
    return !moves && numerics::not_pointwise(k).empty();
  }

  bool is_clamp(const Node& n) const {
    if (n.op == "relu") return true;
    if (n.op != "clip") return false;
    for (size_t i = 1; i < n.inputs.size(); ++i)
      if (n.inputs[i] != kNoValue && !is_constant(g_, n.inputs[i])) return false;
    return true;
  }

  void add_tail(Layer& l) const {
    const std::string& op = g_.node(l.root).op;
    if (op == "concat" || (g_.node(l.root).inputs.size() == 1 && op != "avg_pool" && op != "reduce_mean")) return;
    while (true) {
      const auto& users = users_[static_cast<size_t>(l.result)];
      if (users.size() != 1 || std::ranges::count(g_.outputs, l.result) > 0 || !is_clamp(g_.node(users[0]))) return;
      l.tail.push_back(users[0]);
      l.result = g_.node(users[0]).outputs[0];
    }
  }

  const Graph& g_;
  std::vector<std::vector<NodeId>> users_;
  const std::map<std::string, std::string>& keep_;
  std::set<NodeId> taken_;
  Plan plan_;
};

}  // namespace

std::string name_of(const Graph& g, NodeId n) {
  const Node& node = g.node(n);
  return node.locations.empty() ? g.value(node.outputs[0]).name : node.locations.front();
}

Result<Plan> make_plan(const Graph& g, const std::map<std::string, std::string>& keep) {
  return Planner(g, keep).run();
}

void reconcile(const Graph& g, const std::map<ValueId, Histogram>& seen, Plan& plan) {
  constexpr double kAlike = 0.5;  // of a range in another one: the finer one loses less than a bit
  const auto of = [&](ValueId v) { return plan.shares[static_cast<size_t>(v)]; };
  for (const Layer& l : plan.layers) {
    if (g.node(l.root).op != "concat") continue;
    const ValueId whole = of(l.result);
    const Reach& to = seen.at(whole).range;
    for (const ValueId v : l.inputs) {
      const ValueId part = of(v);
      const Reach& from = seen.at(part).range;
      if (part == whole || from.hi - from.lo < kAlike * (to.hi - to.lo)) continue;
      for (ValueId& share : plan.shares)
        if (share == part) share = whole;
    }
  }
}

}  // namespace dlc::quantization
