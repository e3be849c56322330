// onnxruntime's forms of attention (com.microsoft): over packed or separate heads, with masks, pasts and rotary
// positions.
#include <fmt/format.h>

#include <optional>

#include "frontends/onnx/attention.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<> refuse_attribute(const NodeView& n, const char* name, int64_t most) {
  DLC_TRY(const int64_t v, n.attr_int(name, 0));
  if (v > most) return n.error(fmt::format("attribute '{}' is {}, which is not supported", name, v));
  return {};
}
Result<> refuse_inputs(const NodeView& n, size_t from) {
  for (size_t i = from; i < n.input_count(); ++i)
    if (n.has(i)) return n.error(fmt::format("input {} is not supported", i));
  return {};
}

// 0 is by the size of a head.
Result<std::optional<double>> scale_of(const NodeView& n) {
  DLC_TRY(const double scale, n.attr_float("scale", 0.0));
  return scale != 0 ? std::optional(scale) : std::nullopt;
}

// `after` behind `before`, along the sequence.
Result<ValueId> joined(const NodeView& n, ValueId before, ValueId after) {
  return n.emit("concat", {before, after}, {{"axis", Expr(2)}});
}

// Where keys are hidden: key lengths [batch], lengths and starts [2 batch], or a mask [batch, (queries,) keys] of 0
// and 1.
Result<> add_padding(const NodeView& n, Bias& bias, ValueId mask, const Expr& batch, const Expr& keys, double hidden) {
  const Exprs shape = type_of(n, mask).shape;
  if (shape.size() == 1) {
    DLC_TRY(const ValueId at, n.emit("cast", {mask}, {{"to", kS64}}));
    if (shape[0] == batch) return bias.add_lengths(at, hidden);
    if (shape[0] != batch * 2)
      return n.error(fmt::format("a mask of {} elements is not supported", to_string(shape[0])));
    DLC_TRY(const ValueId ends, sliced(n, at, 0, 0, batch));
    DLC_TRY(ValueId starts, sliced(n, at, 0, batch, batch * 2));
    DLC_TRY(starts, reshaped(n, starts, {batch, 1, 1, 1}));
    DLC_TRY(const ValueId end, reshaped(n, ends, {batch, 1, 1, 1}));
    DLC_TRY(const ValueId key, positions(n, keys));
    DLC_TRY(const ValueId before, n.emit("less", {key, end}));
    DLC_TRY(const ValueId from, n.emit("greater_equal", {key, starts}));
    DLC_TRY(const ValueId seen, n.emit("logical_and", {before, from}));
    return bias.add_condition(seen, hidden);
  }
  if (shape.size() > 3) return n.error(fmt::format("a mask of rank {} is not supported", shape.size()));
  DLC_TRY(const ValueId zero, n.scalar(type_of(n, mask).dtype, 0));
  DLC_TRY(ValueId seen, n.emit("greater", {mask, zero}));
  DLC_TRY(seen, reshaped(n, seen,
                         shape.size() == 2 ? Exprs{shape[0], 1, 1, shape[1]} : Exprs{shape[0], 1, shape[1], shape[2]}));
  return bias.add_condition(seen, hidden);
}

// Q, K and V side by side in the last dim.
Result<Values> split_last(const NodeView& n, ValueId v, const Exprs& sizes) {
  const size_t last = type_of(n, v).shape.size() - 1;
  Values parts;
  Expr at(0);
  for (const Expr& size : sizes) {
    DLC_TRY(const ValueId part, sliced(n, v, last, at, at + size));
    parts.push_back(part);
    at = at + size;
  }
  return parts;
}

