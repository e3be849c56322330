#include "core/quantize/rewrite.h"

#include <algorithm>
#include <cmath>

namespace dlc::quantization {

namespace {

constexpr double kMostBias = 1 << 30;  // steps: room for the products beside it in s32

// Which output channel an element of a weight belongs to.
struct WeightChannels {
  int64_t count = 1, inner = 1;
  WeightChannels(const Tensor& w, int64_t axis) : count(w.shape()[static_cast<size_t>(axis)]) {
    for (size_t d = static_cast<size_t>(axis) + 1; d < w.shape().size(); ++d) inner *= w.shape()[d];
  }
  size_t of(int64_t element) const { return static_cast<size_t>(element / inner % count); }
};

class Rewriter {
 public:
  Rewriter(const Graph& g, const Plan& plan, const Parameters& p) : g_(g), plan_(plan), p_(p) {
    out_.graph.name = g.name;
    out_.graph.symbols = g.symbols;
    out_.graph.records = g.records;
    out_.sums.assign(plan.layers.size(), kNoValue);
    out_.results = out_.sums;
    for (size_t l = 0; l < plan.layers.size(); ++l) {
      layer_at_.emplace(plan.layers[l].root, l);
      result_of_.emplace(plan.layers[l].result, l);
    }
  }

  Result<Rewritten> whole() {
    for (const ValueId v : g_.inputs) value_[v] = graph().add_input(g_.value(v).name, g_.value(v).type);
    for (const ValueId v : g_.inputs)
      if (plan_.quantised(v)) DLC_CHECK(round(v));
    for (const NodeId id : g_.order()) DLC_CHECK(copy(id));
    for (const ValueId v : g_.outputs) graph().outputs.push_back(use(v));
    graph().output_names = g_.output_names;
    return std::move(out_);
  }

  Result<Rewritten> apart() {
    for (const Layer& l : plan_.layers) {
      for (const ValueId v : l.inputs) DLC_CHECK(make_input(v));
      DLC_CHECK(copy(l.root));
      for (const NodeId n : l.tail) DLC_CHECK(copy(n));
      // The next layer reads the float graph's own values.
      value_.erase(l.result);
    }
    for (const auto* values : {&out_.sums, &out_.results})
      for (const ValueId v : *values) {
        graph().outputs.push_back(v);
        graph().output_names.push_back(graph().value(v).name);
      }
    return std::move(out_);
  }

 private:
  Graph& graph() { return out_.graph; }

  Result<> make_input(ValueId v) {
    if (const auto known = rounded_input_.find(v); known != rounded_input_.end()) {
      value_[v] = known->second;
      return {};
    }
    out_.inputs.push_back(v);
    value_[v] = graph().add_input(graph().unique_name(g_.value(v).name), g_.value(v).type);
    DLC_CHECK(round(v));
    rounded_input_[v] = value_[v];
    return {};
  }

  ValueId use(ValueId v) {
    if (v == kNoValue) return v;
    if (const auto it = value_.find(v); it != value_.end()) return it->second;
    return value_[v] = graph().add_constant(graph().unique_name(g_.value(v).name), *g_.value(v).constant);
  }

  // A node with what is quantised behind it.
  Result<> copy(NodeId id) {
    const Node& n = g_.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId v : n.inputs) inputs.push_back(v != kNoValue && g_.value(v).constant ? kNoValue : use(v));
    const auto layer = layer_at_.find(id);
    if (layer != layer_at_.end() && plan_.layers[layer->second].weight_axis >= 0)
      DLC_CHECK(weights(plan_.layers[layer->second], inputs));
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (inputs[i] == kNoValue) inputs[i] = use(n.inputs[i]);
    DLC_TRY(const NodeId made, graph().add_copy(g_, id, std::move(inputs)));
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      value_[n.outputs[i]] = graph().node(made).outputs[i];
      if (layer != layer_at_.end()) out_.sums[layer->second] = graph().node(made).outputs[i];
      if (plan_.quantised(n.outputs[i])) DLC_CHECK(round(n.outputs[i]));
      if (const auto l = result_of_.find(n.outputs[i]); l != result_of_.end())
        out_.results[l->second] = value_.at(n.outputs[i]);
    }
    return {};
  }

