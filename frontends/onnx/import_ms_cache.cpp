// Attention over a cache whose sequences have lengths of their own, and rotary positions (com.microsoft).
#include <fmt/format.h>

#include <optional>

#include "frontends/onnx/ms_attention.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// The rows of the tables of angles for an input [batch, heads, sequence, size]: `given`, or from `first` on.
Result<ValueId> row_positions(const NodeView& n, ValueId first, const Expr& batch, const Expr& length) {
  DLC_TRY(ValueId at, positions(n, length));
  DLC_TRY(at, reshaped(n, at, {1, length}));
  DLC_TRY(const ValueId from, reshaped(n, first, {type_of(n, first).shape[0], 1}));
  DLC_TRY(at, n.emit("add", {at, from}));
  return n.emit("expand", {at}, {{"shape", Exprs{batch, length}}});
}

// How a cache is kept: as it is, or in integers with a scale, of all or of each element of each head.
class Storage {
 public:
  static Result<Storage> of(const NodeView& n, const char* attribute, size_t scale, const Expr& heads) {
    Storage s(n);
    DLC_TRY(const std::string kind, n.attr_string(attribute, "NONE"));
    if (kind == "NONE") return s;
    if (kind != "PER_TENSOR" && kind != "PER_CHANNEL")
      return n.error(fmt::format("attribute '{}' is '{}'", attribute, kind));
    DLC_TRY(const int64_t bits, n.attr_int("kv_cache_bit_width", 8));
    if (bits != 8) return n.error(fmt::format("attribute 'kv_cache_bit_width' is {}, only 8 is supported", bits));
    if (!n.has(scale)) return n.error(fmt::format("input {} (scale) is missing", scale));
    Expr count(1);
    for (const Expr& d : n.type(scale).shape) count = count * d;
    const bool each = kind == "PER_CHANNEL";
    DLC_TRY(s.scale_, reshaped(n, n.in(scale), each ? Exprs{1, heads, 1, floor_div(count, heads)} : Exprs{}));
    return s;
  }

  DType type(DType otherwise) const { return scale_ == kNoValue ? otherwise : kS8; }
  Result<ValueId> stored(ValueId x) const {
    if (scale_ == kNoValue) return x;
    DLC_TRY(ValueId y, n_->emit("div", {x, scale_}));
    DLC_TRY(y, n_->emit("round", {y}));
    DLC_TRY(const ValueId lo, n_->scalar(type_of(*n_, y).dtype, -128));
    DLC_TRY(const ValueId hi, n_->scalar(type_of(*n_, y).dtype, 127));
    DLC_TRY(y, n_->emit("clip", {y, lo, hi}));
    return n_->emit("cast", {y}, {{"to", kS8}});
  }
  Result<ValueId> read(ValueId cache) const {
    if (scale_ == kNoValue) return cache;
    DLC_TRY(const ValueId y, n_->emit("cast", {cache}, {{"to", type_of(*n_, scale_).dtype}}));
    return n_->emit("mul", {y, scale_});
  }

 private:
  explicit Storage(const NodeView& n) : n_(&n) {}
  const NodeView* n_;
  ValueId scale_ = kNoValue;
};

// The norm of each head, where there are weights for it.
Result<ValueId> normed(const NodeView& n, ValueId x, size_t weight, const char* attribute) {
  DLC_TRY(const double both, n.attr_float("qk_norm_epsilon", 1e-6));
  DLC_TRY(const double epsilon, n.attr_float(attribute, both));
  if (!n.has(weight)) return x;
  return n.emit("rms_norm", {x, n.in(weight)}, {{"axis", Expr(-1)}, {"epsilon", epsilon}});
}

// One more score for each head, given or 0.
Result<ValueId> sink_of(const NodeView& n, int64_t heads) {
  DLC_TRY(const int64_t smooth, n.attr_int("smooth_softmax", 0));
  if (n.has(11) || smooth <= 0) return n.in(11);
  DLC_TRY(const ValueId zero, n.scalar(n.type(0).dtype, 0));
  return n.emit("expand", {zero}, {{"shape", Exprs{heads}}});
}

