// onnxruntime's fused ops of transformers (com.microsoft): normalisations with a sum before them, and forms of GELU.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<ValueId> sum(const NodeView& n, const Values& terms) {
  ValueId y = kNoValue;
  for (const ValueId v : terms) {
    if (v == kNoValue) continue;
    if (y == kNoValue) {
      y = v;
      continue;
    }
    DLC_TRY(y, n.emit("add", {y, v}));
  }
  return y;
}

Result<> refuse_statistics(const NodeView& n) {
  if (n.wants(1) || n.wants(2)) return n.error("results 1 and 2, the statistics, are for training");
  return {};
}

// input, skip, gamma, beta, bias. Result 3 is the sum that is normalised.
Result<Values> skip_layer_norm(const NodeView& n) {
  DLC_CHECK(refuse_statistics(n));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-12));
  DLC_TRY(const ValueId x, sum(n, {n.in(0), n.in(1), n.in(4)}));
  DLC_TRY(const ValueId y, n.emit("layer_norm", {x, n.in(2), n.in(3)}, {{"axis", Expr(-1)}, {"epsilon", epsilon}}));
  return Values{y, kNoValue, kNoValue, x};
}

Result<Values> skip_rms_norm(const NodeView& n) {
  DLC_CHECK(refuse_statistics(n));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-12));
  DLC_TRY(const ValueId x, sum(n, {n.in(0), n.in(1), n.in(3)}));
  DLC_TRY(const ValueId y, n.emit("rms_norm", {x, n.in(2)}, {{"axis", Expr(-1)}, {"epsilon", epsilon}}));
  return Values{y, kNoValue, kNoValue, x};
}

Result<Values> simplified_layer_norm(const NodeView& n) {
  if (n.wants(1)) return n.error("result 1, the statistics, is for training");
  DLC_TRY(const int64_t attr, n.attr_int("axis", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  return n.emit_all("rms_norm", {n.in(0), n.in(1)}, {{"axis", Expr(axis)}, {"epsilon", epsilon}});
}

Result<ValueId> as_s64(const NodeView& n, ValueId v) {
  if (n.graph().value(v).type.dtype == kS64) return v;
  return n.emit("cast", {v}, {{"to", kS64}});
}

// The rows of tables for words, positions and segments, which may be quantised, normalised. Inputs by number.
struct Embedding {
  size_t words = 0, segments = 1, tables = 2, gamma = 5, beta = 6, mask = 7, positions = 8;
  size_t scales = 0;  // of three tables, gamma and beta; then their zero points. 0: they are floats
};

// Input `at`, or rows of it; `which` counts the quantised ones.
Result<ValueId> embedded(const NodeView& n, const Embedding& e, size_t at, size_t which, ValueId rows) {
  ValueId x = n.in(at);
  if (rows != kNoValue) {
    DLC_TRY(const ValueId index, as_s64(n, rows));
    DLC_TRY(x, n.emit("gather", {x, index}, {{"axis", Expr(0)}}));
  }
  if (e.scales == 0) return x;
  constexpr size_t kQuantised = 5;
  DLC_TRY(ValueId scale, scalar_input(n, e.scales + which));
  DLC_TRY(ValueId zero, scalar_input(n, e.scales + kQuantised + which));
  if (scale == kNoValue || zero == kNoValue) return n.error("a scale or zero point is missing");
  DLC_TRY(scale, n.reshaped(scale, {1}));
  DLC_TRY(zero, n.reshaped(zero, {1}));
  return n.emit("dequantize_linear", {x, scale, zero}, {{"axis", Expr(0)}});
}

// Result 1 says how many words the mask lets through.
Result<Values> embed(const NodeView& n, const Embedding& e) {
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-12));
  if (n.rank(0) != 2) return n.error(fmt::format("the words have rank {}, 2 is needed", n.rank(0)));
  if (n.has(e.segments) != n.has(e.tables + 2)) return n.error("segments and their table come together");
  const auto words = n.type(0).shape;
  Values terms(3, kNoValue);
  DLC_TRY(terms[0], embedded(n, e, e.tables, 0, n.in(e.words)));
  ValueId positions = n.in(e.positions);
  if (positions == kNoValue) {
    DLC_TRY(const ValueId zero, n.scalar(kS64, 0));
    DLC_TRY(const ValueId one, n.scalar(kS64, 1));
    DLC_TRY(positions, n.emit("range", {zero, one}, {{"count", words[1]}}));
  }
  DLC_TRY(terms[1], embedded(n, e, e.tables + 1, 1, positions));
  if (n.has(e.segments)) {
    DLC_TRY(terms[2], embedded(n, e, e.tables + 2, 2, n.in(e.segments)));
  }
  DLC_TRY(const ValueId x, sum(n, terms));
  DLC_TRY(const ValueId gamma, embedded(n, e, e.gamma, 3, kNoValue));
  DLC_TRY(const ValueId beta, embedded(n, e, e.beta, 4, kNoValue));
  DLC_TRY(const ValueId y, n.emit("layer_norm", {x, gamma, beta}, {{"axis", Expr(-1)}, {"epsilon", epsilon}}));
  ValueId count = kNoValue;
  if (n.wants(1) && n.has(e.mask)) {
    DLC_TRY(const ValueId mask, n.emit("cast", {n.in(e.mask)}, {{"to", kS32}}));
    DLC_TRY(count, n.emit("reduce_sum", {mask}, {{"axes", std::vector<Expr>{1}}}));
  } else if (n.wants(1)) {
    DLC_TRY(const ValueId zero, n.scalar(kS32, 0));
    DLC_TRY(count, n.emit("expand", {zero}, {{"shape", std::vector<Expr>{words[0]}}}));
  }
  return Values{y, count, x};
}