  Result<ValueId> scalar(DType type, double x, const std::string& name) {
    DLC_TRY(Tensor t, Tensor::make(type, {}));
    t.set_double(0, x);
    return graph().add_constant(graph().unique_name(name), std::move(t));
  }

  // quantize_linear and dequantize_linear behind a value. Values that share a step share its constants.
  Result<> round(ValueId v) {
    const ValueId share = plan_.shares[static_cast<size_t>(v)];
    auto known = constants_.find(share);
    if (known == constants_.end()) {
      const Step& step = p_.steps.at(share);
      DLC_TRY(const ValueId scale, scalar(kF32, step.scale, g_.value(share).name + ".scale"));
      DLC_TRY(const ValueId zero, scalar(kS8, static_cast<double>(step.zero), g_.value(share).name + ".zero"));
      known = constants_.emplace(share, std::pair(scale, zero)).first;
    }
    const auto [scale, zero] = known->second;
    std::vector<std::string> where;
    if (const NodeId n = g_.value(v).producer; n != kNoNode) where = g_.node(n).locations;
    const auto place = [&](const char* what) {
      return std::vector<std::string>{(where.empty() ? g_.value(v).name : where.front()) + what};
    };
    DLC_TRY(const NodeId q, graph().add_node("quantize_linear", {value_.at(v), scale, zero},
                                             {{"axis", Expr(0)}, {"to", kS8}}, place(".quantize")));
    DLC_TRY(const NodeId real, graph().add_node("dequantize_linear", {graph().node(q).outputs[0], scale, zero},
                                                {{"axis", Expr(0)}}, place(".dequantize")));
    value_[v] = graph().node(real).outputs[0];
    return {};
  }

  // Constants of a layer in its node's operands: the weight in s8, a scale for each channel, and the bias in s32.
  Result<> weights(const Layer& l, std::vector<ValueId>& inputs) {
    const Node& n = g_.node(l.root);
    const std::string name = g_.value(n.inputs[1]).name;
    const Tensor& w = *g_.value(n.inputs[1]).constant;
    const WeightChannels channels(w, l.weight_axis);
    const double step = p_.of(plan_, l.inputs[0]).scale;
    const std::vector<double> bias = bias_of(l, channels.count);
    std::vector<float> scales;
    const std::vector<double>& chosen = p_.weight_scales.at(l.root);
    for (size_t c = 0; c < chosen.size(); ++c) {
      double s = chosen[c];
      if (!bias.empty()) s = std::max(s, std::abs(bias[c]) / kMostBias / step);
      const auto scale = static_cast<float>(s);
      scales.push_back(std::isnormal(scale) ? scale : 1);
    }
    DLC_TRY(Tensor q, Tensor::make(kS8, w.shape()));
    for (int64_t i = 0; i < w.elements(); ++i) {
      const double scale = scales[channels.of(i)];
      q.set_int(i, std::llround(std::clamp(std::nearbyint(w.get_double(i) / scale), -127.0, 127.0)));
    }
    DLC_TRY(Tensor zero, Tensor::make(kS8, {channels.count}));
    DLC_TRY(Tensor scale, Tensor::from<float>(kF32, {channels.count}, scales));
    const ValueId values[] = {graph().add_constant(graph().unique_name(name + ".q"), std::move(q)),
                              graph().add_constant(graph().unique_name(name + ".scale"), std::move(scale)),
                              graph().add_constant(graph().unique_name(name + ".zero"), std::move(zero))};
    DLC_TRY(inputs[1], dequantised({values[0], values[1], values[2]}, l.weight_axis, name));
    if (bias.empty()) return {};
    if (inputs.size() < 3) inputs.resize(3, kNoValue);
    DLC_TRY(inputs[2], bias_value(bias, scales, step, name_of(g_, l.root) + ".bias"));
    return {};
  }

