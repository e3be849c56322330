// onnxruntime's forms of attention (com.microsoft): over packed or separate heads, with masks, pasts and rotary
// positions.
#include <fmt/format.h>

#include <optional>

#include "frontends/onnx/ms_attention.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

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

Result<std::optional<double>> scale_of(const NodeView& n) {
  DLC_TRY(const double scale, n.attr_float("scale", 0.0));
  return scale != 0 ? std::optional(scale) : std::nullopt;
}

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

namespace {

// `after` behind `before`, along the sequence.
Result<ValueId> joined(const NodeView& n, ValueId before, ValueId after) {
  return n.emit("concat", {before, after}, {{"axis", Expr(2)}});
}

// Where keys are hidden: key lengths [batch], lengths and starts [2 batch], or a mask of 0 and 1: [batch, (queries,)
// keys], or [batch, 1, longest, longest], of which the queries are the rows behind the past.
Result<> add_padding(const NodeView& n, Bias& bias, ValueId mask, const TensorType& q, const Expr& keys,
                     const Expr& past, double hidden) {
  const Expr &batch = q.shape[0], &queries = q.shape[2];
  if (type_of(n, mask).shape.size() == 4) {
    DLC_TRY(mask, sliced(n, mask, 2, past, past + queries));
    DLC_TRY(mask, sliced(n, mask, 3, 0, keys));
    const Exprs part = type_of(n, mask).shape;
    DLC_TRY(mask, reshaped(n, mask, {part[0], part[2], part[3]}));
  }
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

// What an attention may have beside its queries, keys and values: which inputs these are, 0 for none.
struct Places {
  size_t bias, mask, added, past, past_value = 0, past_length = 0;
};

// Of queries, keys and values side by side in `all`. The past is [2, batch, heads, sequence, size].
Result<Values> packed_attention(const NodeView& n, ValueId all, const Exprs& sizes, const Places& at) {
  for (const char* a : {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"})
    DLC_CHECK(refuse_attribute(n, a, 0));
  DLC_TRY(const int64_t heads, n.attr_int("num_heads", {}));
  DLC_TRY(const int64_t causal, n.attr_int("unidirectional", 0));
  DLC_TRY(const double hidden, n.attr_float("mask_filter_value", -10000.0));
  if (n.has(at.bias)) {
    DLC_TRY(all, n.emit("add", {all, n.in(at.bias)}));
  }
  DLC_TRY(Values qkv, split_last(n, all, sizes));
  for (ValueId& v : qkv) {
    DLC_TRY(v, split_heads(n, v, heads));
  }
  Expr past(0);
  if (n.has(at.past)) {
    const Exprs shape = n.type(at.past).shape;
    if (shape.size() != 5) return n.error("the past needs rank 5");
    past = shape[3];
    for (const int64_t i : {0, 1}) {
      DLC_TRY(ValueId before, sliced(n, n.in(at.past), 0, i, i + 1));
      DLC_TRY(before, reshaped(n, before, Exprs(shape.begin() + 1, shape.end())));
      DLC_TRY(qkv[static_cast<size_t>(i + 1)], joined(n, before, qkv[static_cast<size_t>(i + 1)]));
    }
  }
  const TensorType q = type_of(n, qkv[0]), k = type_of(n, qkv[1]);
  Bias bias(n, q.dtype, q.shape[2], k.shape[2]);
  if (n.has(at.mask)) DLC_CHECK(add_padding(n, bias, n.in(at.mask), q, k.shape[2], past, hidden));
  if (causal != 0) DLC_CHECK(bias.add_causal(past));
  if (at.added != 0 && n.has(at.added)) DLC_CHECK(bias.add(n.in(at.added)));
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

// input, weights, bias, mask, past, what is added to the scores.
Result<Values> attention(const NodeView& n) {
  DLC_CHECK(refuse_inputs(n, 6));
  if (n.rank(0) != 3 || n.rank(1) != 2) return n.error("the input needs rank 3, the weights rank 2");
  const Expr width = n.type(1).shape[1];
  DLC_TRY(const auto given, n.attr_ints("qkv_hidden_sizes", std::vector<int64_t>{}));
  const Exprs sizes = given.empty() ? Exprs(3, floor_div(width, 3)) : to_exprs(given);
  const auto rest = sizes.size() == 3 ? (width - sizes[0] - sizes[1] - sizes[2]).constant() : std::nullopt;
  if (sizes.size() != 3 || (rest && *rest != 0))
    return n.error(fmt::format("queries, keys and values do not make up the weights' width {}", to_string(width)));
  DLC_TRY(const ValueId all, n.emit("matmul", {n.in(0), n.in(1)}));
  return packed_attention(n, all, sizes, {.bias = 2, .mask = 3, .added = 5, .past = 4});
}

// The same with integers: input, weights, bias, their scales, mask, their zero points, past.
Result<Values> quantised_attention(const NodeView& n) {
  if (n.rank(0) != 3 || n.rank(1) != 2) return n.error("the input needs rank 3, the weights rank 2");
  DLC_TRY(const ValueId all, scaled_product(n, n.in(0), n.in(1), n.in(6), n.in(7), n.in(3), n.in(4)));
  const Exprs sizes(3, floor_div(n.type(1).shape[1], 3));
  return packed_attention(n, all, sizes, {.bias = 2, .mask = 5, .added = 0, .past = 8});
}

// Queries, keys and values as heads; K and V may be in one tensor, or all three.
Result<Values> heads_of(const NodeView& n, int64_t heads, size_t biased) {
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
  if (n.rank(0) == 3 && !n.has(1) && !n.has(2)) {
    DLC_TRY(v, split_last(n, n.in(0), Exprs(3, floor_div(n.type(0).shape[2], 3))));
  }
  if (v[1] == kNoValue || v[2] == kNoValue) return n.error("keys or values are missing");
  if (n.has(biased)) {  // one for each element of each head
    Exprs sizes;
    for (const ValueId x : v) {
      if (type_of(n, x).shape.size() != 3) return n.error("a bias needs keys and values of rank 3");
      sizes.push_back(type_of(n, x).shape[2]);
    }
    DLC_TRY(const Values parts, split_last(n, n.in(biased), sizes));
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

// New keys or values behind those of a cache: of one that is all past, or, where a length is given, of one that has
// room for more; of that what is past then, and the cache.
struct Grown {
  ValueId all, cache;
};
Result<Grown> grown(const NodeView& n, ValueId cache, ValueId fresh, ValueId length, const Expr& past) {
  if (type_of(n, cache).shape.size() != 4) return n.error("past keys and values need rank 4");
  if (length == kNoValue) {
    DLC_TRY(const ValueId all, joined(n, cache, fresh));
    return Grown{all, all};
  }
  const Exprs shape = type_of(n, fresh).shape;
  DLC_TRY(ValueId at, n.emit("cast", {length}, {{"to", kS64}}));
  DLC_TRY(at, reshaped(n, at, {1}));
  DLC_TRY(at, n.emit("expand", {at}, {{"shape", Exprs{shape[0]}}}));
  DLC_TRY(const ValueId full, n.emit("cache_update", {cache, fresh, at}, {{"axis", Expr(2)}}));
  DLC_TRY(const ValueId all, sliced(n, full, 2, 0, past + shape[2]));
  return Grown{all, full};
}

Result<Values> separate_attention(const NodeView& n, const Places& at) {
  DLC_TRY(const int64_t heads, n.attr_int("num_heads", {}));
  DLC_TRY(const int64_t causal, n.attr_int("unidirectional", 0));
  DLC_TRY(const double hidden, n.attr_float("mask_filter_value", -10000.0));
  DLC_TRY(Values qkv, heads_of(n, heads, at.bias));
  Expr past(0);
  Values present{qkv[1], qkv[2]};
  if (n.has(at.past) != n.has(at.past_value)) return n.error("past keys and past values come together");
  if (n.has(at.past_length) && !n.has(at.past)) return n.error("a length of the past needs one");
  if (n.has(at.past)) {
    if (n.has(at.past_length)) {
      DLC_TRY(const auto length, n.bounds(at.past_length, "past_sequence_length", {0, NodeView::kAnyBound.hi}));
      if (length.size() != 1) return n.error("the past has one length");
      past = length[0];
    } else if (n.rank(at.past) == 4) {
      past = n.type(at.past).shape[2];
    }
    for (const size_t i : {0, 1}) {
      DLC_TRY(const Grown g, grown(n, n.in(i == 0 ? at.past : at.past_value), qkv[i + 1], n.in(at.past_length), past));
      qkv[i + 1] = g.all;
      present[i] = g.cache;
    }
  }
  const TensorType q = type_of(n, qkv[0]), k = type_of(n, qkv[1]);
  Bias bias(n, q.dtype, q.shape[2], k.shape[2]);
  if (n.has(at.mask)) DLC_CHECK(add_padding(n, bias, n.in(at.mask), q, k.shape[2], past, hidden));
  if (causal != 0) DLC_CHECK(bias.add_causal(past));
  if (n.has(at.added)) DLC_CHECK(bias.add(n.in(at.added)));
  DLC_TRY(const auto scale, scale_of(n));
  DLC_TRY(const Values results, attend(n, qkv[0], qkv[1], qkv[2], bias.sum(), {.scale = scale, .wanted = n.wants(3)}));
  DLC_TRY(const ValueId y, join_heads(n, results[0]));
  return Values{y, present[0], present[1], results[1]};
}

// query, key, value, bias, hidden keys, what is added to the scores, past keys and values, how many are past.
Result<Values> multi_head_attention(const NodeView& n) {
  DLC_CHECK(refuse_inputs(n, 9));
  return separate_attention(n, {.bias = 3, .mask = 4, .added = 5, .past = 6, .past_value = 7, .past_length = 8});
}

// The same in another order. Without the attribute the caches are all past; beams are one.
Result<Values> decoder_attention(const NodeView& n) {
  if (n.has(9)) return n.error("input 9 (cache_indirection) is not supported");
  DLC_CHECK(refuse_attribute(n, "output_qk", 0));
  DLC_TRY(const int64_t shared, n.attr_int("past_present_share_buffer", 0));
  const size_t none = n.input_count();
  return separate_attention(
      n, {.bias = 10, .mask = 3, .added = 4, .past = 5, .past_value = 6, .past_length = shared != 0 ? 7 : none});
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "Attention", attention, "ttTTTTT"},
    {"com.microsoft", "QAttention", quantised_attention, "tttttTTTT"},
    {"com.microsoft", "MultiHeadAttention", multi_head_attention, "tTTTTTTTTT"},
    {"com.microsoft", "DecoderMaskedMultiHeadAttention", decoder_attention, "tTTTTTTTTTT"},
};

}  // namespace

std::span<const OpEntry> ms_attention_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
