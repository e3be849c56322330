// Mixtures of experts (com.microsoft): a router chooses for each token some of many small networks.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/attention.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// The weights [experts, rows, columns] and the bias [experts, rows] of one layer of all experts, or none.
struct Layer {
  ValueId weights = kNoValue, bias = kNoValue;
};

// What the router chose: experts [tokens, k], and how much each counts.
struct Choice {
  ValueId experts, share;
};

// How the chosen experts share: by the router's scores or by others. Of the scores by softmax, among all experts or, as
// onnxruntime has it of quantised ones, among the chosen in any case.
struct Sharing {
  ValueId mixing = kNoValue;
  bool always_among_themselves = false;
};

// The k best of the router's scores.
Result<Choice> choose(const NodeView& n, const Sharing& sharing) {
  const ValueId mixing = sharing.mixing;
  DLC_TRY(const int64_t k, n.attr_int("k", 1));
  DLC_TRY(const int64_t normalised, n.attr_int("normalize_routing_weights", 0));
  const bool among_themselves = normalised != 0 || (mixing == kNoValue && sharing.always_among_themselves);
  DLC_TRY(const int64_t sparse, n.attr_int("use_sparse_mixer", 0));
  if (sparse != 0) return n.error("attribute 'use_sparse_mixer' is not supported");
  if (n.rank(1) != 2) return n.error("the router's scores need rank 2");
  const auto count = n.type(1).shape[1].constant();
  if (k < 1 || (count && k > *count)) return n.error(fmt::format("attribute 'k' is {}", k));
  const Attrs last{{"axis", Expr(1)}};
  DLC_TRY(const Values best, n.emit_all("top_k", {n.in(1)}, {{"k", Expr(k)}, {"axis", Expr(1)}}));
  if (mixing != kNoValue) {
    DLC_TRY(ValueId share, n.emit("gather_elements", {mixing, best[1]}, last));
    if (among_themselves) {
      DLC_TRY(const ValueId sum, n.emit("reduce_sum", {share}, {{"axes", Exprs{1}}, {"keepdims", Expr(1)}}));
      DLC_TRY(share, n.emit("div", {share, sum}));
    }
    return Choice{best[1], share};
  }
  if (among_themselves) {
    DLC_TRY(const ValueId share, n.emit("softmax", {best[0]}, last));
    return Choice{best[1], share};
  }
  DLC_TRY(const ValueId all, n.emit("softmax", {n.in(1)}, last));
  DLC_TRY(const ValueId share, n.emit("gather_elements", {all, best[1]}, last));
  return Choice{best[1], share};
}

// [tokens, 1 or k, columns] by each chosen expert's layer: [tokens, k, rows].
Result<ValueId> applied(const NodeView& n, ValueId x, const Layer& layer, ValueId experts) {
  DLC_TRY(ValueId y, n.emit("chosen_matmul", {x, layer.weights, experts}));
  if (layer.bias == kNoValue) return y;
  DLC_TRY(const ValueId bias, n.emit("gather", {layer.bias, experts}, {{"axis", Expr(0)}}));
  return n.emit("add", {y, bias});
}

// gate * sigmoid(alpha * gate) * (linear + beta), of values that are cut to a limit.
Result<ValueId> swiglu(const NodeView& n, ValueId gate, ValueId linear, double limit) {
  DLC_TRY(const double alpha, n.attr_float("activation_alpha", 1.0));
  DLC_TRY(const double beta, n.attr_float("activation_beta", 0.0));
  const DType type = type_of(n, gate).dtype;
  if (std::isfinite(limit)) {
    DLC_TRY(const ValueId hi, n.scalar(type, limit));
    DLC_TRY(const ValueId lo, n.scalar(type, -limit));
    DLC_TRY(gate, n.emit("clip", {gate, kNoValue, hi}));
    DLC_TRY(linear, n.emit("clip", {linear, lo, hi}));
  }
  DLC_TRY(const ValueId opened, n.emit("swish", {gate}, {{"alpha", alpha}}));
  if (beta != 0) {
    DLC_TRY(const ValueId more, n.scalar(type, beta));
    DLC_TRY(linear, n.emit("add", {linear, more}));
  }
  return n.emit("mul", {opened, linear});
}

