// Ops of transformers (opsets 23 and 24): attention, rotary positions, RMS normalisation.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/attention.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;
Result<Values> rms_norm(const NodeView& n) {
  DLC_TRY(const int64_t attr, n.attr_int("axis", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  return n.emit_all("rms_norm", {n.in(0), n.in(1)}, {{"axis", Expr(axis)}, {"epsilon", epsilon}});
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
  Values tables{n.in(1), n.in(2)};
  ValueId at = n.in(3);
  if (at == kNoValue) {  // an angle for each element of each sequence
    const Expr count = shape[0] * shape[2];
    DLC_TRY(at, positions(n, count));
    DLC_TRY(at, reshaped(n, at, {shape[0], shape[2]}));
    for (ValueId& t : tables) {
      const Exprs table = type_of(n, t).shape;
      if (table.size() != 3) return n.error("without positions the tables need rank 3");
      DLC_TRY(t, reshaped(n, t, {count, table[2]}));
    }
  }
  DLC_TRY(ValueId y, turned(n, x, tables[0], tables[1], at, part == 0 ? shape[3] : Expr(part), interleaved != 0));
  if (joined) {
    DLC_TRY(y, join_heads(n, y));
  }
  return Values{y};
}

// Which keys lie near enough to a query. Its own place is behind the past, or at the end of its sequence's keys.
Result<> add_window(const NodeView& n, Bias& bias, const Expr& queries, const Expr& past, const Expr& keys) {
  DLC_TRY(const int64_t causal, n.attr_int("is_causal", 0));
  DLC_TRY(const int64_t left, n.attr_int("left_window_size", -1));
  DLC_TRY(int64_t right, n.attr_int("right_window_size", -1));
  if (left < -1 || right < -1) return n.error("a window of less than -1");
  if (left == -1 && right == -1 && !n.has(6)) return causal != 0 ? bias.add_causal(past) : Result<>();
  if (causal != 0) right = 0;
  if (left == -1 && right == -1) return {};
  DLC_TRY(ValueId own, positions(n, queries));
  DLC_TRY(own, reshaped(n, own, {1, 1, queries, 1}));
  ValueId offset = kNoValue;
  if (n.has(6)) {
    DLC_TRY(const ValueId count,
            n.emit("shape", {n.in(0)}, {{"start", Expr(n.rank(0) - 2)}, {"end", Expr(n.rank(0) - 1)}}));
    DLC_TRY(offset, n.emit("sub", {n.in(6), count}));
    DLC_TRY(offset, reshaped(n, offset, {n.type(6).shape[0], 1, 1, 1}));
  } else if (n.has(4)) {
    DLC_TRY(offset, n.emit("shape", {n.in(4)}, {{"start", Expr(2)}, {"end", Expr(3)}}));
  }
  if (offset != kNoValue) {
    DLC_TRY(own, n.emit("add", {own, offset}));
  }
  DLC_TRY(const ValueId key, positions(n, keys));
  DLC_TRY(const ValueId before, n.emit("sub", {own, key}));  // how far a key lies before the query
  for (const auto& [most, sign] : {std::pair(left, 1), std::pair(right, -1)}) {
    if (most == -1) continue;
    DLC_TRY(const ValueId bound, n.scalar(kS64, static_cast<double>(std::min<int64_t>(most, int64_t{1} << 40) * sign)));
    DLC_TRY(const ValueId near, n.emit(sign > 0 ? "less_equal" : "greater_equal", {before, bound}));
    DLC_CHECK(bias.add_condition(near));
  }
  return {};
}

Result<Values> attention(const NodeView& n) {
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
  if (n.has(4) && n.has(6)) return n.error("past keys and the lengths of a cache exclude each other");
  if (n.has(6) && n.rank(6) != 1) return n.error("the lengths need rank 1");
  if (n.has(4)) {
    if (n.rank(4) != 4 || n.rank(5) != 4) return n.error("past keys and values need rank 4");
    past = n.type(4).shape[2];
    DLC_TRY(k, n.emit("concat", {n.in(4), k}, {{"axis", Expr(2)}}));
    DLC_TRY(v, n.emit("concat", {n.in(5), v}, {{"axis", Expr(2)}}));
  }
  const TensorType queries = type_of(n, q);
  const Values present{k, v};
  Bias bias(n, queries.dtype, queries.shape[2], type_of(n, k).shape[2]);
  if (n.has(3)) DLC_CHECK(bias.add_mask(n.in(3)));
  DLC_CHECK(add_window(n, bias, queries.shape[2], past, type_of(n, k).shape[2]));
  if (n.has(6)) DLC_CHECK(bias.add_lengths(n.in(6)));
  Scores scores{.cap = cap, .wanted = n.wants(3), .stage = mode};
  if (n.has_attr("scale")) {
    DLC_TRY(scores.scale, n.attr_float("scale", {}));
  }
  DLC_TRY(Values results, attend(n, q, k, v, bias.sum(), scores));
  if (rank == 3) {
    DLC_TRY(results[0], join_heads(n, results[0]));
  }
  return Values{results[0], present[0], present[1], results[1]};
}

// Two bodies of nodes may change the scores and the weights, in the type that softmax is computed in.
Result<Values> flex_attention(const NodeView& n) {
  for (const size_t i : {0, 1, 2})
    if (n.rank(i) != 4) return n.error("queries, keys and values need rank 4");
  const TensorType queries = n.type(0);
  DLC_TRY(const int64_t precision, n.attr_int("softmax_precision", 0));
  DType type = queries.dtype == kF64 ? kF64 : kF32;
  if (precision != 0) {
    DLC_TRY(type, element_type(static_cast<int>(std::clamp<int64_t>(precision, 0, 1000)), n.loc()));
  }
  Values in{n.in(0), n.in(1), n.in(2)};
  for (ValueId& v : in)
    if (type_of(n, v).dtype != type) {
      DLC_TRY(v, n.emit("cast", {v}, {{"to", type}}));
    }
  const auto change = [&](const char* name) -> std::function<Result<ValueId>(ValueId)> {
    if (!n.has_attr(name)) return {};
    return [&n, name](ValueId v) -> Result<ValueId> {
      DLC_TRY(const onnx::GraphProto* body, n.attr_graph(name));
      DLC_TRY(const Values y, n.inlined(*body, {v}));
      if (y.size() != 1) return n.error(fmt::format("body '{}' has {} results, 1 is needed", name, y.size()));
      DLC_CHECK(n.check_tensors(y));
      if (type_of(n, y[0]) != type_of(n, v))
        return n.error(
            fmt::format("body '{}' makes {} of {}", name, to_string(type_of(n, y[0])), to_string(type_of(n, v))));
      return y[0];
    };
  };
  Scores scores;
  if (n.has_attr("scale")) {
    DLC_TRY(scores.scale, n.attr_float("scale", {}));
  }
  scores.change_scores = change("score_mod");
  scores.change_weights = change("prob_mod");
  DLC_TRY(const Values y, attend(n, in[0], in[1], in[2], kNoValue, scores));
  if (type == queries.dtype) return Values{y[0]};
  return n.emit_all("cast", {y[0]}, {{"to", queries.dtype}});
}

// The record has heads in a dim of their own.
Result<Values> linear_attention(const NodeView& n) {
  DLC_TRY(const int64_t window, n.attr_int("state_window", 0));  // of com.microsoft
  if (window != 0) return n.error("attribute 'state_window' is not supported");
  DLC_TRY(const int64_t q_heads, n.attr_int("q_num_heads", {}));
  DLC_TRY(const int64_t kv_heads, n.attr_int("kv_num_heads", {}));
  DLC_TRY(const double scale, n.attr_float("scale", 0.0));
  DLC_TRY(const std::string rule, n.attr_string("update_rule", "gated_delta"));
  const bool decays = rule == "gated" || rule == "gated_delta", replaces = rule == "delta" || rule == "gated_delta";
  if (!decays && !replaces && rule != "linear") return n.error(fmt::format("attribute 'update_rule' is '{}'", rule));
  if (n.has(4) != decays) return n.error(fmt::format("rule '{}' and the decay do not go together", rule));
  if (n.has(5) != replaces) return n.error(fmt::format("rule '{}' and beta do not go together", rule));
  const auto split = [&](size_t input, int64_t heads) -> Result<ValueId> {
    if (n.rank(input) != 3) return n.error(fmt::format("input {} needs rank 3", input));
    const Exprs shape = n.type(input).shape;
    const auto width = shape[2].constant();
    if (heads < 1 || (width && *width % heads != 0))
      return n.error(fmt::format("{} elements cannot be split into {} heads", to_string(shape[2]), heads));
    return reshaped(n, n.in(input), {shape[0], shape[1], heads, floor_div(shape[2], heads)});
  };
  Values in(6, kNoValue);
  in[3] = n.in(3);
  in[5] = n.in(5);
  DLC_TRY(in[0], split(0, q_heads));
  for (const size_t i : {1, 2, 4}) {
    if (!n.has(i)) continue;
    DLC_TRY(in[i], split(i, kv_heads));
  }
  DLC_TRY(Values y, n.emit_all("linear_attention", in, {{"scale", scale}}));
  const Exprs shape = type_of(n, y[0]).shape;
  DLC_TRY(y[0], reshaped(n, y[0], {shape[0], shape[1], shape[2] * shape[3]}));
  const DType state = n.has(3) ? n.type(3).dtype : n.type(0).dtype;
  if (type_of(n, y[1]).dtype != state) {
    DLC_TRY(y[1], n.emit("cast", {y[1]}, {{"to", state}}));
  }
  return y;
}

// A convolution of each channel over the last elements before; what the next step needs of them is the state.
Result<Values> causal_conv(const NodeView& n) {
  DLC_TRY(const std::string activation, n.attr_string("activation", "none"));
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.error(fmt::format("attribute 'activation' is '{}'", activation));
  if (n.rank(0) != 3 || n.rank(1) != 3) return n.error("data and weight need rank 3");
  // com.microsoft's has more attributes.
  DLC_TRY(const int64_t dilation, n.attr_int("dilation", 1));
  if (dilation < 1 || dilation > INT32_MAX) return n.error(fmt::format("attribute 'dilation' is {}", dilation));
  for (const auto& [name, plain] : {std::pair("ndim", 1), std::pair("channels_last", 0), std::pair("state_window", 0),
                                    std::pair("state_length", 0), std::pair("state_update_capacity", 0)}) {
    DLC_TRY(const int64_t v, n.attr_int(name, plain));
    if (v != plain) return n.error(fmt::format("attribute '{}' is {}, which is not supported", name, v));
  }
  const Exprs data = n.type(0).shape;
  const Expr length = data[2], before = (n.type(1).shape[2] - 1) * dilation;
  ValueId x = n.in(0);
  if (n.has(3)) {
    DLC_TRY(const ValueId past, reshaped(n, n.in(3), {data[0], data[1], before}));
    DLC_TRY(x, n.emit("concat", {past, x}, {{"axis", Expr(2)}}));
  } else {
    DLC_TRY(x, n.emit("pad", {x, kNoValue}, {{"lo", Exprs{0, 0, before}}, {"hi", Exprs{0, 0, 0}}}));
  }
  ValueId y = n.in(0);  // no steps, no results
  if (!length.is(0)) {
    DLC_TRY(y, n.emit("conv", {x, n.in(1), n.in(2)}, {{"group", n.type(0).shape[1]}, {"dilation", Exprs{dilation}}}));
  }
  if (activation != "none") {
    DLC_TRY(y, n.emit("swish", {y}));
  }
  DLC_TRY(const ValueId state, sliced(n, x, 2, length, length + before));
  return Values{y, state};
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
    {"ai.onnx.preview", "FlexAttention", flex_attention, "ttt"},
    {"", "LinearAttention", linear_attention, "tttTTT", "chunk_size"},
    {"", "CausalConvWithState", causal_conv, "ttTT"},
    {"com.microsoft", "LinearAttention", linear_attention, "tttTTT", "chunk_size"},
    {"com.microsoft", "CausalConvWithState", causal_conv, "ttTT"},
};

}  // namespace

std::span<const OpEntry> attention_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