// input, weights, bias, mask, past [2, batch, heads, sequence, size], what is added to the scores.
Result<Values> attention(const NodeView& n) {
  DLC_CHECK(refuse_inputs(n, 6));
  for (const char* a : {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"})
    DLC_CHECK(refuse_attribute(n, a, 0));
  DLC_TRY(const int64_t heads, n.attr_int("num_heads", {}));
  DLC_TRY(const int64_t causal, n.attr_int("unidirectional", 0));
  DLC_TRY(const double hidden, n.attr_float("mask_filter_value", -10000.0));
  if (n.rank(0) != 3 || n.rank(1) != 2) return n.error("the input needs rank 3, the weights rank 2");
  const Expr width = n.type(1).shape[1];
  DLC_TRY(const auto given, n.attr_ints("qkv_hidden_sizes", std::vector<int64_t>{}));
  const Exprs sizes = given.empty() ? Exprs(3, floor_div(width, 3)) : to_exprs(given);
  const auto rest = sizes.size() == 3 ? (width - sizes[0] - sizes[1] - sizes[2]).constant() : std::nullopt;
  if (sizes.size() != 3 || (rest && *rest != 0))
    return n.error(fmt::format("queries, keys and values do not make up the weights' width {}", to_string(width)));
  DLC_TRY(ValueId all, n.emit("matmul", {n.in(0), n.in(1)}));
  if (n.has(2)) {
    DLC_TRY(all, n.emit("add", {all, n.in(2)}));
  }
  DLC_TRY(Values qkv, split_last(n, all, sizes));
  for (ValueId& v : qkv) {
    DLC_TRY(v, split_heads(n, v, heads));
  }
  Expr past(0);
  if (n.has(4)) {
    const Exprs shape = n.type(4).shape;
    if (shape.size() != 5) return n.error("the past needs rank 5");
    past = shape[3];
    for (const int64_t i : {0, 1}) {
      DLC_TRY(ValueId before, sliced(n, n.in(4), 0, i, i + 1));
      DLC_TRY(before, reshaped(n, before, Exprs(shape.begin() + 1, shape.end())));
      DLC_TRY(qkv[static_cast<size_t>(i + 1)], joined(n, before, qkv[static_cast<size_t>(i + 1)]));
    }
  }
  const TensorType q = type_of(n, qkv[0]), k = type_of(n, qkv[1]);
  Bias bias(n, q.dtype, q.shape[2], k.shape[2]);
  if (n.has(3)) DLC_CHECK(add_padding(n, bias, n.in(3), q.shape[0], k.shape[2], hidden));
  if (causal != 0) DLC_CHECK(bias.add_causal(past));
  if (n.has(5)) DLC_CHECK(bias.add(n.in(5)));
  DLC_TRY(const auto scale, scale_of(n));
  DLC_TRY(const Values results, attend(n, qkv[0], qkv[1], qkv[2], bias.sum(), {.scale = scale}));
  Values y(2, kNoValue);
  DLC_TRY(y[0], join_heads(n, results[0]));
  if (!n.wants(1)) return y;
  Values present;
  for (const size_t i : {1, 2}) {
    DLC_TRY(const ValueId part, n.emit("unsqueeze", {qkv[i]}, {{"axes", Exprs{0}}}));
    present.push_back(part);
  }
  DLC_TRY(y[1], n.emit("concat", present, {{"axis", Expr(0)}}));
  return y;
}

// Queries, keys and values as heads; K and V may be in one tensor, or all three.
Result<Values> heads_of(const NodeView& n, int64_t heads) {
  Values v{n.in(0), n.in(1), n.in(2)};
  if (!n.has(0)) return n.error("input 0 is missing");
  const size_t packed = n.rank(0) == 5 ? 0 : 1;  // [batch, sequence, heads, 2 or 3, size]
  if (n.rank(0) == 5 || (n.has(1) && n.rank(1) == 5)) {
    const Exprs shape = n.type(packed).shape;
    for (size_t i = packed; i < 3; ++i) {
      const auto part = static_cast<int64_t>(i - packed);
      DLC_TRY(v[i], sliced(n, n.in(packed), 3, part, part + 1));
      DLC_TRY(v[i], reshaped(n, v[i], {shape[0], shape[1], shape[2] * shape[4]}));
    }
  }
  if (v[1] == kNoValue || v[2] == kNoValue) return n.error("keys or values are missing");
  const size_t biased = n.has(3) ? 3 : 0;
  if (biased != 0) {  // one for each element of each head
    Exprs sizes;
    for (const ValueId x : v) {
      if (type_of(n, x).shape.size() != 3) return n.error("a bias needs keys and values of rank 3");
      sizes.push_back(type_of(n, x).shape[2]);
    }
    DLC_TRY(const Values parts, split_last(n, n.in(3), sizes));
    for (size_t i = 0; i < 3; ++i) {
      DLC_TRY(v[i], n.emit("add", {v[i], parts[i]}));
    }
  }
  for (ValueId& x : v) {
    const size_t rank = type_of(n, x).shape.size();
    if (rank == 4) continue;  // heads already
    if (rank != 3) return n.error("queries, keys and values need rank 3 to 5");
    DLC_TRY(x, split_heads(n, x, heads));
  }
  return v;
}

// query, key, value, bias, hidden keys, what is added to the scores, past keys and values.
Result<Values> multi_head_attention(const NodeView& n) {
  DLC_CHECK(refuse_inputs(n, 8));
  DLC_TRY(const int64_t heads, n.attr_int("num_heads", {}));
  DLC_TRY(const int64_t causal, n.attr_int("unidirectional", 0));
  DLC_TRY(const double hidden, n.attr_float("mask_filter_value", -10000.0));
  DLC_TRY(Values qkv, heads_of(n, heads));
  Expr past(0);
  if (n.has(6) != n.has(7)) return n.error("past keys and past values come together");
  if (n.has(6)) {
    if (n.rank(6) != 4 || n.rank(7) != 4) return n.error("past keys and values need rank 4");
    past = n.type(6).shape[2];
    DLC_TRY(qkv[1], joined(n, n.in(6), qkv[1]));
    DLC_TRY(qkv[2], joined(n, n.in(7), qkv[2]));
  }
  const TensorType q = type_of(n, qkv[0]), k = type_of(n, qkv[1]);
  Bias bias(n, q.dtype, q.shape[2], k.shape[2]);
  if (n.has(4)) DLC_CHECK(add_padding(n, bias, n.in(4), q.shape[0], k.shape[2], hidden));
  if (causal != 0) DLC_CHECK(bias.add_causal(past));
  if (n.has(5)) DLC_CHECK(bias.add(n.in(5)));
  DLC_TRY(const auto scale, scale_of(n));
  DLC_TRY(const Values results, attend(n, qkv[0], qkv[1], qkv[2], bias.sum(), {.scale = scale, .wanted = n.wants(3)}));
  DLC_TRY(const ValueId y, join_heads(n, results[0]));
  return Values{y, qkv[1], qkv[2], results[1]};
}

// The rows of the tables of angles for an input [batch, heads, sequence, size]: `given`, or from `first` on.
Result<ValueId> row_positions(const NodeView& n, ValueId first, const Expr& batch, const Expr& length) {
  DLC_TRY(ValueId at, positions(n, length));
  DLC_TRY(at, reshaped(n, at, {1, length}));
  DLC_TRY(const ValueId from, reshaped(n, first, {type_of(n, first).shape[0], 1}));
  DLC_TRY(at, n.emit("add", {at, from}));
  return n.emit("expand", {at}, {{"shape", Exprs{batch, length}}});
}

// query, key, value, pasts, lengths - 1, the longest length, tables of angles, positions, what is added to the scores.
// The caches hold at least as many elements as the longest sequence; new ones come after each sequence's own length.
Result<Values> group_query_attention(const NodeView& n) {
  DLC_CHECK(refuse_inputs(n, 11));
  for (const char* a : {"smooth_softmax", "qk_output", "kv_cache_bit_width", "sliding_window_cache"})
    DLC_CHECK(refuse_attribute(n, a, 0));
  for (const char* a : {"k_quant_type", "v_quant_type"}) {
    DLC_TRY(const std::string type, n.attr_string(a, "NONE"));
    if (type != "NONE") return n.error(fmt::format("attribute '{}' is '{}'", a, type));
  }
  DLC_TRY(const int64_t heads, n.attr_int("num_heads", {}));
  DLC_TRY(const int64_t kv_heads, n.attr_int("kv_num_heads", {}));
  DLC_TRY(const double cap, n.attr_float("softcap", 0.0));
  DLC_TRY(const int64_t window, n.attr_int("local_window_size", -1));
  DLC_TRY(const int64_t rotary, n.attr_int("do_rotary", 0));
  DLC_TRY(const int64_t interleaved, n.attr_int("rotary_interleaved", 0));
  DLC_TRY(const int64_t causal, n.attr_int("causal", 1));
  if (causal == 0) return n.error("attribute 'causal' is 0, which is not supported");
  if (n.rank(0) != 3) return n.error(fmt::format("the queries have rank {}, 3 is needed", n.rank(0)));
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) return n.error("the numbers of heads do not fit");
  Values qkv{n.in(0), n.in(1), n.in(2)};
  if (!n.has(1)) {  // all three in one
    const auto width = n.type(0).shape[2].constant();
    if (width && *width % (heads + 2 * kv_heads) != 0) return n.error("the width does not fit the heads");
    const Expr size = floor_div(n.type(0).shape[2], heads + 2 * kv_heads);
    DLC_TRY(qkv, split_last(n, n.in(0), {size * heads, size * kv_heads, size * kv_heads}));
  }
  for (size_t i = 0; i < 3; ++i) {
    DLC_TRY(qkv[i], split_heads(n, qkv[i], i == 0 ? heads : kv_heads));
  }
  const TensorType q = type_of(n, qkv[0]);
  const Expr batch = q.shape[0], length = q.shape[2];
  // How many elements of each sequence are past: its length without the new ones; a shorter one is padded at its end.
  if (n.type(5).shape.size() > 2) return n.error("the lengths need rank 1");
  DLC_TRY(ValueId past, n.emit("cast", {n.in(5)}, {{"to", kS64}}));
  DLC_TRY(past, reshaped(n, past, {batch}));
  DLC_TRY(ValueId zero, n.scalar(kS64, 0));
  DLC_TRY(ValueId new_ones, n.emit("shape", {qkv[0]}, {{"start", Expr(2)}, {"end", Expr(3)}}));
  DLC_TRY(ValueId one, n.scalar(kS64, 1));
  DLC_TRY(past, n.emit("add", {past, one}));
  DLC_TRY(past, n.emit("sub", {past, new_ones}));
  DLC_TRY(past, n.emit("max_n", {past, zero}));
  if (rotary != 0) {
    if (!n.has(7) || !n.has(8)) return n.error("rotary positions need tables of cosines and sines");
    ValueId at = n.in(9);
    if (at == kNoValue) {
      DLC_TRY(at, row_positions(n, past, batch, length));
    }
    if (n.rank(7) != 2) return n.error("the tables need rank 2");
    const Expr half = n.type(7).shape.back();
    for (const size_t i : {0, 1}) {
      DLC_TRY(qkv[i], turned(n, qkv[i], n.in(7), n.in(8), at, half * 2, interleaved != 0));
    }
  }
  // The caches, grown to the longest length.
  DLC_TRY(const auto total, n.sizes(6, "total_sequence_length"));
  if (total.size() != 1) return n.error("input 6 (total_sequence_length) must be one number");
  Expr keys = total[0];
  if (n.has(3) != n.has(4)) return n.error("past keys and past values come together");
  for (const size_t i : {1, 2}) {
    ValueId cache = n.in(i + 2);
    const Exprs fresh = type_of(n, qkv[i]).shape;
    if (cache == kNoValue) {
      DLC_TRY(const ValueId nothing, n.scalar(q.dtype, 0));
      DLC_TRY(cache, n.emit("expand", {nothing}, {{"shape", Exprs{fresh[0], fresh[1], keys, fresh[3]}}}));
    } else {
      if (type_of(n, cache).shape.size() != 4) return n.error("past keys and values need rank 4");
      const Expr room = type_of(n, cache).shape[2];
      const Expr more = max(total[0], room) - room;
      keys = room + more;
      if (!more.is(0)) {
        DLC_TRY(cache, n.emit("pad", {cache, kNoValue}, {{"lo", Exprs{0, 0, 0, 0}}, {"hi", Exprs{0, 0, more, 0}}}));
      }
    }
    DLC_TRY(qkv[i], n.emit("cache_update", {cache, qkv[i], past}, {{"axis", Expr(2)}}));
  }
  // A query sees the keys up to its own position, and of those the last `window`.
  Bias bias(n, q.dtype, length, keys);
  DLC_TRY(ValueId own, row_positions(n, past, batch, length));
  DLC_TRY(own, reshaped(n, own, {batch, 1, length, 1}));
  DLC_TRY(const ValueId key, positions(n, keys));
  DLC_TRY(ValueId seen, n.emit("less_equal", {key, own}));
  if (window > 0) {
    DLC_TRY(const ValueId span, n.scalar(kS64, static_cast<double>(window)));
    DLC_TRY(const ValueId from, n.emit("sub", {own, span}));
    DLC_TRY(const ValueId near, n.emit("greater", {key, from}));
    DLC_TRY(seen, n.emit("logical_and", {seen, near}));
  }
  DLC_CHECK(bias.add_condition(seen));
  if (n.has(10)) DLC_CHECK(bias.add(n.in(10)));
  DLC_TRY(const auto scale, scale_of(n));
  DLC_TRY(const Values results, attend(n, qkv[0], qkv[1], qkv[2], bias.sum(), {.scale = scale, .cap = cap}));
  DLC_TRY(const ValueId y, join_heads(n, results[0]));
  return Values{y, qkv[1], qkv[2]};
}

// input, positions, tables of cosines and sines. One position is where every sequence begins.
Result<Values> rotary(const NodeView& n) {
  DLC_CHECK(refuse_attribute(n, "is_packed_batching", 0));
  DLC_TRY(const int64_t interleaved, n.attr_int("interleaved", 0));
  DLC_TRY(int64_t heads, n.attr_int("num_heads", 0));
  DLC_TRY(const int64_t part, n.attr_int("rotary_embedding_dim", 0));
  DLC_TRY(const double scale, n.attr_float("scale", 1.0));
  if (scale != 1) return n.error(fmt::format("attribute 'scale' is {}, which is not supported", scale));
  const bool joined_heads = n.rank(0) == 3;
  if (!joined_heads && n.rank(0) != 4)
    return n.error(fmt::format("the data have rank {}, 3 or 4 is needed", n.rank(0)));
  ValueId x = n.in(0);
  if (joined_heads) {
    const auto width = n.type(0).shape[2].constant(), half = n.type(2).shape.back().constant();
    if (heads == 0 && width && half && *half > 0) heads = *width / (2 * *half);
    DLC_TRY(x, split_heads(n, x, heads));
  }
  const Exprs shape = type_of(n, x).shape;
  ValueId at = n.in(1);
  if (n.rank(1) == 1) {
    DLC_TRY(at, row_positions(n, at, shape[0], shape[2]));
  }
  DLC_TRY(ValueId y, turned(n, x, n.in(2), n.in(3), at, part == 0 ? shape[3] : Expr(part), interleaved != 0));
  if (joined_heads) {
    DLC_TRY(y, join_heads(n, y));
  }
  return Values{y};
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "Attention", attention, "ttTTTTT"},
    {"com.microsoft", "MultiHeadAttention", multi_head_attention, "tTTTTTTTTT"},
    {"com.microsoft", "GroupQueryAttention", group_query_attention, "tTTTTttTTTTTTTTTT"},
    {"com.microsoft", "RotaryEmbedding", rotary, "tttt"},
};

}  // namespace

std::span<const OpEntry> ms_attention_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