  Result<ValueId> dequantised(std::vector<ValueId> inputs, int64_t axis, const std::string& name) {
    DLC_TRY(const NodeId n,
            graph().add_node("dequantize_linear", std::move(inputs), {{"axis", Expr(axis)}}, {name + ".dequantize"}));
    return graph().node(n).outputs[0];
  }

  // The layer's bias with its correction; empty if there is neither, or no operand for it.
  std::vector<double> bias_of(const Layer& l, int64_t channels) const {
    const Node& n = g_.node(l.root);
    const auto shift = p_.bias_shift.find(l.root);
    const Tensor* given = n.inputs.size() > 2 && n.inputs[2] != kNoValue ? &*g_.value(n.inputs[2]).constant : nullptr;
    if (n.op == "matmul" || (given == nullptr && shift == p_.bias_shift.end())) return {};
    std::vector<double> bias(static_cast<size_t>(channels), 0.0);
    for (size_t c = 0; c < bias.size(); ++c) {
      if (given != nullptr) bias[c] = given->get_double(given->elements() == 1 ? 0 : static_cast<int64_t>(c));
      if (shift != p_.bias_shift.end()) bias[c] += shift->second[c];
    }
    return bias;
  }

  Result<ValueId> bias_value(const std::vector<double>& bias, std::span<const float> weight_scales, double step,
                             const std::string& name) {
    const auto channels = static_cast<int64_t>(bias.size());
    DLC_TRY(Tensor q, Tensor::make(kS32, {channels}));
    DLC_TRY(Tensor scale, Tensor::make(kF32, {channels}));
    for (int64_t c = 0; c < channels; ++c) {
      scale.set_double(c, step * weight_scales[static_cast<size_t>(c)]);
      const double s = scale.get_double(c);
      q.set_int(
          c, s > 0 ? std::llround(std::clamp(bias[static_cast<size_t>(c)] / s, -2.0 * kMostBias, 1.9 * kMostBias)) : 0);
    }
    const ValueId values[] = {graph().add_constant(graph().unique_name(name + ".q"), std::move(q)),
                              graph().add_constant(graph().unique_name(name + ".scale"), std::move(scale))};
    return dequantised({values[0], values[1]}, 0, name);
  }

  const Graph& g_;
  const Plan& plan_;
  const Parameters& p_;
  Rewritten out_;
  std::map<ValueId, ValueId> value_;          // of g_, in the new graph: what its readers read
  std::map<ValueId, ValueId> rounded_input_;  // of layers_apart()
  std::map<NodeId, size_t> layer_at_;
  std::map<ValueId, size_t> result_of_;
  std::map<ValueId, std::pair<ValueId, ValueId>> constants_;  // of a share: scale and zero point
};

}  // namespace

std::vector<double> scales_of(const Graph& g, const Layer& l, RangeMethod method) {
  const Tensor& w = *g.value(g.node(l.root).inputs[1]).constant;
  const WeightChannels channels(w, l.weight_axis);
  std::vector<std::vector<double>> of(static_cast<size_t>(channels.count));
  for (int64_t i = 0; i < w.elements(); ++i) of[channels.of(i)].push_back(w.get_double(i));
  std::vector<double> scales;
  for (const auto& weights : of) scales.push_back(weight_scale(weights, method));
  return scales;
}

Result<Rewritten> quantised(const Graph& g, const Plan& plan, const Parameters& p) {
  return Rewriter(g, plan, p).whole();
}

Result<Rewritten> layers_apart(const Graph& g, const Plan& plan, const Parameters& p) {
  return Rewriter(g, plan, p).apart();
}

}  // namespace dlc::quantization
