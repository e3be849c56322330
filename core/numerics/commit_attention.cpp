// Products of two activations, head by head. Heads are parts of the columns of one tensor, so that splitting them and
// putting them together again is only a place:
//
//   Q[h] = X[:, at + h*depth ..][:, depth]        scores: Y[h, t, m] = sum[k] Q[h, k, m] * K[h, k, t]
//   V[h] = X[:, at + h*depth ..][:, depth]        mix:    Y[h*depth + c, m] = sum[t] P[h, t, m] * V[h, c, t]
#include <fmt/format.h>

#include "core/numerics/rewriter.h"

namespace dlc::numerics {

namespace {

// Matrices of an operand, by head, that are columns [at, at + heads*depth) of a value [1, columns, rows].
struct Heads {
  ValueId value = kNoValue;
  int64_t at = 0, heads = 1, depth = 1;
};

// `channel`: the dim of the matrices [h, rows, columns] that runs over the channels of a head.
Result<std::optional<Heads>> heads_of(Rewriter& r, const Site& s, ValueId v, size_t channel) {
  const Copy c = r.from_origin(r.matrices(v, false));
  if (c.from_shape.size() != 3 || !c.from_shape[0].is(1)) return std::nullopt;
  const auto loop = [&](size_t d) { return c.result_shape[d].is(1) ? Expr(0) : Expr::symbol(c.loops[d]); };
  const auto heads = c.result_shape[0].constant(), depth = c.result_shape[channel].constant();
  if (!heads || !depth) return std::nullopt;
  const size_t place = 3 - channel;
  for (const size_t dim : {size_t{1}, size_t{2}}) {  // as columns, or as rows whose columns are made here
    if (!simplify(c.index[3 - dim] - loop(place), c.ranges).is(0)) continue;
    const auto at = simplify(c.index[dim] - loop(0) * *depth - loop(channel), c.ranges).constant();
    if (!at || c.from_shape[3 - dim] != c.result_shape[place]) continue;
    Heads h{c.from, *at, *heads, *depth};
    if (dim == 2) {
      DLC_TRY(h.value, r.columns(c.from, s));
    }
    return h;
  }
  return std::nullopt;
}

}  // namespace

RuleResult commit_attention(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto a, r.dequantized(n.inputs[0]));
  DLC_TRY(const auto b, r.dequantized(n.inputs[1]));
  if (!a || !b) return Refused{"an operand is not quantised per tensor"};
  const std::vector<Expr> shape = r.graph().value(n.outputs[0]).type.shape;
  const auto &left = r.graph().value(a->value).type.shape, &right = r.graph().value(b->value).type.shape;
  if (left.size() < 3 || left.size() != right.size() || left.size() != shape.size() ||
      !std::equal(left.begin(), left.end() - 2, right.begin()))
    return Refused{"the operands are not matrices of as many heads"};
  const auto terms = left.back().constant();
  if (const auto no = r.without({"scores", "mix", "rescale"})) return *no;
  DLC_TRY(const DType accumulator, r.operand_type("rescale", "A"));
  if (!terms || *terms > accumulator.max_value() / (a->reach() * b->reach()))
    return Refused{fmt::format("a sum of {} products of two activations may wrap", to_string(left.back()))};
  const auto reach = static_cast<double>(*terms * a->reach() * b->reach());
  DLC_TRY(const auto scale, r.scale("rescale", {{a->scale * b->scale / s.scale, reach}}, s));
  if (!scale) return Refused{scale.why()};

  Attrs attrs{{"a_zero", Expr(a->zero)}, {"b_zero", Expr(b->zero)}};
  const auto scaled = [&](ValueId acc) -> Result<ValueId> {
    return r.add("rescale", {acc, (*scale)[0], (*scale)[1]}, r.output_attrs(s), s);
  };
  DLC_TRY(const auto keys, heads_of(r, s, b->value, 1));  // [h, k, t]: its terms are channels
  if (keys) {
    DLC_TRY(const auto queries, heads_of(r, s, a->value, 2));
    if (!queries) return Refused{"the left operand has no heads that are columns of one tensor"};
    attrs["heads"] = Expr(keys->heads);
    attrs["depth"] = Expr(keys->depth);
    attrs["a_at"] = Expr(queries->at);
    attrs["b_at"] = Expr(keys->at);
    DLC_TRY(const ValueId acc, r.add("scores", {queries->value, keys->value}, std::move(attrs), s));
    DLC_TRY(const ValueId y, scaled(acc));
    DLC_TRY(const ValueId rows, r.rows(y, shape, s));
    return rows;
  }
  DLC_TRY(const auto values, heads_of(r, s, b->value, 2));  // [h, t, c]: its terms are rows
  if (!values) return Refused{"the right operand has no heads that are columns of one tensor"};
  DLC_TRY(const ValueId weights, r.columns(a->value, s));
  attrs["depth"] = Expr(values->depth);
  attrs["b_at"] = Expr(values->at);
  DLC_TRY(const ValueId acc, r.add("mix", {weights, values->value}, std::move(attrs), s));
  DLC_TRY(ValueId y, scaled(acc));
  const std::vector<Expr> columns = r.graph().value(y).type.shape;
  DLC_TRY(const ValueId heads,
          r.add("reshape", {y}, {{"shape", std::vector<Expr>{values->heads, values->depth, columns.back()}}}, s));
  DLC_TRY(const ValueId rows, r.rows(heads, shape, s));
  r.remember_columns(y);
  return rows;
}

}  // namespace dlc::numerics
