// onnxruntime's ops on quantised operands (com.microsoft). Sums and products are records; for the others the meaning is
// dequantize, the float op, quantize.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// The scale and the zero point at inputs `at` and `at + 1`: one number each.
struct Quantization {
  ValueId scale = kNoValue, zero = kNoValue;
};

Result<Quantization> quantization(const NodeView& n, size_t at) {
  if (!n.has(at)) return n.error(fmt::format("input {} (scale) is missing", at));
  Quantization q;
  DLC_TRY(q.scale, scalar_input(n, at));
  DLC_TRY(q.zero, scalar_input(n, at + 1));
  return q;
}

// The zero point, which a record wants even where the model leaves it out.
Result<ValueId> zero_point(const NodeView& n, const Quantization& q, DType type) {
  if (q.zero != kNoValue) return q.zero;
  return n.scalar(type, 0);
}

// The records quantise along an axis; a scalar has a dim of 1 for it.
Result<Values> along_axis(const NodeView& n, ValueId x, const Quantization& q) {
  Values in{x, kNoValue, kNoValue};
  DLC_TRY(in[1], n.reshaped(q.scale, {1}));
  if (q.zero != kNoValue) {
    DLC_TRY(in[2], n.reshaped(q.zero, {1}));
  }
  return in;
}

Result<ValueId> dequantized(const NodeView& n, ValueId x, const Quantization& q) {
  if (n.graph().value(x).type.shape.empty()) return n.error("scalars are not supported");
  DLC_TRY(const Values in, along_axis(n, x, q));
  return n.emit("dequantize_linear", in, {{"axis", Expr(0)}});
}

Result<Values> quantized(const NodeView& n, ValueId y, const Quantization& q, DType type) {
  DLC_TRY(const Values in, along_axis(n, y, q));
  return n.emit_all("quantize_linear", in, {{"axis", Expr(0)}, {"to", type}});
}

template <const char* Record>
Result<Values> binary(const NodeView& n) {
  if (!n.has(0) || !n.has(3)) return n.error("needs two operands");
  const DType type = n.type(0).dtype;
  Values in;
  for (const size_t at : {0, 3, 6}) {  // operand, scale, zero point; the result has the last two only
    if (at < 6) in.push_back(n.in(at));
    DLC_TRY(const Quantization q, quantization(n, at < 6 ? at + 1 : at));
    in.push_back(q.scale);
    DLC_TRY(const ValueId zero, zero_point(n, q, type));
    in.push_back(zero);
  }
  return n.emit_all(Record, in);
}
constexpr char kAdd[] = "qlinear_add";
constexpr char kMul[] = "qlinear_mul";

// X, its quantisation, and the result's.
Result<Values> unary(const NodeView& n, const std::string& record, Attrs attrs) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const Quantization from, quantization(n, 1));
  DLC_TRY(const Quantization to, quantization(n, 3));
  DLC_TRY(const ValueId x, dequantized(n, n.in(0), from));
  DLC_TRY(const ValueId y, n.emit(record, {x}, std::move(attrs)));
  return quantized(n, y, to, n.type(0).dtype);
}

// A pool of rows and columns, of data whose channels come second or last.
Result<Values> pool(const NodeView& n, const std::string& record, Attrs attrs, bool last) {
  if (!last) return unary(n, record, std::move(attrs));
  DLC_TRY(const Quantization from, quantization(n, 1));
  DLC_TRY(const Quantization to, quantization(n, 3));
  DLC_TRY(const ValueId turned, channels_first(n, n.in(0)));
  DLC_TRY(const ValueId x, dequantized(n, turned, from));
  DLC_TRY(const ValueId y, n.emit(record, {x}, std::move(attrs)));
  DLC_TRY(const Values z, quantized(n, y, to, n.type(0).dtype));
  DLC_TRY(const ValueId back, channels_last(n, z[0]));
  return Values{back};
}

Result<Values> average_pool(const NodeView& n) {
  if (!n.has(0) || n.rank(0) < 3) return n.error("the input needs rank 3 or more");
  if (!n.has_attr("kernel_shape")) return n.error("attribute 'kernel_shape' is required");
  DLC_TRY(const int64_t last, n.attr_int("channels_last", 0));
  const auto shape = n.type(0).shape;
  DLC_TRY(const Window w, read_window(n, {}, std::span(shape).subspan(last != 0 ? 1 : 2, shape.size() - 2)));
  DLC_TRY(const int64_t ceil_mode, n.attr_int("ceil_mode", 0));
  DLC_TRY(const int64_t include, n.attr_int("count_include_pad", 0));
  Attrs a = window_attrs(w, true);
  a["ceil_mode"] = Expr(ceil_mode != 0);
  a["count_include_pad"] = Expr(include != 0);
  return pool(n, "avg_pool", std::move(a), last != 0);
}

