// Ops of transformers (opsets 23 and 24): attention, rotary positions, RMS normalisation.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;
using Exprs = std::vector<Expr>;

const TensorType& type_of(const NodeView& n, ValueId v) { return n.graph().value(v).type; }

Result<ValueId> reshaped(const NodeView& n, ValueId v, Exprs shape) {
  return n.emit("reshape", {v}, {{"shape", std::move(shape)}});
}

Result<Values> rms_norm(const NodeView& n) {
  DLC_TRY(const int64_t attr, n.attr_int("axis", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  return n.emit_all("rms_norm", {n.in(0), n.in(1)}, {{"axis", Expr(axis)}, {"epsilon", epsilon}});
}

// [batch, sequence, heads * size] as [batch, heads, sequence, size], and back.
Result<ValueId> split_heads(const NodeView& n, ValueId v, int64_t heads) {
  const Exprs shape = type_of(n, v).shape;
  const auto width = shape[2].constant();
  if (heads < 1 || !width || *width % heads != 0)
    return n.error(fmt::format("{} elements cannot be split into {} heads", to_string(shape[2]), heads));
  DLC_TRY(const ValueId y, reshaped(n, v, {shape[0], shape[1], heads, *width / heads}));
  return n.emit("transpose", {y}, {{"perm", Exprs{0, 2, 1, 3}}});
}
Result<ValueId> join_heads(const NodeView& n, ValueId v) {
  DLC_TRY(const ValueId y, n.emit("transpose", {v}, {{"perm", Exprs{0, 2, 1, 3}}}));
  const Exprs shape = type_of(n, y).shape;
  return reshaped(n, y, {shape[0], shape[1], shape[2] * shape[3]});
}

// Only the first elements of each head may turn.
Result<Values> rotary(const NodeView& n) {
  DLC_TRY(const int64_t interleaved, n.attr_int("interleaved", 0));
  DLC_TRY(const int64_t heads, n.attr_int("num_heads", 0));
  DLC_TRY(const int64_t part, n.attr_int("rotary_embedding_dim", 0));
  const bool joined = n.rank(0) == 3;
  if (!joined && n.rank(0) != 4) return n.error(fmt::format("the data has rank {}, 3 or 4 is needed", n.rank(0)));
  ValueId x = n.in(0);
  if (joined) {
    DLC_TRY(x, split_heads(n, x, heads));
  }
  const Exprs shape = type_of(n, x).shape;
  if (part < 0 || (shape[3].constant() && part > *shape[3].constant()))
    return n.error(fmt::format("attribute 'rotary_embedding_dim' is {}", part));
  Values tables{n.in(1), n.in(2)};
  ValueId positions = n.in(3);
  if (positions == kNoValue) {  // an angle for each element of each sequence
    const Expr count = shape[0] * shape[2];
    DLC_TRY(const ValueId zero, n.scalar(kS64, 0));
    DLC_TRY(const ValueId one, n.scalar(kS64, 1));
    DLC_TRY(positions, n.emit("range", {zero, one}, {{"count", count}}));
    DLC_TRY(positions, reshaped(n, positions, {shape[0], shape[2]}));
    for (ValueId& t : tables) {
      const Exprs table = type_of(n, t).shape;
      if (table.size() != 3) return n.error("without positions the tables need rank 3");
      DLC_TRY(t, reshaped(n, t, {count, table[2]}));
    }
  }
  const auto slice = [&](const Expr& from, const Expr& to) {
    Exprs start(4, Expr(0)), stop = shape;
    start[3] = from;
    stop[3] = to;
    return n.emit("slice", {x}, {{"start", start}, {"stop", stop}});
  };
  const bool whole = part == 0 || shape[3].is(part);
  ValueId turning = x;
  if (!whole) {
    DLC_TRY(turning, slice(0, part));
  }
  DLC_TRY(ValueId y,
          n.emit("rope", {turning, tables[0], tables[1], positions}, {{"interleaved", Expr(interleaved != 0)}}));
  if (!whole) {
    DLC_TRY(const ValueId rest, slice(part, shape[3]));
    DLC_TRY(y, n.emit("concat", {y, rest}, {{"axis", Expr(3)}}));
  }
  if (joined) {
    DLC_TRY(y, join_heads(n, y));
  }
  return Values{y};
}

// What is added to the scores: the mask, where the past ends, and where a sequence ends; kNoValue for nothing.
class Bias {
 public:
  Bias(const NodeView& n, DType type, Expr queries, Expr keys)
      : n_(n), type_(type), queries_(std::move(queries)), keys_(std::move(keys)) {}

  Result<> add(ValueId v) {
    if (sum_ == kNoValue) {
      sum_ = v;
      return {};
    }
    DLC_TRY(sum_, n_.emit("add", {sum_, v}));
    return {};
  }

  // -inf where a condition does not hold.
  Result<> add_condition(ValueId v) {
    DLC_TRY(const ValueId zero, n_.scalar(type_, 0));
    DLC_TRY(const ValueId never, n_.scalar(type_, -INFINITY));
    DLC_TRY(const ValueId y, n_.emit("where", {v, zero, never}));
    return add(y);
  }

  // [.., queries, keys]; one of fewer keys ends before the others.
  Result<> add_mask(ValueId mask) {
    const Exprs given = type_of(n_, mask).shape;
    if (given.size() < 2 || given.size() > 4) return n_.error("the mask needs rank 2 to 4");
    const bool condition = type_of(n_, mask).dtype.is_bool();
    if (condition) {
      DLC_TRY(const ValueId zero, n_.scalar(type_, 0));
      DLC_TRY(const ValueId never, n_.scalar(type_, -INFINITY));
      DLC_TRY(mask, n_.emit("where", {mask, zero, never}));
    }
    if (given.back() != keys_ && !given.back().is(1)) {
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

  // A query sees the past and what is not after itself.
  Result<> add_causal(const Expr& past) {
    DLC_TRY(const ValueId never, n_.scalar(type_, -INFINITY));
    DLC_TRY(const ValueId all, n_.emit("expand", {never}, {{"shape", Exprs{queries_, keys_}}}));
    DLC_TRY(const ValueId after, n_.emit("trilu", {all}, {{"k", past + 1}, {"upper", Expr(1)}}));
    DLC_TRY(const ValueId wide, reshaped(n_, after, {1, 1, queries_, keys_}));
    return add(wide);
  }

  // Each sequence of the batch has its own number of keys.
  Result<> add_lengths(ValueId lengths) {
    const Exprs batch = type_of(n_, lengths).shape;
    if (batch.size() != 1) return n_.error("the lengths need rank 1");
    DLC_TRY(const ValueId zero, n_.scalar(kS64, 0));
    DLC_TRY(const ValueId one, n_.scalar(kS64, 1));
    DLC_TRY(ValueId key, n_.emit("range", {zero, one}, {{"count", keys_}}));
    DLC_TRY(key, reshaped(n_, key, {1, 1, 1, keys_}));
    DLC_TRY(const ValueId ends, reshaped(n_, lengths, {batch[0], 1, 1, 1}));
    DLC_TRY(const ValueId inside, n_.emit("less", {key, ends}));
    return add_condition(inside);
  }

  ValueId sum() const { return sum_; }

 private:
  const NodeView& n_;
  DType type_;
  Expr queries_, keys_;
  ValueId sum_ = kNoValue;
};

// Each head as often as query heads share it.
Result<ValueId> repeated(const NodeView& n, ValueId v, const Expr& heads) {
  const Exprs shape = type_of(n, v).shape;
  if (shape[1] == heads) return v;
  const auto given = shape[1].constant(), wanted = heads.constant();
  if (!given || !wanted || *given < 1 || *wanted % *given != 0)
    return n.error(fmt::format("{} heads do not share {}", to_string(heads), to_string(shape[1])));
  DLC_TRY(ValueId y, n.emit("unsqueeze", {v}, {{"axes", Exprs{2}}}));
  DLC_TRY(y, n.emit("expand", {y}, {{"shape", Exprs{shape[0], shape[1], *wanted / *given, shape[2], shape[3]}}}));
  return reshaped(n, y, {shape[0], heads, shape[2], shape[3]});
}

// Step by step, where more is asked for than the record has: capped scores, or the scores themselves.
Result<Values> by_steps(const NodeView& n, ValueId q, ValueId k, ValueId v, ValueId bias, double scale, double cap,
                        int64_t mode) {
  const Expr heads = type_of(n, q).shape[1];
  const DType type = type_of(n, q).dtype;
  DLC_TRY(k, repeated(n, k, heads));
  DLC_TRY(v, repeated(n, v, heads));
  DLC_TRY(const ValueId turned, n.emit("transpose", {k}, {{"perm", Exprs{0, 1, 3, 2}}}));
  DLC_TRY(const ValueId factor, n.scalar(type, scale));
  DLC_TRY(const ValueId product, n.emit("matmul", {q, turned}));
  DLC_TRY(const ValueId raw, n.emit("mul", {product, factor}));
  ValueId capped = raw;
  if (cap > 0) {
    DLC_TRY(const ValueId limit, n.scalar(type, cap));
    DLC_TRY(capped, n.emit("div", {capped, limit}));
    DLC_TRY(capped, n.emit("tanh", {capped}));
    DLC_TRY(capped, n.emit("mul", {capped, limit}));
  }
  ValueId biased = capped;
  if (bias != kNoValue) {
    DLC_TRY(biased, n.emit("add", {capped, bias}));
  }
  DLC_TRY(const ValueId weights, n.emit("softmax", {biased}, {{"axis", Expr(3)}}));
  DLC_TRY(const ValueId y, n.emit("matmul", {weights, v}));
  const ValueId stages[] = {raw, capped, biased, weights};
  return Values{y, stages[mode]};
}

Result<Values> attention(const NodeView& n) {
  DLC_TRY(const int64_t causal, n.attr_int("is_causal", 0));
  DLC_TRY(const int64_t q_heads, n.attr_int("q_num_heads", 0));
  DLC_TRY(const int64_t kv_heads, n.attr_int("kv_num_heads", 0));
  DLC_TRY(const double cap, n.attr_float("softcap", 0.0));
  DLC_TRY(const int64_t mode, n.attr_int("qk_matmul_output_mode", 0));
  if (mode < 0 || mode > 3) return n.error(fmt::format("attribute 'qk_matmul_output_mode' is {}", mode));
  const int64_t rank = n.rank(0);
  if ((rank != 3 && rank != 4) || n.rank(1) != rank || n.rank(2) != rank)
    return n.error("queries, keys and values need rank 3 or 4");
  ValueId q = n.in(0), k = n.in(1), v = n.in(2);
  if (rank == 3) {
    DLC_TRY(q, split_heads(n, q, q_heads));
    DLC_TRY(k, split_heads(n, k, kv_heads));
    DLC_TRY(v, split_heads(n, v, kv_heads));
  }
  Expr past(0);
  if (n.has(4) != n.has(5)) return n.error("past keys and past values come together");
  if (n.has(4)) {
    if (n.rank(4) != 4 || n.rank(5) != 4) return n.error("past keys and values need rank 4");
    past = n.type(4).shape[2];
    DLC_TRY(k, n.emit("concat", {n.in(4), k}, {{"axis", Expr(2)}}));
    DLC_TRY(v, n.emit("concat", {n.in(5), v}, {{"axis", Expr(2)}}));
  }
  const TensorType queries = type_of(n, q);
  DLC_TRY(const double scale, n.attr_float("scale", 0.0));
  const auto size = queries.shape[3].constant();
  if (scale == 0 && (n.has_attr("scale") || !size)) return n.error("the scale is 0, or the size of a head not known");
  const double factor = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(*size));
  const Values present{k, v};
  Bias bias(n, queries.dtype, queries.shape[2], type_of(n, k).shape[2]);
  if (n.has(3)) DLC_CHECK(bias.add_mask(n.in(3)));
  if (causal != 0) DLC_CHECK(bias.add_causal(past));
  if (n.has(6)) DLC_CHECK(bias.add_lengths(n.in(6)));
  Values results;
  if (cap > 0 || n.wants(3)) {
    DLC_TRY(results, by_steps(n, q, k, v, bias.sum(), factor, cap, mode));
  } else {
    DLC_TRY(const ValueId y, n.emit("attention", {q, k, v, bias.sum()}, {{"scale", factor}}));
    results = {y, kNoValue};
  }
  if (rank == 3) {
    DLC_TRY(results[0], join_heads(n, results[0]));
  }
  return Values{results[0], present[0], present[1], results[1]};
}

Result<Values> swish(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 1.0));
  return n.emit_all("swish", {n.in(0)}, {{"alpha", alpha}});
}

constexpr OpEntry kTable[] = {
    {"", "RMSNormalization", rms_norm, "tt", "stash_type"},
    {"", "RotaryEmbedding", rotary, "tttT"},
    {"", "Attention", attention, "tttTTTT", "softmax_precision"},
    {"", "Swish", swish, "t"},
};

}  // namespace

std::span<const OpEntry> attention_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