Result<Values> embed_layer_norm(const NodeView& n) { return embed(n, {}); }
Result<Values> quantised_embed_layer_norm(const NodeView& n) {
  return embed(n, {.positions = n.input_count(), .scales = 8});
}

// Of images, whose channels are last unless an attribute says otherwise. After a sum, if there is something to add.
template <bool Skip>
Result<Values> image_group_norm(const NodeView& n) {
  DLC_TRY(const int64_t groups, n.attr_int("groups", {}));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  DLC_TRY(const int64_t last, n.attr_int("channels_last", 1));
  DLC_TRY(const int64_t activation, n.attr_int("activation", 0));
  if (n.rank(0) < 3) return n.error("the image needs rank 3 or more");
  if (Skip && last == 0) return n.error("a sum needs the channels last");
  ValueId x = n.in(0);
  if (Skip) {
    ValueId skip = n.in(3);
    const auto shape = n.type(3).shape;
    if (shape.size() == 2) {
      DLC_TRY(skip, n.emit("reshape", {skip}, {{"shape", std::vector<Expr>{shape[0], 1, 1, shape[1]}}}));
    }
    DLC_TRY(x, sum(n, {x, skip, n.in(4)}));
  }
  ValueId y = x;
  if (last != 0) {
    DLC_TRY(y, channels_first(n, y));
  }
  DLC_TRY(y, n.emit("group_norm", {y, n.in(1), n.in(2)}, {{"groups", Expr(groups)}, {"epsilon", epsilon}}));
  if (activation != 0) {
    DLC_TRY(y, n.emit("swish", {y}));
  }
  if (last != 0) {
    DLC_TRY(y, channels_last(n, y));
  }
  return Values{y, x};
}

// X + B in two halves of the last dim: the left one times GELU of the right one.
Result<Values> bias_split_gelu(const NodeView& n) {
  DLC_TRY(const ValueId x, n.emit("add", {n.in(0), n.in(1)}));
  const auto shape = n.type(0).shape;
  if (shape.empty()) return n.error("a scalar has no halves");
  const Expr half = floor_div(shape.back(), 2);
  Values parts;
  for (const int64_t i : {0, 1}) {
    std::vector<Expr> start(shape.size(), Expr(0)), stop = shape;
    start.back() = half * i;
    stop.back() = half * (i + 1);
    DLC_TRY(const ValueId part, n.emit("slice", {x}, {{"start", start}, {"stop", stop}}));
    parts.push_back(part);
  }
  DLC_TRY(const ValueId gate, n.emit("gelu", {parts[1]}));
  return n.emit_all("mul", {parts[0], gate});
}