Result<Values> global_average_pool(const NodeView& n) {
  if (!n.has(0) || n.rank(0) < 3) return n.error("the input needs rank 3 or more");
  DLC_TRY(const int64_t last, n.attr_int("channels_last", 0));
  std::vector<Expr> axes;
  for (int64_t i = 2; i < n.rank(0); ++i) axes.emplace_back(i);
  return pool(n, "reduce_mean", {{"axes", axes}, {"keepdims", Expr(1)}}, last != 0);
}

Result<Values> reduce_mean(const NodeView& n) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n.rank(0); ++i) all.push_back(i);
  DLC_TRY(auto axes, n.attr_ints("axes", all));
  DLC_TRY(axes, checked_axes(n, std::move(axes), n.rank(0)));
  DLC_TRY(const int64_t keep, n.attr_int("keepdims", 1));
  return unary(n, "reduce_mean", {{"axes", to_exprs(axes)}, {"keepdims", Expr(keep != 0)}});
}

// Its attribute 'opset' says which Softmax is meant: before 13 the axes from `axis` on are one.
Result<Values> softmax(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const int64_t opset, n.attr_int("opset", 13));
  DLC_TRY(const int64_t attr, n.attr_int("axis", opset >= 13 ? -1 : 1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  if (opset >= 13 || axis == n.rank(0) - 1) return unary(n, "softmax", {{"axis", Expr(axis)}});
  DLC_TRY(const Quantization from, quantization(n, 1));
  DLC_TRY(const Quantization to, quantization(n, 3));
  const auto shape = n.type(0).shape;
  std::vector<Expr> flat(shape.begin(), shape.begin() + axis);
  Expr rest(1);
  for (auto d = static_cast<size_t>(axis); d < shape.size(); ++d) rest = rest * shape[d];
  flat.push_back(rest);
  DLC_TRY(const ValueId wide, n.emit("reshape", {n.in(0)}, {{"shape", flat}}));
  DLC_TRY(const ValueId x, dequantized(n, wide, from));
  DLC_TRY(const ValueId y, n.emit("softmax", {x}, {{"axis", Expr(axis)}}));
  DLC_TRY(const Values z, quantized(n, y, to, n.type(0).dtype));
  return n.emit_all("reshape", {z[0]}, {{"shape", shape}});
}

Result<Values> sigmoid(const NodeView& n) { return unary(n, "sigmoid", {}); }

Result<Values> leaky_relu(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 0.01));
  return unary(n, "leaky_relu", {{"alpha", alpha}});
}

// The result's quantisation comes first, then X, scale and zero point of each operand.
Result<Values> concat(const NodeView& n) {
  if (n.input_count() < 5 || (n.input_count() - 2) % 3 != 0) return n.error("the number of inputs is wrong");
  if (!n.has(2)) return n.error("input 2 is missing");
  DLC_TRY(const Quantization to, quantization(n, 0));
  DLC_TRY(const int64_t attr, n.attr_int("axis", {}));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(2)));
  Values parts;
  for (size_t i = 2; i < n.input_count(); i += 3) {
    if (!n.has(i)) return n.error(fmt::format("input {} is missing", i));
    DLC_TRY(const Quantization from, quantization(n, i + 1));
    DLC_TRY(const ValueId x, dequantized(n, n.in(i), from));
    parts.push_back(x);
  }
  DLC_TRY(const ValueId y, concatenated(n, std::move(parts), axis));
  return quantized(n, y, to, n.type(2).dtype);
}

// A condition, X and its quantisation, Y and its own, the result's.
Result<Values> where(const NodeView& n) {
  Values parts;
  for (const size_t at : {1, 4}) {
    DLC_TRY(const Quantization from, quantization(n, at + 1));
    DLC_TRY(const ValueId x, dequantized(n, n.in(at), from));
    parts.push_back(x);
  }
  DLC_TRY(const Quantization to, quantization(n, 7));
  DLC_TRY(const ValueId y, n.emit("where", {n.in(0), parts[0], parts[1]}));
  return quantized(n, y, to, n.type(1).dtype);
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "QLinearAdd", binary<kAdd>, "ttTttTtT"},
    {"com.microsoft", "QLinearMul", binary<kMul>, "ttTttTtT"},
    {"com.microsoft", "QLinearAveragePool", average_pool, "ttTtT", "pads"},
    {"com.microsoft", "QLinearGlobalAveragePool", global_average_pool, "ttTtT"},
    {"com.microsoft", "QLinearReduceMean", reduce_mean, "ttTtT"},
    {"com.microsoft", "QLinearSoftmax", softmax, "ttTtT"},
    {"com.microsoft", "QLinearSigmoid", sigmoid, "ttTtT"},
    {"com.microsoft", "QLinearLeakyRelu", leaky_relu, "ttTtT"},
    {"com.microsoft", "QLinearWhere", where, "ttttttttt"},
    {"com.microsoft", "QLinearConcat", concat, "tTtT*"},
};

}  // namespace

std::span<const OpEntry> qlinear_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
