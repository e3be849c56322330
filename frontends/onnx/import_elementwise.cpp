// Element-wise ops. Most are a record of the same meaning; broadcasting is the record's.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// Opset 6 attributes of broadcasting do not exist from opset 7 on; nothing to translate.
template <const char* Record, const char* Attribute, const char* OnnxName = Attribute>
Result<Values> with_alpha(const NodeView& n, double fallback) {
  DLC_TRY(const double a, n.attr_float(OnnxName, fallback));
  return n.emit_all(Record, {n.in(0)}, {{Attribute, a}});
}

constexpr char kAlpha[] = "alpha";
constexpr char kBeta[] = "beta";
constexpr char kLeakyRelu[] = "leaky_relu";
constexpr char kElu[] = "elu";
constexpr char kCelu[] = "celu";
constexpr char kThresholdedRelu[] = "thresholded_relu";

Result<Values> leaky_relu(const NodeView& n) { return with_alpha<kLeakyRelu, kAlpha>(n, 0.01); }
Result<Values> elu(const NodeView& n) { return with_alpha<kElu, kAlpha>(n, 1.0); }
Result<Values> celu(const NodeView& n) { return with_alpha<kCelu, kAlpha>(n, 1.0); }
Result<Values> thresholded_relu(const NodeView& n) { return with_alpha<kThresholdedRelu, kAlpha>(n, 1.0); }

Result<Values> selu(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 1.67326319217681884765625));
  DLC_TRY(const double gamma, n.attr_float("gamma", 1.05070102214813232421875));
  return n.emit_all("selu", {n.in(0)}, {{"alpha", alpha}, {"gamma", gamma}});
}

Result<Values> hard_sigmoid(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float(kAlpha, 0.2));
  DLC_TRY(const double beta, n.attr_float(kBeta, 0.5));
  return n.emit_all("hard_sigmoid", {n.in(0)}, {{kAlpha, alpha}, {kBeta, beta}});
}

Result<Values> gelu(const NodeView& n) {
  DLC_TRY(const std::string approximate, n.attr_string("approximate", "none"));
  return n.emit_all("gelu", {n.in(0)}, {{"approximate", approximate}});
}

// Bounds are attributes before opset 11, inputs from then on.
Result<Values> clip(const NodeView& n) {
  if (n.opset() >= 11) return n.emit_all("clip", {n.in(0), n.in(1), n.in(2)});
  ValueId lo = kNoValue;
  ValueId hi = kNoValue;
  if (n.has_attr("min")) {
    DLC_TRY(const double v, n.attr_float("min", {}));
    DLC_TRY(lo, n.scalar(n.type(0).dtype, v));
  }
  if (n.has_attr("max")) {
    DLC_TRY(const double v, n.attr_float("max", {}));
    DLC_TRY(hi, n.scalar(n.type(0).dtype, v));
  }
  return n.emit_all("clip", {n.in(0), lo, hi});
}

Result<Values> mod(const NodeView& n) {
  DLC_TRY(const int64_t fmod, n.attr_int("fmod", 0));
  return n.emit_all("mod", n.inputs(), {{"fmod", Expr(fmod)}});
}

Result<Values> is_inf(const NodeView& n) {
  DLC_TRY(const int64_t positive, n.attr_int("detect_positive", 1));
  DLC_TRY(const int64_t negative, n.attr_int("detect_negative", 1));
  return n.emit_all("is_inf", {n.in(0)}, {{"detect_positive", Expr(positive)}, {"detect_negative", Expr(negative)}});
}

Result<Values> cast(const NodeView& n) {
  DLC_TRY(const int64_t to, n.attr_int("to", {}));
  if (to < 0 || to > 64) return n.error(fmt::format("attribute 'to' is {}, which is no element type", to));
  DLC_TRY(const DType dtype, element_type(static_cast<int>(to), n.loc()));
  return n.emit_all("cast", {n.in(0)}, {{"to", dtype}});
}

Result<Values> cast_like(const NodeView& n) {
  if (!n.has(1)) return n.error("input 1 is missing");
  return n.emit_all("cast", {n.in(0)}, {{"to", n.type(1).dtype}});
}

Result<Values> shrink(const NodeView& n) {
  DLC_TRY(const double bias, n.attr_float("bias", 0.0));
  DLC_TRY(const double threshold, n.attr_float("lambd", 0.5));
  return n.emit_all("shrink", {n.in(0)}, {{"bias", bias}, {"threshold", threshold}});
}

