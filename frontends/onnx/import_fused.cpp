// What onnxruntime's optimiser makes of products, convolutions and what follows them (com.microsoft).
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// An activation by its ONNX name; `parameters` in the order of ONNX's attributes.
Result<ValueId> activated(const NodeView& n, ValueId x, const std::string& name,
                          const std::vector<double>& parameters) {
  const auto parameter = [&](size_t i, double otherwise) { return i < parameters.size() ? parameters[i] : otherwise; };
  if (name.empty()) return x;
  if (name == "Relu") return n.emit("relu", {x});
  if (name == "Tanh") return n.emit("tanh", {x});
  if (name == "Sigmoid") return n.emit("sigmoid", {x});
  if (name == "Softplus") return n.emit("softplus", {x});
  if (name == "Softsign") return n.emit("softsign", {x});
  if (name == "LeakyRelu") return n.emit("leaky_relu", {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "ThresholdedRelu") return n.emit("thresholded_relu", {x}, {{"alpha", parameter(0, 1.0)}});
  if (name == "Elu") return n.emit("elu", {x}, {{"alpha", parameter(0, 1.0)}});
  if (name == "HardSigmoid")
    return n.emit("hard_sigmoid", {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "HardSwish") return n.emit("hard_swish", {x});
  if (name == "Clip" && parameters.size() == 2) {
    const DType type = n.graph().value(x).type.dtype;
    DLC_TRY(const ValueId lo, n.scalar(type, parameters[0]));
    DLC_TRY(const ValueId hi, n.scalar(type, parameters[1]));
    return n.emit("clip", {x, lo, hi});
  }
  return n.error(fmt::format("activation '{}' with {} parameters is not supported", name, parameters.size()));
}

// A residual sum comes before the activation.
template <bool ChannelsLast>
Result<Values> fused_conv(const NodeView& n) {
  DLC_TRY(Attrs a, conv_attrs(n, 1, ChannelsLast));
  ValueId x = n.in(0);
  if (ChannelsLast) {
    DLC_TRY(x, channels_first(n, x));
  }
  DLC_TRY(ValueId y, n.emit("conv", {x, n.in(1), n.in(2)}, std::move(a)));
  if (ChannelsLast) {
    DLC_TRY(y, channels_last(n, y));
  }
  if (n.has(3)) {
    DLC_TRY(y, n.emit("add", {y, n.in(3)}));
  }
  DLC_TRY(const std::string name, n.attr_string("activation", ""));
  DLC_TRY(const auto parameters, n.attr_floats("activation_params", std::vector<double>{}));
  DLC_TRY(y, activated(n, y, name, parameters));
  return Values{y};
}

// The activation that the node's attributes name, of a product.
Result<Values> activated_product(const NodeView& n, ValueId product) {
  DLC_TRY(const std::string name, n.attr_string("activation", ""));
  if (name == "Softmax") {
    DLC_TRY(const int64_t given, n.attr_int("activation_axis", -1));
    const auto rank = static_cast<int64_t>(n.graph().value(product).type.shape.size());
    DLC_TRY(const int64_t axis, checked_axis(n, given, rank));
    return n.emit_all("softmax", {product}, {{"axis", Expr(axis)}});
  }
  std::vector<double> parameters;
  for (const char* p : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!n.has_attr(p)) break;
    DLC_TRY(const double v, n.attr_float(p, {}));
    parameters.push_back(v);
  }
  DLC_TRY(const ValueId y, activated(n, product, name, parameters));
  return Values{y};
}

Result<Values> fused_gemm(const NodeView& n) {
  DLC_TRY(const Values product, gemm(n));
  return activated_product(n, product[0]);
}

// An operand of a product. Its matrices may be transposed; with `batch`, the rows come before the other batch dims.
Result<ValueId> operand(const NodeView& n, size_t input, bool matrix, bool batch) {
  const int64_t rank = n.rank(input);
  if (rank < 2 || (!matrix && !batch)) return n.in(input);
  std::vector<Expr> perm;
  for (int64_t i = 0; i < rank; ++i) perm.emplace_back(i);
  if (batch) {  // [rows, batch.., columns] as [batch.., rows, columns]
    std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  }
  if (matrix) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return n.emit("transpose", {n.in(input)}, {{"perm", perm}});
}

Result<Values> fused_matmul(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 1.0));
  Values in;
  for (const auto& [input, matrix, batch] :
       {std::tuple(0, "transA", "transBatchA"), std::tuple(1, "transB", "transBatchB")}) {
    DLC_TRY(const int64_t turn, n.attr_int(matrix, 0));
    DLC_TRY(const int64_t turn_batch, n.attr_int(batch, 0));
    DLC_TRY(const ValueId v, operand(n, static_cast<size_t>(input), turn != 0, turn_batch != 0));
    in.push_back(v);
  }
  DLC_TRY(const Values y, matmul_like(n, "matmul", 0, 1, in));
  if (alpha == 1) return y;
  DLC_TRY(const ValueId factor, n.scalar(n.type(0).dtype, alpha));
  return n.emit_all("mul", {y[0], factor});
}

Result<Values> fused_matmul_activation(const NodeView& n) {
  DLC_TRY(const Values product, fused_matmul(n));
  return activated_product(n, product[0]);
}

// X W + B, then GELU in its approximate form.
Result<Values> gemm_fast_gelu(const NodeView& n) {
  DLC_TRY(Values y, matmul_like(n, "matmul", 0, 1, {n.in(0), n.in(1)}));
  if (n.has(2)) {
    DLC_TRY(y[0], n.emit("add", {y[0], n.in(2)}));
  }
  return n.emit_all("gelu", {y[0]}, {{"approximate", "tanh"}});
}

// X + bias + skip.
Result<Values> bias_add(const NodeView& n) {
  DLC_TRY(const ValueId x, n.emit("add", {n.in(0), n.in(1)}));
  return n.emit_all("add", {x, n.in(2)});
}

Result<Values> bias_softmax(const NodeView& n) {
  DLC_TRY(const int64_t given, n.attr_int("axis", 1));
  DLC_TRY(const int64_t axis, checked_axis(n, given, n.rank(0)));
  if (axis != n.rank(0) - 1) return n.error("a softmax over several axes is not supported");
  DLC_TRY(const ValueId x, n.emit("add", {n.in(0), n.in(1)}));
  return n.emit_all("softmax", {x}, {{"axis", Expr(axis)}});
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "FusedConv", fused_conv<false>, "ttTT", "pads"},
    {"com.microsoft", "NhwcConv", fused_conv<true>, "ttT", "pads"},
    {"com.microsoft", "NhwcFusedConv", fused_conv<true>, "ttTT", "pads"},
    {"com.microsoft", "FusedGemm", fused_gemm, "ttT"},
    {.domain = "com.microsoft", .op = "Inverse", .record = "inverse"},
    {"com.microsoft", "FusedMatMul", fused_matmul, "tt"},
    {"com.microsoft", "FusedMatMulActivation", fused_matmul_activation, "tt", "activation_axis"},
    {"com.microsoft", "GemmFastGelu", gemm_fast_gelu, "ttT"},
    {"com.microsoft", "BiasAdd", bias_add, "ttt"},
    {"com.microsoft", "BiasSoftmax", bias_softmax, "tt", "is_inner_broadcast"},
    {"com.microsoft", "TransposeMatMul", fused_matmul, "tt"},
};

}  // namespace

std::span<const OpEntry> fused_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
