#include "frontends/onnx/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

using Values = std::vector<ValueId>;

const TensorType& type_of(const NodeView& n, ValueId v) { return n.graph().value(v).type; }

Result<ValueId> reshaped(const NodeView& n, ValueId v, Exprs shape) {
  return n.emit("reshape", {v}, {{"shape", std::move(shape)}});
}

Result<ValueId> sliced(const NodeView& n, ValueId v, size_t axis, const Expr& from, const Expr& to) {
  Exprs stop = type_of(n, v).shape;
  Exprs start(stop.size(), Expr(0));
  start[axis] = from;
  stop[axis] = to;
  return n.emit("slice", {v}, {{"start", start}, {"stop", stop}});
}

Result<ValueId> split_heads(const NodeView& n, ValueId v, int64_t heads) {
  const Exprs shape = type_of(n, v).shape;
  const auto width = shape[2].constant();
  if (heads < 1 || (width && *width % heads != 0))
    return n.error(fmt::format("{} elements cannot be split into {} heads", to_string(shape[2]), heads));
  DLC_TRY(const ValueId y, reshaped(n, v, {shape[0], shape[1], heads, floor_div(shape[2], heads)}));
  return n.emit("transpose", {y}, {{"perm", Exprs{0, 2, 1, 3}}});
}
Result<ValueId> join_heads(const NodeView& n, ValueId v) {
  DLC_TRY(const ValueId y, n.emit("transpose", {v}, {{"perm", Exprs{0, 2, 1, 3}}}));
  const Exprs shape = type_of(n, y).shape;
  return reshaped(n, y, {shape[0], shape[1], shape[2] * shape[3]});
}

Result<ValueId> positions(const NodeView& n, const Expr& count, ValueId first) {
  DLC_TRY(const ValueId zero, n.scalar(kS64, 0));
  DLC_TRY(const ValueId one, n.scalar(kS64, 1));
  return n.emit("range", {first == kNoValue ? zero : first, one}, {{"count", count}});
}

Bias::Bias(const NodeView& n, DType type, Expr queries, Expr keys)
    : n_(n), type_(type), queries_(std::move(queries)), keys_(std::move(keys)) {}

Result<> Bias::add(ValueId v) {
  if (sum_ == kNoValue) {
    sum_ = v;
    return {};
  }
  DLC_TRY(sum_, n_.emit("add", {sum_, v}));
  return {};
}

Result<> Bias::add_condition(ValueId v) { return add_condition(v, -INFINITY); }
Result<> Bias::add_condition(ValueId v, double otherwise) {
  DLC_TRY(const ValueId zero, n_.scalar(type_, 0));
  DLC_TRY(const ValueId never, n_.scalar(type_, otherwise));
  DLC_TRY(const ValueId y, n_.emit("where", {v, zero, never}));
  return add(y);
}

Result<> Bias::add_mask(ValueId mask) {
  const Exprs given = type_of(n_, mask).shape;
  if (given.empty() || given.size() > 4) return n_.error("the mask needs rank 1 to 4");
  const bool condition = type_of(n_, mask).dtype.is_bool();
  if (condition) {
    DLC_TRY(const ValueId zero, n_.scalar(type_, 0));
    DLC_TRY(const ValueId never, n_.scalar(type_, -INFINITY));
    DLC_TRY(mask, n_.emit("where", {mask, zero, never}));
  }
  if (given.back() != keys_) {
    Exprs lo(given.size(), Expr(0)), hi = lo;
    hi.back() = keys_ - given.back();
    DLC_TRY(const ValueId never, n_.scalar(type_, -INFINITY));
    DLC_TRY(mask, n_.emit("pad", {mask, never}, {{"lo", lo}, {"hi", hi}}));
  }
  Exprs wide = type_of(n_, mask).shape;
  wide.insert(wide.begin(), 4 - wide.size(), Expr(1));
  DLC_TRY(mask, reshaped(n_, mask, std::move(wide)));
  return add(mask);
}

Result<> Bias::add_causal(const Expr& past) {
  DLC_TRY(const ValueId never, n_.scalar(type_, -INFINITY));
  DLC_TRY(const ValueId all, n_.emit("expand", {never}, {{"shape", Exprs{queries_, keys_}}}));
  DLC_TRY(const ValueId after, n_.emit("trilu", {all}, {{"k", past + 1}, {"upper", Expr(1)}}));
  DLC_TRY(const ValueId wide, reshaped(n_, after, {1, 1, queries_, keys_}));
  return add(wide);
}

Result<> Bias::add_lengths(ValueId lengths) { return add_lengths(lengths, -INFINITY); }
Result<> Bias::add_lengths(ValueId lengths, double otherwise) {
  const Exprs batch = type_of(n_, lengths).shape;
  if (batch.size() != 1) return n_.error("the lengths need rank 1");
  DLC_TRY(ValueId key, positions(n_, keys_));
  DLC_TRY(key, reshaped(n_, key, {1, 1, 1, keys_}));
  DLC_TRY(const ValueId ends, reshaped(n_, lengths, {batch[0], 1, 1, 1}));
  DLC_TRY(const ValueId inside, n_.emit("less", {key, ends}));
  return add_condition(inside, otherwise);
}