// The two halves of a layer that is two: every second row, or one after the other.
Result<Values> halves(const NodeView& n, ValueId y, bool interleaved) {
  const Exprs shape = type_of(n, y).shape;
  const Expr half = floor_div(shape[2], 2);
  DLC_TRY(const ValueId pairs,
          reshaped(n, y, interleaved ? Exprs{shape[0], shape[1], half, 2} : Exprs{shape[0], shape[1], 2, half}));
  const size_t axis = interleaved ? 3 : 2;
  Values out;
  for (const int64_t i : {0, 1}) {
    DLC_TRY(const ValueId part, sliced(n, pairs, axis, i, i + 1));
    DLC_TRY(const ValueId flat, reshaped(n, part, {shape[0], shape[1], half}));
    out.push_back(flat);
  }
  return out;
}

// Tokens through their experts: `in` (or `in` beside `gate`), an activation, `out`.
Result<Values> mixture(const NodeView& n, const Layer& in, const Layer& out, const Layer& beside,
                       const Sharing& sharing) {
  DLC_TRY(const std::string kind, n.attr_string("activation_type", "relu"));
  DLC_TRY(const int64_t fused, n.attr_int("swiglu_fusion", 0));
  DLC_TRY(const int64_t after, n.attr_int("swiglu_limit_after_activation", 0));
  if (after != 0) return n.error("attribute 'swiglu_limit_after_activation' is not supported");
  const Exprs shape = n.type(0).shape;
  if (shape.size() != 2 && shape.size() != 3) return n.error("the tokens need rank 2 or 3");
  const Expr tokens = shape.size() == 2 ? shape[0] : shape[0] * shape[1];
  DLC_TRY(const Choice chosen, choose(n, sharing));
  DLC_TRY(const ValueId x, reshaped(n, n.in(0), {tokens, 1, shape.back()}));
  DLC_TRY(ValueId y, applied(n, x, in, chosen.experts));
  if (kind == "swiglu" || kind == "geglu") {
    Values parts{y, kNoValue};
    if (fused != 0) {
      DLC_TRY(parts, halves(n, y, fused == 1));
    } else if (beside.weights != kNoValue) {
      DLC_TRY(parts[1], applied(n, x, beside, chosen.experts));
    } else {
      return n.error("a gate without fusion needs the third layer");
    }
    if (kind == "swiglu") {
      DLC_TRY(const double limit, n.attr_float("swiglu_limit", INFINITY));
      DLC_TRY(y, swiglu(n, parts[0], parts[1], limit));
    } else {
      DLC_TRY(const ValueId opened, n.emit("gelu", {parts[0]}, {{"approximate", "tanh"}}));
      DLC_TRY(y, n.emit("mul", {opened, parts[1]}));
    }
  } else {
    if (kind == "relu") {
      DLC_TRY(y, n.emit("relu", {y}));
    } else if (kind == "gelu") {
      DLC_TRY(y, n.emit("gelu", {y}, {{"approximate", "tanh"}}));
    } else if (kind == "silu") {
      DLC_TRY(y, n.emit("swish", {y}));
    } else if (kind != "identity") {
      return n.error(fmt::format("attribute 'activation_type' is '{}'", kind));
    }
    if (beside.weights != kNoValue) {
      DLC_TRY(const ValueId linear, applied(n, x, beside, chosen.experts));
      DLC_TRY(y, n.emit("mul", {y, linear}));
    }
  }
  DLC_TRY(y, applied(n, y, out, chosen.experts));
  DLC_TRY(const ValueId share, n.emit("unsqueeze", {chosen.share}, {{"axes", Exprs{2}}}));
  DLC_TRY(y, n.emit("mul", {y, share}));
  DLC_TRY(y, n.emit("reduce_sum", {y}, {{"axes", Exprs{1}}}));
  DLC_TRY(y, reshaped(n, y, shape));
  return Values{y};
}

// tokens, scores of the router, weights and bias of each layer.
Result<Values> moe(const NodeView& n) {
  for (const size_t i : {2, 4})
    if (n.rank(i) != 3) return n.error("the weights need rank 3");
  return mixture(n, {n.in(2), n.in(3)}, {n.in(4), n.in(5)}, {n.in(6), n.in(7)}, {});
}

