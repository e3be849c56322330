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

// `saturate` and `round_mode` have a meaning for floats of 8 bits alone.
Result<Values> cast_to(const NodeView& n, DType to) {
  DLC_TRY(const int64_t saturate, n.attr_int("saturate", 1));
  DLC_TRY(const std::string round_mode, n.attr_string("round_mode", "up"));
  if (to == kF8E8M0)
    return n.emit_all("narrowing_cast", {n.in(0)},
                      {{"to", to}, {"saturate", Expr(saturate)}, {"round_mode", round_mode}});
  if (to.is_float() && to.bits == 8 && saturate != 0) return n.emit_all("narrowing_cast", {n.in(0)}, {{"to", to}});
  return n.emit_all("cast", {n.in(0)}, {{"to", to}});
}

Result<Values> cast(const NodeView& n) {
  DLC_TRY(const int64_t to, n.attr_int("to", {}));
  if (to < 0 || to > 64) return n.error(fmt::format("attribute 'to' is {}, which is no element type", to));
  DLC_TRY(const DType dtype, element_type(static_cast<int>(to), n.loc()));
  return cast_to(n, dtype);
}

Result<Values> cast_like(const NodeView& n) { return cast_to(n, n.type(1).dtype); }

// Between integers of one size a cast keeps the bits, and a bool is 0 or 1.
Result<Values> bit_cast(const NodeView& n) {
  DLC_TRY(const int64_t given, n.attr_int("to", {}));
  if (given < 0 || given > 64) return n.error(fmt::format("attribute 'to' is {}, which is no element type", given));
  DLC_TRY(const DType to, element_type(static_cast<int>(given), n.loc()));
  const DType from = n.type(0).dtype;
  if (from.bits == to.bits && !from.is_float() && !to.is_float()) return n.emit_all("cast", {n.in(0)}, {{"to", to}});
  return n.emit_all("bit_cast", {n.in(0)}, {{"to", to}});
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
  DLC_TRY(const ValueId y, folded(n, Record, n.inputs()));
  return Values{y};
}
// The sum, divided: a mean of means would round differently.
Result<Values> mean(const NodeView& n) {
  if (n.input_count() <= 64) return n.emit_all("mean_n", n.inputs());
  DLC_TRY(const ValueId sum, folded(n, "sum_n", n.inputs()));
  DLC_TRY(const ValueId count, n.scalar(n.type(0).dtype, static_cast<double>(n.input_count())));
  return n.emit_all("div", {sum, count});
}
constexpr char kMaxN[] = "max_n";
constexpr char kMinN[] = "min_n";
constexpr char kSumN[] = "sum_n";

constexpr OpEntry kTable[] = {
    {.op = "Add", .record = "add"},
    {.op = "Sub", .record = "sub"},
    {.op = "Mul", .record = "mul"},
    {.op = "Div", .record = "div"},
    {.op = "Pow", .record = "pow"},
    {"", "Mod", mod, "tt"},
    {"", "Max", variadic<kMaxN>, "t*"},
    {"", "Min", variadic<kMinN>, "t*"},
    {"", "Sum", variadic<kSumN>, "t*"},
    {"", "Mean", mean, "t*"},
    {.op = "Relu", .record = "relu"},
    {.op = "PRelu", .record = "prelu"},
    {"", "LeakyRelu", leaky_relu, "t"},
    {"", "Elu", elu, "t"},
    {"", "Celu", celu, "t"},
    {"", "Selu", selu, "t"},
    {"", "ThresholdedRelu", thresholded_relu, "t"},
    {"", "HardSigmoid", hard_sigmoid, "t"},
    {.op = "HardSwish", .record = "hard_swish"},
    {"", "Gelu", gelu, "t"},
    {.domain = "com.microsoft", .op = "Gelu", .record = "gelu"},
    {"com.microsoft", "QuickGelu", quick_gelu, "t"},
    {"", "Shrink", shrink, "t"},
    {"", "BitShift", bit_shift, "tt"},
    {.op = "BitwiseAnd", .record = "bit_and"},
    {.op = "BitwiseOr", .record = "bit_or"},
    {.op = "BitwiseXor", .record = "bit_xor"},
    {.op = "BitwiseNot", .record = "bit_not"},
    {.op = "Mish", .record = "mish"},
    {"", "Clip", clip, "t", "", 10},
    {"", "Clip", clip, "tTT"},
    {.op = "Sigmoid", .record = "sigmoid"},
    {.op = "Softplus", .record = "softplus"},
    {.op = "Softsign", .record = "softsign"},
    {.op = "Abs", .record = "abs"},
    {.op = "Neg", .record = "neg"},
    {.op = "Exp", .record = "exp"},
    {.op = "Log", .record = "log"},
    {.op = "Sqrt", .record = "sqrt"},
    {.op = "Reciprocal", .record = "reciprocal"},
    {.op = "Erf", .record = "erf"},
    {.op = "Sin", .record = "sin"},
    {.op = "Cos", .record = "cos"},
    {.op = "Tan", .record = "tan"},
    {.op = "Asin", .record = "asin"},
    {.op = "Acos", .record = "acos"},
    {.op = "Atan", .record = "atan"},
    {.op = "Sinh", .record = "sinh"},
    {.op = "Cosh", .record = "cosh"},
    {.op = "Tanh", .record = "tanh"},
    {.op = "Asinh", .record = "asinh"},
    {.op = "Acosh", .record = "acosh"},
    {.op = "Atanh", .record = "atanh"},
    {.op = "Floor", .record = "floor"},
    {.op = "Ceil", .record = "ceil"},
    {.op = "Round", .record = "round"},
    {.op = "Sign", .record = "sign"},
    {.op = "Equal", .record = "equal"},
    {.op = "Less", .record = "less"},
    {.op = "LessOrEqual", .record = "less_equal"},
    {.op = "Greater", .record = "greater"},
    {.op = "GreaterOrEqual", .record = "greater_equal"},
    {.op = "And", .record = "logical_and"},
    {.op = "Or", .record = "logical_or"},
    {.op = "Xor", .record = "logical_xor"},
    {.op = "Not", .record = "logical_not"},
    {.op = "IsNaN", .record = "is_nan"},
    {"", "IsInf", is_inf, "t"},
    {.op = "Where", .record = "where"},
    {"", "Cast", cast, "t"},
    {"", "BitCast", bit_cast, "t"},
    {"", "CastLike", cast_like, "tt"},
};

}  // namespace

std::span<const OpEntry> elementwise_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
