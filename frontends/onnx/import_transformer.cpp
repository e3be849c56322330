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

// The rows of tables for words, positions and segments. Result 1 says how many words the mask lets through.
Result<Values> embed_layer_norm(const NodeView& n) {
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-12));
  if (n.rank(0) != 2) return n.error(fmt::format("the words have rank {}, 2 is needed", n.rank(0)));
  if (n.has(1) != n.has(4)) return n.error("segments and their table come together");
  const auto words = n.type(0).shape;
  const auto rows = [&](size_t table, ValueId index) -> Result<ValueId> {
    DLC_TRY(const ValueId at, as_s64(n, index));
    return n.emit("gather", {n.in(table), at}, {{"axis", Expr(0)}});
  };
  Values terms(3, kNoValue);
  DLC_TRY(terms[0], rows(2, n.in(0)));
  if (n.has(8)) {
    DLC_TRY(terms[1], rows(3, n.in(8)));
  } else {
    auto stop = n.type(3).shape;
    if (stop.size() != 2) return n.error("the table of positions needs rank 2");
    stop[0] = words[1];
    DLC_TRY(terms[1], n.emit("slice", {n.in(3)}, {{"start", std::vector<Expr>{0, 0}}, {"stop", stop}}));
  }
  if (n.has(1)) {
    DLC_TRY(terms[2], rows(4, n.in(1)));
  }
  DLC_TRY(const ValueId x, sum(n, terms));
  DLC_TRY(const ValueId y, n.emit("layer_norm", {x, n.in(5), n.in(6)}, {{"axis", Expr(-1)}, {"epsilon", epsilon}}));
  ValueId count = kNoValue;
  if (n.wants(1) && n.has(7)) {
    DLC_TRY(const ValueId mask, n.emit("cast", {n.in(7)}, {{"to", kS32}}));
    DLC_TRY(count, n.emit("reduce_sum", {mask}, {{"axes", std::vector<Expr>{1}}}));
  } else if (n.wants(1)) {
    DLC_TRY(const ValueId zero, n.scalar(kS32, 0));
    DLC_TRY(count, n.emit("expand", {zero}, {{"shape", std::vector<Expr>{words[0]}}}));
  }
  return Values{y, count, x};
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
    {"com.microsoft", "BiasGelu", bias_gelu<kExact>, "tt"},
    {"com.microsoft", "FastGelu", bias_gelu<kTanh>, "tT"},
};

}  // namespace

std::span<const OpEntry> transformer_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
