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

Result<DType> Rewriter::operand_type(std::string_view record, size_t operand) const {
  const Record* r = g_.record_set().find(record);
  if (r == nullptr || operand >= r->operands().size())
    return fail({}, fmt::format("the machine's recipes have no '{}' with {} operands", record, operand + 1),
                "see docs/numerics.md for the recipes a machine provides");
  const auto type = parse_dtype(r->operands()[operand].type);
  if (!type) return fail({}, fmt::format("recipe '{}': operand {} needs a type", record, r->operands()[operand].name));
  return *type;
}

Attrs Rewriter::output_attrs(const Site& s) const {
  return {{"zero", Expr(s.zero)}, {"lo", Expr(s.clamp.lo)}, {"hi", Expr(s.clamp.hi)}};
}

}  // namespace dlc::numerics
