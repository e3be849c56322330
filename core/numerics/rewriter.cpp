#include "core/numerics/rewriter.h"

#include <fmt/format.h>

namespace dlc::numerics {

namespace {

const Node* producer(const Graph& g, ValueId v, std::string_view op) {
  if (v == kNoValue || g.value(v).producer == kNoNode) return nullptr;
  const Node& n = g.node(g.value(v).producer);
  return n.op == op ? &n : nullptr;
}

}  // namespace

std::optional<PerTensor> per_tensor(const Graph& g, const Node& n) {
  const auto& scale = g.value(n.inputs[1]).constant;
  if (!scale || scale->elements() != 1) return std::nullopt;
  PerTensor p{scale->get_double(0), 0};
  if (!usable_scale(p.scale)) return std::nullopt;
  if (n.inputs.size() > 2 && n.inputs[2] != kNoValue) {
    const auto& z = g.value(n.inputs[2]).constant;
    if (!z || z->elements() != 1) return std::nullopt;
    p.zero = z->get_int(0);
  }
  return p;
}

void Rewriter::count_uses() {
  uses_.clear();
  for (const auto& users : g_.all_users()) uses_.push_back(static_cast<int>(users.size()));
}

// u8 and s8 are the same bits shifted by 128: q_u8 - zero_u8 == q_s8 - (zero_u8 - 128).
Result<ValueId> Rewriter::as_s8(ValueId v, int64_t& zero) {
  if (g_.value(v).type.dtype == kS8) return v;
  zero -= 128;
  if (const auto it = shifted_.find(v); it != shifted_.end()) return it->second;
  const std::string name = g_.value(v).name;
  std::vector<std::string> loc;
  if (const NodeId p = g_.value(v).producer; p != kNoNode) loc = g_.node(p).locations;
  if (const auto& c = g_.value(v).constant) {
    DLC_TRY(Tensor t, Tensor::make(kS8, c->shape()));
    for (int64_t i = 0; i < t.elements(); ++i) t.set_int(i, c->get_int(i) - 128);
    return shifted_[v] = constant(std::move(t), name);
  }
  if (const Node* q = producer(g_, v, "quantize_linear")) {  // quantise to s8 at once
    const auto params = per_tensor(g_, *q);
    if (params) {
      DLC_TRY(const ValueId z, vector(kS8, {params->zero - 128}, name + ".zero"));
      Attrs attrs = q->attrs;
      attrs["to"] = kS8;
      const std::vector<ValueId> inputs{q->inputs[0], q->inputs[1], z};
      DLC_TRY(const NodeId n, g_.add_node("quantize_linear", inputs, std::move(attrs), loc));
      return shifted_[v] = g_.node(n).outputs[0];
    }
  }
  // Subtracting 128 wraps in u8; the same bits read as s8 are the shifted value.
  DLC_TRY(const ValueId half, scalar(kU8, 128, name + ".half"));
  DLC_TRY(const NodeId sub, g_.add_node("sub", {v, half}, {}, loc));
  DLC_TRY(const NodeId cast, g_.add_node("cast", {g_.node(sub).outputs[0]}, {{"to", kS8}}, loc));
  return shifted_[v] = g_.node(cast).outputs[0];
}

Result<std::optional<Quantized>> Rewriter::dequantized(ValueId v) {
  const Node* n = producer(g_, v, "dequantize_linear");
  if (n == nullptr) return std::nullopt;
  const auto params = per_tensor(g_, *n);
  const DType type = g_.value(n->inputs[0]).type.dtype;
  if (!params || (type != kS8 && type != kU8)) return std::nullopt;
  Quantized q;
  q.scale = params->scale;
  q.zero = params->zero;
  DLC_TRY(q.value, as_s8(n->inputs[0], q.zero));
  return q;
}

std::optional<Rewriter::Weight> Rewriter::dequantized_weight(ValueId v) const {
  const Node* n = producer(g_, v, "dequantize_linear");
  if (n == nullptr) return std::nullopt;
  const auto& q = g_.value(n->inputs[0]).constant;
  const auto& scale = g_.value(n->inputs[1]).constant;
  if (!q || !scale || !q->dtype().is_int() || q->dtype().bits > 8) return std::nullopt;
  Weight w;
  // A u8 weight with zero point 128 is an s8 one, and so are weights of fewer bits; any other zero point stays in
  // float.
  const int64_t wanted_zero = q->dtype().is_signed() ? 0 : int64_t{1} << (q->dtype().bits - 1);
  const bool has_zero = n->inputs.size() > 2 && n->inputs[2] != kNoValue;
  if (!has_zero && wanted_zero != 0) return std::nullopt;
  if (has_zero) {
    const auto& z = g_.value(n->inputs[2]).constant;
    if (!z) return std::nullopt;
    for (int64_t i = 0; i < z->elements(); ++i)
      if (z->get_int(i) != wanted_zero) return std::nullopt;
  }
  auto t = Tensor::make(kS8, q->shape());
  if (!t) return std::nullopt;
  for (int64_t i = 0; i < t->elements(); ++i) t->set_int(i, q->get_int(i) - wanted_zero);
  w.q = std::move(*t);
  for (int64_t i = 0; i < scale->elements(); ++i) {
    const double s = scale->get_double(i);
    if (!usable_scale(s)) return std::nullopt;
    w.scales.push_back(s);
  }
  if (w.scales.size() > 1) {
    const auto axis = attributes(*n).integer("axis");
    if (!axis) return std::nullopt;
    w.axis = *axis;
    if (w.axis < 0) w.axis += w.q.rank();
  }
  return w;
}

std::optional<std::vector<double>> Rewriter::constant_values(ValueId v) const {
  std::vector<double> out;
  if (const auto& c = g_.value(v).constant) {
    for (int64_t i = 0; i < c->elements(); ++i) out.push_back(c->get_double(i));
    return out;
  }
  if (const Node* shaped = producer(g_, v, "reshape")) return constant_values(shaped->inputs[0]);
  const Node* n = producer(g_, v, "dequantize_linear");
  if (n == nullptr) return std::nullopt;
  const auto& q = g_.value(n->inputs[0]).constant;
  const auto& scale = g_.value(n->inputs[1]).constant;
  if (!q || !scale || q->rank() > 1) return std::nullopt;
  const Tensor* zero = nullptr;
  if (n->inputs.size() > 2 && n->inputs[2] != kNoValue) {
    if (!g_.value(n->inputs[2]).constant) return std::nullopt;
    zero = &*g_.value(n->inputs[2]).constant;
  }
  for (int64_t i = 0; i < q->elements(); ++i) {
    const auto at = [&](const Tensor& t) { return t.elements() == 1 ? 0 : i; };
    const double z = zero != nullptr ? static_cast<double>(zero->get_int(at(*zero))) : 0;
    out.push_back((static_cast<double>(q->get_int(i)) - z) * scale->get_double(at(*scale)));
  }
  return out;
}

std::optional<Site> Rewriter::site(NodeId quantize) const {
  const Node& q = g_.node(quantize);
  const auto params = per_tensor(g_, q);
  const DType type = g_.value(q.outputs[0]).type.dtype;
  if (!params || (type != kS8 && type != kU8)) return std::nullopt;
  Site s;
  s.quantize = quantize;
  s.scale = params->scale;
  s.zero = params->zero - (type == kU8 ? 128 : 0);
  return s;
}

Result<ValueId> Rewriter::add(std::string op, std::vector<ValueId> inputs, Attrs attrs, const Site& site) {
  DLC_TRY(const NodeId n, g_.add_node(std::move(op), std::move(inputs), std::move(attrs), site.locations));
  return g_.node(n).outputs[0];
}

ValueId Rewriter::constant(Tensor t, std::string_view wish) {
  return g_.add_constant(g_.unique_name(wish), std::move(t));
}

Result<ValueId> Rewriter::scalar(DType type, int64_t value, std::string_view wish) {
  DLC_TRY(Tensor t, Tensor::make(type, {}));
  t.set_int(0, value);
  return constant(std::move(t), wish);
}

Result<ValueId> Rewriter::vector(DType type, const std::vector<int64_t>& values, std::string_view wish) {
  DLC_TRY(Tensor t, Tensor::make(type, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<int64_t>(i), values[i]);
  return constant(std::move(t), wish);
}

std::optional<Refused> Rewriter::without(std::initializer_list<std::string_view> recipes) const {
  for (const std::string_view name : recipes)
    if (g_.record_set().find(name) == nullptr) return Refused{fmt::format("the machine's recipes have no '{}'", name)};
  return std::nullopt;
}

Result<DType> Rewriter::operand_type(std::string_view recipe, std::string_view operand) const {
  const Record* r = g_.record_set().find(recipe);
  if (r != nullptr)
    for (const OperandInfo& o : r->operands())
      if (const auto type = parse_dtype(o.type); o.name == operand && type) return *type;
  return fail({}, fmt::format("the machine's recipes have no '{}' with a typed operand {}", recipe, operand),
              "see docs/numerics.md for the recipes a machine provides");
}

namespace {

Attempt<Scale> chosen(const Scaling& scaling, std::span<const Ratio> ratios) {
  const auto k = choose_scale(scaling, ratios);
  std::string text, types;
  for (size_t i = 0; i < ratios.size(); ++i) {
    text += fmt::format("{}{:.6g}", i > 0 ? " and " : "", ratios[i].ratio);
    types += to_string(scaling.m[i]) + " ";
  }
  if (!k) return Refused{fmt::format("the scale ratio {} has no multiplier", text)};
  if (k->off > kMostOff)
    return Refused{
        fmt::format("the scale ratio {} would be off by {:.2g} steps of the result with a multiplier of {}and "
                    "a shift of {}",
                    text, k->off, types, to_string(scaling.s))};
  return *k;
}

}  // namespace

Result<Attempt<std::vector<ValueId>>> Rewriter::scale(std::string_view recipe, std::vector<Ratio> ratios,
                                                      const Site& s) {
  DLC_TRY(const Scaling scaling, scaling_of(records(), recipe));
  const auto k = chosen(scaling, ratios);
  if (!k) return Refused{k.why()};
  const std::string name = s.locations.empty() ? std::string("layer") : s.locations.front();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < ratios.size(); ++i) {
    const std::string which = ratios.size() == 1 ? "" : i == 0 ? "_a" : "_b";
    DLC_TRY(const ValueId m, scalar(scaling.m[i], k->m[i], name + ".mul" + which));
    operands.push_back(m);
  }
  DLC_TRY(const ValueId shift, scalar(scaling.s, k->s, name + ".shift"));
  operands.push_back(shift);
  return operands;
}

Result<Attempt<std::vector<ValueId>>> Rewriter::scale_channels(std::string_view recipe,
                                                               const std::vector<Ratio>& ratios, const Site& s) {
  DLC_TRY(const Scaling scaling, scaling_of(records(), recipe));
  std::vector<int64_t> m, shift;
  for (size_t c = 0; c < ratios.size(); ++c) {
    const auto k = chosen(scaling, std::span(ratios).subspan(c, 1));
    if (!k) return Refused{fmt::format("channel {}: {}", c, k.why())};
    m.push_back(k->m[0]);
    shift.push_back(k->s);
  }
  const std::string name = s.locations.empty() ? std::string("layer") : s.locations.front();
  DLC_TRY(const ValueId m_value, vector(scaling.m[0], m, name + ".mul"));
  DLC_TRY(const ValueId s_value, vector(scaling.s, shift, name + ".shift"));
  return std::vector{m_value, s_value};
}

Attrs Rewriter::output_attrs(const Site& s) const {
  return {{"zero", Expr(s.zero)}, {"lo", Expr(s.clamp.lo)}, {"hi", Expr(s.clamp.hi)}};
}

}  // namespace dlc::numerics