namespace {

// Each head as often as query heads share it.
Result<ValueId> repeated(const NodeView& n, ValueId v, const Expr& heads) {
  const Exprs shape = type_of(n, v).shape;
  if (shape[1] == heads) return v;
  const auto given = shape[1].constant(), wanted = heads.constant();
  if (given && wanted && (*given < 1 || *wanted % *given != 0))
    return n.error(fmt::format("{} heads do not share {}", to_string(heads), to_string(shape[1])));
  DLC_TRY(ValueId y, n.emit("unsqueeze", {v}, {{"axes", Exprs{2}}}));
  DLC_TRY(
      y, n.emit("expand", {y}, {{"shape", Exprs{shape[0], shape[1], floor_div(heads, shape[1]), shape[2], shape[3]}}}));
  return reshaped(n, y, {shape[0], heads, shape[2], shape[3]});
}

}  // namespace

Result<Values> attend(const NodeView& n, ValueId q, ValueId k, ValueId v, ValueId bias, const Scores& scores) {
  const Expr size = type_of(n, q).shape[3];
  std::optional<double> scale = scores.scale;
  if (const auto known = size.constant(); !scale && known) scale = *known > 0 ? 1 / std::sqrt(double(*known)) : 0;
  const bool plain =
      scores.cap <= 0 && !scores.wanted && scores.sink == kNoValue && !scores.change_scores && !scores.change_weights;
  if (plain && scale != 0) {  // to the record, 0 means a scale by the size
    DLC_TRY(const ValueId y, n.emit("attention", {q, k, v, bias}, {{"scale", scale.value_or(0)}}));
    return Values{y, kNoValue};
  }
  // Step by step, where more is asked for than the record has.
  const Expr heads = type_of(n, q).shape[1];
  const DType type = type_of(n, q).dtype;
  DLC_TRY(k, repeated(n, k, heads));
  DLC_TRY(v, repeated(n, v, heads));
  DLC_TRY(const ValueId turned, n.emit("transpose", {k}, {{"perm", Exprs{0, 1, 3, 2}}}));
  ValueId factor = kNoValue;
  if (scale) {
    DLC_TRY(factor, n.scalar(type, *scale));
  } else {
    DLC_TRY(factor, n.emit("shape", {q}, {{"start", Expr(3)}, {"end", Expr(4)}}));
    DLC_TRY(factor, n.emit("cast", {factor}, {{"to", type}}));
    DLC_TRY(factor, n.emit("rsqrt", {factor}));
  }
  DLC_TRY(const ValueId product, n.emit("matmul", {q, turned}));
  DLC_TRY(const ValueId raw, n.emit("mul", {product, factor}));
  ValueId capped = raw;
  if (scores.cap > 0) {
    DLC_TRY(const ValueId limit, n.scalar(type, scores.cap));
    DLC_TRY(capped, n.emit("div", {capped, limit}));
    DLC_TRY(capped, n.emit("tanh", {capped}));
    DLC_TRY(capped, n.emit("mul", {capped, limit}));
  }
  ValueId biased = capped;
  if (bias != kNoValue) {
    DLC_TRY(biased, n.emit("add", {capped, bias}));
  }
  if (scores.change_scores) {
    DLC_TRY(biased, scores.change_scores(biased));
  }
  ValueId all = biased;
  const Exprs shape = type_of(n, biased).shape;
  if (scores.sink != kNoValue) {
    DLC_TRY(ValueId sink, reshaped(n, scores.sink, {1, heads, 1, 1}));
    DLC_TRY(sink, n.emit("expand", {sink}, {{"shape", Exprs{shape[0], heads, shape[2], 1}}}));
    DLC_TRY(all, n.emit("concat", {biased, sink}, {{"axis", Expr(3)}}));
  }
  DLC_TRY(ValueId weights, n.emit("softmax", {all}, {{"axis", Expr(3)}}));
  if (scores.sink != kNoValue) {
    DLC_TRY(weights, sliced(n, weights, 3, 0, shape[3]));
  } else if (bias != kNoValue) {  // a query that sees no key
    DLC_TRY(const ValueId most, n.emit("reduce_max", {bias}, {{"axes", Exprs{3}}, {"keepdims", Expr(1)}}));
    DLC_TRY(const ValueId never, n.scalar(type, -INFINITY));
    DLC_TRY(const ValueId zero, n.scalar(type, 0));
    DLC_TRY(const ValueId none, n.emit("equal", {most, never}));
    DLC_TRY(weights, n.emit("where", {none, zero, weights}));
  }
  if (scores.change_weights) {
    DLC_TRY(weights, scores.change_weights(weights));
  }
  DLC_TRY(const ValueId y, n.emit("matmul", {weights, v}));
  const ValueId stages[] = {raw, capped, biased, weights};
  return Values{y, stages[scores.stage]};
}

Result<ValueId> turned(const NodeView& n, ValueId x, ValueId cos, ValueId sin, ValueId positions, const Expr& part,
                       bool interleaved) {
  const Expr size = type_of(n, x).shape[3];
  if (const auto more = (part - size).constant(); part.is(0) || (more && *more > 0))
    return n.error(fmt::format("{} elements of a head of {} cannot turn", to_string(part), to_string(size)));
  const Attrs attrs{{"interleaved", Expr(interleaved)}};
  if (part == size) return n.emit("rope", {x, cos, sin, positions}, attrs);
  DLC_TRY(const ValueId turning, sliced(n, x, 3, 0, part));
  DLC_TRY(const ValueId y, n.emit("rope", {turning, cos, sin, positions}, attrs));
  DLC_TRY(const ValueId rest, sliced(n, x, 3, part, size));
  return n.emit("concat", {y, rest}, {{"axis", Expr(3)}});
}

}  // namespace dlc::onnx_frontend