// The norm of each stretch of the last dim as long as the scale, times a function of a gate.
Result<Values> gated_rms_norm(const NodeView& n) {
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-6));
  DLC_TRY(const std::string activation, n.attr_string("activation", "silu"));
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    return n.error(fmt::format("attribute 'activation' is '{}'", activation));
  const auto shape = n.type(0).shape;
  if (shape.empty() || n.rank(1) != 1) return n.error("the data need a dim, the scale rank 1");
  const Expr size = n.type(1).shape[0];
  std::vector<Expr> parts(shape.begin(), shape.end() - 1);
  parts.push_back(floor_div(shape.back(), size));
  parts.push_back(size);
  DLC_TRY(const ValueId x, n.emit("reshape", {n.in(0)}, {{"shape", parts}}));
  DLC_TRY(ValueId y, n.emit("rms_norm", {x, n.in(1)}, {{"axis", Expr(-1)}, {"epsilon", epsilon}}));
  DLC_TRY(y, n.emit("reshape", {y}, {{"shape", shape}}));
  DLC_TRY(const ValueId gate, n.emit(activation == "sigmoid" ? "sigmoid" : "swish", {n.in(2)}));
  return n.emit_all("mul", {y, gate});
}

// SiLU of alpha X, or of X times a number.
Result<Values> scaled_silu(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 1.0));
  DLC_TRY(ValueId scale, scalar_input(n, 1));
  if (scale == kNoValue) {
    DLC_TRY(scale, n.scalar(n.type(0).dtype, alpha));
  } else if (n.type(1).dtype != n.type(0).dtype) {
    DLC_TRY(scale, n.emit("cast", {scale}, {{"to", n.type(0).dtype}}));
  }
  DLC_TRY(const ValueId x, n.emit("mul", {n.in(0), scale}));
  return n.emit_all("swish", {x});
}

// Of X + B.
template <const char* Approximate>
Result<Values> bias_gelu(const NodeView& n) {
  DLC_TRY(const ValueId x, sum(n, {n.in(0), n.in(1)}));
  return n.emit_all("gelu", {x}, {{"approximate", Approximate}});
}
constexpr char kExact[] = "none";
constexpr char kTanh[] = "tanh";

constexpr OpEntry kTable[] = {
    {"com.microsoft", "SkipLayerNormalization", skip_layer_norm, "tttTT"},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", skip_rms_norm, "tttT"},
    {"", "SimplifiedLayerNormalization", simplified_layer_norm, "tt", "stash_type"},
    {"com.microsoft", "SimplifiedLayerNormalization", simplified_layer_norm, "tt", "stash_type"},
    {"com.microsoft", "EmbedLayerNormalization", embed_layer_norm, "tTttTttTT", "mask_index_type"},
    {"com.microsoft", "QEmbedLayerNormalization", quantised_embed_layer_norm, "tTttTttTttTttttTtt", "mask_index_type"},
    {"com.microsoft", "GroupNorm", image_group_norm<false>, "ttt"},
    {"com.microsoft", "SkipGroupNorm", image_group_norm<true>, "ttttT"},
    {"com.microsoft", "GatedRMSNorm", gated_rms_norm, "ttt"},
    {"com.microsoft", "ScaledSiLU", scaled_silu, "tT"},
    {"com.microsoft", "BiasSplitGelu", bias_split_gelu, "tt"},
    {"com.microsoft", "BiasGelu", bias_gelu<kExact>, "tt"},
    {"com.microsoft", "FastGelu", bias_gelu<kTanh>, "tT"},
};

}  // namespace

std::span<const OpEntry> transformer_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
