// Sums, products, changes of scale and concatenations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numerics/rewriter.h"

namespace dlc::numerics {

namespace {

std::string name_of(const Site& s) { return s.locations.empty() ? std::string("layer") : s.locations.front(); }

// A dim of one element is repeated, but not the channels: a vector is walked as it lies. Channels of columns are the
// last dim, so what is added to scores for each key is repeated over heads and places.
bool is_repeated(Rewriter& r, ValueId v, ValueId whole) {
  const auto &shape = r.graph().value(v).type.shape, &to = r.graph().value(whole).type.shape;
  if (shape == to) return true;
  if (shape.size() != to.size() || to.size() < 2) return false;
  return r.known_columns(whole) ? shape.back() == to.back() : shape[1] == to[1];
}

// Both operands quantised and of the result's shape, or one repeated: the second.
Result<Attempt<std::pair<Quantized, Quantized>>> operands(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto a, r.dequantized(n.inputs[0]));
  DLC_TRY(const auto b, r.dequantized(n.inputs[1]));
  if (!a || !b) return Refused{"an operand is not quantised per tensor"};
  const Graph& g = r.graph();
  const auto& shape = g.value(n.outputs[0]).type.shape;
  const auto whole = [&](const Quantized& q) { return g.value(q.value).type.shape == shape; };
  if (!whole(*a) && !whole(*b)) return Refused{"both operands are broadcast"};
  const auto both = whole(*a) ? std::pair{*a, *b} : std::pair{*b, *a};
  if (!is_repeated(r, both.second.value, both.first.value))
    return Refused{"an operand is broadcast along its channels"};
  return both;
}

// q at the site's scale; q itself when it has it already.
RuleResult at_scale(Rewriter& r, const Site& s, const Quantized& q) {
  const bool same_scale = std::abs(q.scale / s.scale - 1) * static_cast<double>(q.reach()) < 0.5;
  if (same_scale && q.zero == s.zero && s.clamp.lo == -128 && s.clamp.hi == 127) return q.value;
  DLC_TRY(const DType m_type, r.operand_type("requantize_s8", 1));
  DLC_TRY(const DType s_type, r.operand_type("requantize_s8", 2));
  const auto k = choose_multiplier(q.scale / s.scale, m_type, s_type);
  if (!k) return Refused{fmt::format("the scale ratio {} has no multiplier", q.scale / s.scale)};
  DLC_TRY(const ValueId m, r.scalar(m_type, k->m, name_of(s) + ".mul"));
  DLC_TRY(const ValueId shift, r.scalar(s_type, k->s, name_of(s) + ".shift"));
  Attrs attrs = r.output_attrs(s);
  attrs["from"] = Expr(q.zero);
  DLC_TRY(const ValueId y, on_elements(r, s, "requantize_s8", {q.value}, {m, shift}, std::move(attrs)));
  return y;
}

}  // namespace

RuleResult commit_sum(Rewriter& r, const Site& s) {
  DLC_TRY(const auto biased, commit_biased(r, s));
  if (biased) return biased;
  DLC_TRY(const auto both, operands(r, s));
  if (!both) return Refused{both.why()};
  const auto& [a, b] = *both;
  DLC_TRY(const DType a_type, r.operand_type("add_s8", 2));
  DLC_TRY(const DType b_type, r.operand_type("add_s8", 3));
  DLC_TRY(const DType s_type, r.operand_type("add_s8", 4));
  const auto k = choose_multipliers(a.scale / s.scale, b.scale / s.scale, a_type, b_type, s_type);
  if (!k) return Refused{"the scales have no common multiplier"};
  DLC_TRY(const ValueId ma, r.scalar(a_type, k->a, name_of(s) + ".mul_a"));
  DLC_TRY(const ValueId mb, r.scalar(b_type, k->b, name_of(s) + ".mul_b"));
  DLC_TRY(const ValueId shift, r.scalar(s_type, k->s, name_of(s) + ".shift"));
  Attrs attrs = r.output_attrs(s);
  attrs["a_zero"] = Expr(a.zero);
  attrs["b_zero"] = Expr(b.zero);
  DLC_TRY(const ValueId y, on_elements(r, s, "add_s8", {a.value, b.value}, {ma, mb, shift}, std::move(attrs)));
  return y;
}

RuleResult commit_mul(Rewriter& r, const Site& s) {
  DLC_TRY(const auto both, operands(r, s));
  if (!both) return Refused{both.why()};
  const auto& [a, b] = *both;
  DLC_TRY(const DType m_type, r.operand_type("mul_s8", 2));
  DLC_TRY(const DType s_type, r.operand_type("mul_s8", 3));
  const auto k = choose_multiplier(a.scale * b.scale / s.scale, m_type, s_type, 40);
  if (!k) return Refused{"the scales have no multiplier"};
  DLC_TRY(const ValueId m, r.scalar(m_type, k->m, name_of(s) + ".mul"));
  DLC_TRY(const ValueId shift, r.scalar(s_type, k->s, name_of(s) + ".shift"));
  Attrs attrs = r.output_attrs(s);
  attrs["a_zero"] = Expr(a.zero);
  attrs["b_zero"] = Expr(b.zero);
  DLC_TRY(const ValueId y, on_elements(r, s, "mul_s8", {a.value, b.value}, {m, shift}, std::move(attrs)));
  return y;
}

RuleResult commit_concat(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  std::vector<ValueId> parts;
  for (const ValueId v : n.inputs) {
    DLC_TRY(const auto q, r.dequantized(v));
    if (!q) return Refused{"an input is not quantised per tensor"};
    DLC_TRY(const auto part, at_scale(r, s, *q));
    if (!part) return Refused{part.why()};
    parts.push_back(*part);
  }
  DLC_TRY(const ValueId y, r.add("concat", std::move(parts), n.attrs, s));
  return y;
}

RuleResult commit_requantize(Rewriter& r, const Site& s) {
  DLC_TRY(const auto q, r.dequantized(r.graph().node(s.root).outputs[0]));
  if (!q) return Refused{"the value is not quantised per tensor"};
  return at_scale(r, s, *q);
}

}  // namespace dlc::numerics