Result<Values> bit_shift(const NodeView& n) {
  DLC_TRY(const std::string direction, n.attr_string("direction", {}));
  return n.emit_all("bit_shift", n.inputs(), {{"direction", direction}});
}

Result<Values> quick_gelu(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float(kAlpha, 1.702));
  return n.emit_all("swish", {n.in(0)}, {{kAlpha, alpha}});
}

// Variadic ops of one operand are the identity.
template <const char* Record>
Result<Values> variadic(const NodeView& n) {
  if (n.input_count() == 0) return n.error("needs at least one input");
  return n.emit_all(Record, n.inputs());
}
constexpr char kMaxN[] = "max_n";
constexpr char kMinN[] = "min_n";
constexpr char kSumN[] = "sum_n";
constexpr char kMeanN[] = "mean_n";

constexpr OpEntry kTable[] = {
    {"", "Add", nullptr, "add"},
    {"", "Sub", nullptr, "sub"},
    {"", "Mul", nullptr, "mul"},
    {"", "Div", nullptr, "div"},
    {"", "Pow", nullptr, "pow"},
    {"", "Mod", mod},
    {"", "Max", variadic<kMaxN>},
    {"", "Min", variadic<kMinN>},
    {"", "Sum", variadic<kSumN>},
    {"", "Mean", variadic<kMeanN>},
    {"", "Relu", nullptr, "relu"},
    {"", "PRelu", nullptr, "prelu"},
    {"", "LeakyRelu", leaky_relu},
    {"", "Elu", elu},
    {"", "Celu", celu},
    {"", "Selu", selu},
    {"", "ThresholdedRelu", thresholded_relu},
    {"", "HardSigmoid", hard_sigmoid},
    {"", "HardSwish", nullptr, "hard_swish"},
    {"", "Gelu", gelu},
    {"com.microsoft", "Gelu", nullptr, "gelu"},
    {"com.microsoft", "QuickGelu", quick_gelu},
    {"", "Shrink", shrink},
    {"", "BitShift", bit_shift},
    {"", "BitwiseAnd", nullptr, "bit_and"},
    {"", "BitwiseOr", nullptr, "bit_or"},
    {"", "BitwiseXor", nullptr, "bit_xor"},
    {"", "BitwiseNot", nullptr, "bit_not"},
    {"", "Mish", nullptr, "mish"},
    {"", "Clip", clip},
    {"", "Sigmoid", nullptr, "sigmoid"},
    {"", "Softplus", nullptr, "softplus"},
    {"", "Softsign", nullptr, "softsign"},
    {"", "Abs", nullptr, "abs"},
    {"", "Neg", nullptr, "neg"},
    {"", "Exp", nullptr, "exp"},
    {"", "Log", nullptr, "log"},
    {"", "Sqrt", nullptr, "sqrt"},
    {"", "Reciprocal", nullptr, "reciprocal"},
    {"", "Erf", nullptr, "erf"},
    {"", "Sin", nullptr, "sin"},
    {"", "Cos", nullptr, "cos"},
    {"", "Tan", nullptr, "tan"},
    {"", "Asin", nullptr, "asin"},
    {"", "Acos", nullptr, "acos"},
    {"", "Atan", nullptr, "atan"},
    {"", "Sinh", nullptr, "sinh"},
    {"", "Cosh", nullptr, "cosh"},
    {"", "Tanh", nullptr, "tanh"},
    {"", "Asinh", nullptr, "asinh"},
    {"", "Acosh", nullptr, "acosh"},
    {"", "Atanh", nullptr, "atanh"},
    {"", "Floor", nullptr, "floor"},
    {"", "Ceil", nullptr, "ceil"},
    {"", "Round", nullptr, "round"},
    {"", "Sign", nullptr, "sign"},
    {"", "Equal", nullptr, "equal"},
    {"", "Less", nullptr, "less"},
    {"", "LessOrEqual", nullptr, "less_equal"},
    {"", "Greater", nullptr, "greater"},
    {"", "GreaterOrEqual", nullptr, "greater_equal"},
    {"", "And", nullptr, "logical_and"},
    {"", "Or", nullptr, "logical_or"},
    {"", "Xor", nullptr, "logical_xor"},
    {"", "Not", nullptr, "logical_not"},
    {"", "IsNaN", nullptr, "is_nan"},
    {"", "IsInf", is_inf},
    {"", "Where", nullptr, "where"},
    {"", "Cast", cast},
    {"", "CastLike", cast_like},
};

}  // namespace

std::span<const OpEntry> elementwise_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