// query, key, value, pasts, lengths - 1, the longest length, tables of angles, positions, what is added to the scores,
// sinks, scales of the caches, norms of queries and keys. The caches hold at least as many elements as the longest
// sequence; new ones come after each sequence's own length.
Result<Values> group_query_attention(const NodeView& n) {
  DLC_CHECK(refuse_inputs(n, 16));
  DLC_CHECK(refuse_attribute(n, "sliding_window_cache", 0));
  DLC_TRY(const int64_t heads, n.attr_int("num_heads", {}));
  DLC_TRY(const int64_t kv_heads, n.attr_int("kv_num_heads", {}));
  DLC_TRY(const double cap, n.attr_float("softcap", 0.0));
  DLC_TRY(const int64_t window, n.attr_int("local_window_size", -1));
  DLC_TRY(const int64_t rotary, n.attr_int("do_rotary", 0));
  DLC_TRY(const int64_t interleaved, n.attr_int("rotary_interleaved", 0));
  DLC_TRY(const int64_t causal, n.attr_int("causal", 1));
  DLC_TRY(const int64_t asked, n.attr_int("qk_output", 0));
  if (asked < 0 || asked > 2) return n.error(fmt::format("attribute 'qk_output' is {}", asked));
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
  DLC_TRY(qkv[0], normed(n, qkv[0], 14, "q_norm_epsilon"));
  DLC_TRY(qkv[1], normed(n, qkv[1], 15, "k_norm_epsilon"));
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
  Values present = qkv;
  for (const size_t i : {1, 2}) {
    DLC_TRY(const Storage storage, Storage::of(n, i == 1 ? "k_quant_type" : "v_quant_type", i + 11, kv_heads));
    ValueId cache = n.in(i + 2);
    const Exprs fresh = type_of(n, qkv[i]).shape;
    if (cache == kNoValue) {
      DLC_TRY(const ValueId nothing, n.scalar(storage.type(q.dtype), 0));
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
    DLC_TRY(const ValueId kept, storage.stored(qkv[i]));
    DLC_TRY(present[i], n.emit("cache_update", {cache, kept, past}, {{"axis", Expr(2)}}));
    DLC_TRY(qkv[i], storage.read(present[i]));
  }
  // A query sees the keys up to its own position, and of those the last `window`; without an order all of its sequence.
  Bias bias(n, q.dtype, length, keys);
  DLC_TRY(ValueId own, row_positions(n, past, batch, length));
  DLC_TRY(own, reshaped(n, own, {batch, 1, length, 1}));
  if (causal == 0) {
    DLC_TRY(own, sliced(n, own, 2, length - 1, length));
  }
  DLC_TRY(const ValueId key, positions(n, keys));
  DLC_TRY(ValueId seen, n.emit("less_equal", {key, own}));
  if (window > 0) {
    DLC_TRY(const ValueId span, n.scalar(kS64, static_cast<double>(window)));
    DLC_TRY(const ValueId from, n.emit("sub", {own, span}));
    DLC_TRY(const ValueId near, n.emit("greater", {key, from}));
    DLC_TRY(seen, n.emit("logical_and", {seen, near}));
  }
  DLC_CHECK(bias.add_condition(seen));
  if (n.has(10)) DLC_CHECK(bias.add_mask(n.in(10)));
  Scores scores{.cap = cap, .wanted = asked != 0 && n.wants(3), .stage = asked == 1 ? 2 : 3};
  DLC_TRY(scores.scale, scale_of(n));
  DLC_TRY(scores.sink, sink_of(n, heads));
  DLC_TRY(Values results, attend(n, qkv[0], qkv[1], qkv[2], bias.sum(), scores));
  if (scores.wanted && asked == 1) {  // the scores of what is not seen are 0
    DLC_TRY(const ValueId none, n.scalar(q.dtype, 0));
    DLC_TRY(const ValueId hidden, n.emit("is_inf", {results[1]}));
    DLC_TRY(results[1], n.emit("where", {hidden, none, results[1]}));
  }
  DLC_TRY(const ValueId y, join_heads(n, results[0]));
  return Values{y, present[1], present[2], results[1]};
}

// Rows of a table of angles for positions in time, height and width [3, batch, sequence]; of each row every column is
// taken from one of the three.
Result<ValueId> mixed_rows(const NodeView& n, ValueId table, ValueId positions, const std::vector<size_t>& from) {
  const Exprs shape = type_of(n, positions).shape;
  DLC_TRY(const ValueId all, n.emit("gather", {table, positions}, {{"axis", Expr(0)}}));
  ValueId y = kNoValue;
  for (const size_t stream : {0, 1, 2}) {
    DLC_TRY(ValueId rows, sliced(n, all, 0, static_cast<int64_t>(stream), static_cast<int64_t>(stream) + 1));
    DLC_TRY(rows, reshaped(n, rows, {shape[1] * shape[2], static_cast<int64_t>(from.size())}));
    if (stream == 0) {
      y = rows;
      continue;
    }
    DLC_TRY(Tensor mask, Tensor::make(kBool, {static_cast<int64_t>(from.size())}));
    for (size_t c = 0; c < from.size(); ++c) mask.set_int(static_cast<int64_t>(c), from[c] == stream ? 1 : 0);
    DLC_TRY(y, n.emit("where", {n.add_constant(std::move(mask)), rows, y}));
  }
  return y;
}

// From which of three position streams each of `count` columns comes: in stretches, or every third one from each.
Result<std::vector<size_t>> streams(const NodeView& n, int64_t count) {
  DLC_TRY(const auto sections, n.attr_ints("mrope_section", {}));
  DLC_TRY(const int64_t layout, n.attr_int("mrope_layout", 0));
  if (sections.size() != 3 || layout < 0 || layout > 1) return n.error("'mrope_section' needs three sizes");
  std::vector<size_t> from(static_cast<size_t>(count), 0);
  for (int64_t c = 0; c < count; ++c) {
    auto& stream = from[static_cast<size_t>(c)];
    if (layout == 0) {
      stream = c < sections[0] ? 0 : c - sections[0] < sections[1] ? 1 : 2;
    } else if (c % 3 != 0 && c / 3 < sections[static_cast<size_t>(c % 3)]) {
      stream = static_cast<size_t>(c % 3);
    }
  }
  return from;
}

// input, positions, tables of cosines and sines. One position is where every sequence begins. With three streams of
// positions there is a row of angles for each element of each sequence.
template <bool Streams>
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
  Values tables{n.in(2), n.in(3)};
  if (Streams) {
    if (n.rank(1) != 3 || n.rank(2) != 2 || n.rank(3) != 2) return n.error("positions need rank 3, the tables rank 2");
    const auto half = n.type(2).shape[1].constant();
    if (!half || *half > (int64_t{1} << 20)) return n.error("the size of a head must be known");
    DLC_TRY(const auto from, streams(n, *half));
    for (ValueId& t : tables) {
      DLC_TRY(t, mixed_rows(n, t, at, from));
    }
    DLC_TRY(at, positions(n, shape[0] * shape[2]));
    DLC_TRY(at, reshaped(n, at, {shape[0], shape[2]}));
  } else if (n.rank(1) == 1) {
    DLC_TRY(at, row_positions(n, at, shape[0], shape[2]));
  }
  DLC_TRY(ValueId y, turned(n, x, tables[0], tables[1], at, part == 0 ? shape[3] : Expr(part), interleaved != 0));
  if (joined_heads) {
    DLC_TRY(y, join_heads(n, y));
  }
  return Values{y};
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "GroupQueryAttention", group_query_attention, "tTTTTttTTTTTTTTTT"},
    {"com.microsoft", "RotaryEmbedding", rotary<false>, "tttt"},
    {"com.microsoft", "MRotaryEmbedding", rotary<true>, "tttt"},
};

}  // namespace

std::span<const OpEntry> ms_cache_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