// Of packed integers [experts, rows, bytes], with a scale and perhaps a zero point for each row or for each block of
// it.
Result<ValueId> float_weights(const NodeView& n, size_t weights, size_t scales, size_t zeros, int64_t bits) {
  if (!n.has(weights)) return kNoValue;
  DLC_TRY(const int64_t block, n.attr_int("block_size", 0));
  if (!n.has(scales) || n.rank(weights) != 3) return n.error("quantised weights need rank 3, and scales");
  const Exprs shape = n.type(weights).shape;
  const Expr rows = shape[0] * shape[1], count = shape[2] * (8 / bits);
  const Expr blocks = block > 0 ? floor_div(count, block) : Expr(1);
  DLC_TRY(const ValueId packed, reshaped(n, n.in(weights), {rows, blocks, floor_div(shape[2], blocks)}));
  DLC_TRY(const ValueId scale, reshaped(n, n.in(scales), {rows, blocks}));
  ValueId zero = n.in(zeros);
  if (zero != kNoValue) {
    if (block <= 0 && bits != 8) return n.error("packed zero points of whole rows are not supported");
    DLC_TRY(zero, reshaped(n, zero, {rows, ceil_div(blocks * bits, 8)}));
  }
  DLC_TRY(ValueId w,
          n.emit("unpack_blocks", {packed, scale, zero, kNoValue, kNoValue}, {{"bits", Expr(bits)}, {"count", count}}));
  if (type_of(n, w).dtype != n.type(0).dtype) {
    DLC_TRY(w, n.emit("cast", {w}, {{"to", n.type(0).dtype}}));
  }
  return reshaped(n, w, {shape[0], shape[1], count});
}

// tokens, scores of the router; of each layer weights, scales and bias; zero points of each; what is mixed instead of
// the scores.
Result<Values> quantised_moe(const NodeView& n) {
  DLC_TRY(const std::string kind, n.attr_string("quant_type", "int"));
  if (kind != "int") return n.error(fmt::format("attribute 'quant_type' is '{}'", kind));
  DLC_TRY(const int64_t prepacked, n.attr_int("weights_prepacked", 0));
  if (prepacked > 0) return n.error("attribute 'weights_prepacked' is not supported: the layout is a device's own");
  for (size_t i = 15; i < n.input_count(); ++i)
    if (n.has(i)) return n.error(fmt::format("input {} is not supported", i));
  DLC_TRY(const int64_t all, n.attr_int("expert_weight_bits", 4));
  Layer layers[3];
  for (size_t i = 0; i < 3; ++i) {
    DLC_TRY(const int64_t bits, n.attr_int(fmt::format("fc{}_expert_weight_bits", i + 1), all));
    if (bits != 2 && bits != 4 && bits != 8) return n.error(fmt::format("weights of {} bits are not supported", bits));
    const size_t at = 2 + 3 * i;
    DLC_TRY(layers[i].weights, float_weights(n, at, at + 1, 11 + i, bits));
    layers[i].bias = n.in(at + 2);
  }
  return mixture(n, layers[0], layers[1], layers[2], {n.in(14), true});
}

// By itself; without a second operand, of the two halves of the first one's last dim.
Result<Values> swiglu_of_two(const NodeView& n) {
  DLC_TRY(const double limit, n.attr_float("limit", 0.0));
  Values parts{n.in(0), n.in(1)};
  const Exprs shape = n.type(0).shape;
  if (shape.empty()) return n.error("the data need a dim");
  if (!n.has(1)) {
    const Expr half = floor_div(shape.back(), 2);
    const size_t last = shape.size() - 1;
    DLC_TRY(parts[0], sliced(n, n.in(0), last, 0, half));
    DLC_TRY(parts[1], sliced(n, n.in(0), last, half, half * 2));
  }
  DLC_TRY(const ValueId y, swiglu(n, parts[0], parts[1], limit > 0 ? limit : INFINITY));
  return Values{y};
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "MoE", moe, "tttTtTTT"},
    {"com.microsoft", "SwiGLU", swiglu_of_two, "tT", "round_activation"},
    {"com.microsoft", "QMoE", quantised_moe, "tttTTtTTTTTTTTTTTTTTT", "accuracy_level"},
};

}  // namespace

std::span<const OpEntry> expert_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
