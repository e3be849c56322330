// Sums, products, changes of scale and concatenations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numerics/rewriter.h"

namespace dlc::numerics {

namespace {

double reach(const Quantized& q) { return static_cast<double>(q.reach()); }

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
  if (const auto no = r.without({"requantize_s8"})) return *no;
  DLC_TRY(const auto scale, r.scale("requantize_s8", {{q.scale / s.scale, reach(q)}}, s));
  if (!scale) return Refused{scale.why()};
  Attrs attrs = r.output_attrs(s);
  attrs["from"] = Expr(q.zero);
  DLC_TRY(const ValueId y, on_elements(r, s, "requantize_s8", {q.value}, *scale, std::move(attrs)));
  return y;
}

}  // namespace

RuleResult commit_sum(Rewriter& r, const Site& s) {
  DLC_TRY(const auto biased, commit_biased(r, s));
  if (biased) return biased;
  DLC_TRY(const auto both, operands(r, s));
  if (!both) return Refused{both.why()};
  const auto& [a, b] = *both;
  if (const auto no = r.without({"add_s8"})) return *no;
  DLC_TRY(const auto scale, r.scale("add_s8", {{a.scale / s.scale, reach(a)}, {b.scale / s.scale, reach(b)}}, s));
  if (!scale) return Refused{scale.why()};
  Attrs attrs = r.output_attrs(s);
  attrs["a_zero"] = Expr(a.zero);
  attrs["b_zero"] = Expr(b.zero);
  DLC_TRY(const ValueId y, on_elements(r, s, "add_s8", {a.value, b.value}, *scale, std::move(attrs)));
  return y;
}

RuleResult commit_mul(Rewriter& r, const Site& s) {
  DLC_TRY(const auto both, operands(r, s));
  if (!both) return Refused{both.why()};
  const auto& [a, b] = *both;
  if (const auto no = r.without({"mul_s8"})) return *no;
  DLC_TRY(const auto scale, r.scale("mul_s8", {{a.scale * b.scale / s.scale, reach(a) * reach(b)}}, s));
  if (!scale) return Refused{scale.why()};
  Attrs attrs = r.output_attrs(s);
  attrs["a_zero"] = Expr(a.zero);
  attrs["b_zero"] = Expr(b.zero);
  DLC_TRY(const ValueId y, on_elements(r, s, "mul_s8", {a.value, b.value}, *scale, std::move(attrs)));
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
