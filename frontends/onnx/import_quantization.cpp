// QuantizeLinear and its relatives. Blocked quantisation (opset 21) is refused by name.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// The axis of per-axis scales; a scalar scale has none, and 0 or the last axis will do.
Result<int64_t> scale_axis(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("data or scale is missing");
  DLC_TRY(const int64_t block, n.attr_int("block_size", 0));
  if (block != 0) return n.error("blocked quantisation is not supported");
  DLC_TRY(const int64_t axis, n.attr_int("axis", 1));
  if (n.rank(1) == 0) return -1;
  if (n.rank(1) == 1 && n.type(1).shape[0].is(1)) return n.rank(0) == 0 ? -1 : 0;
  return checked_axis(n, axis, n.rank(0));
}

// One record per tensor (scalar scale) and per axis.
Result<Values> linear(const NodeView& n, const std::string& record, Attrs attrs) {
  DLC_TRY(const int64_t axis, scale_axis(n));
  Values in{n.in(0), n.in(1), n.in(2)};
  if (axis < 0 && n.rank(0) > 0) {  // a scalar scale: a dim of 1 broadcasts along any axis
    for (size_t i = 1; i < in.size(); ++i) {
      if (in[i] == kNoValue) continue;
      DLC_TRY(in[i], n.reshaped(in[i], {1}));
    }
  }
  if (n.rank(0) == 0) {  // the records quantise along an axis: lend the scalar one
    for (auto& v : in) {
      if (v == kNoValue) continue;
      DLC_TRY(v, n.reshaped(v, {1}));
    }
    attrs["axis"] = Expr(0);
    DLC_TRY(const ValueId y, n.emit(record, in, std::move(attrs)));
    return n.emit_all("reshape", {y}, {{"shape", std::vector<Expr>{}}});
  }
  attrs["axis"] = Expr(axis < 0 ? 0 : axis);
  return n.emit_all(record, in, std::move(attrs));
}

// The result type is the zero point's, u8 without one (output_dtype says so from opset 21 on).
Result<Values> quantize_linear(const NodeView& n) {
  DLC_TRY(const int64_t wanted, n.attr_int("output_dtype", 0));
  DType to = kU8;
  if (wanted != 0) {
    DLC_TRY(to, element_type(static_cast<int>(wanted), n.loc()));
  }
  if (n.has(2)) to = n.type(2).dtype;
  return linear(n, "quantize_linear", {{"to", to}});
}

Result<Values> dequantize_linear(const NodeView& n) { return linear(n, "dequantize_linear", {}); }

Result<Values> dynamic_quantize_linear(const NodeView& n) { return n.emit_all("dynamic_quantize_linear", {n.in(0)}); }

constexpr OpEntry kTable[] = {
    {"", "QuantizeLinear", quantize_linear, "ttT", "saturate precision"},
    {"", "DequantizeLinear", dequantize_linear, "ttT"},
    {"com.microsoft", "QuantizeLinear", quantize_linear, "ttT", "saturate precision"},
    {"com.microsoft", "DequantizeLinear", dequantize_linear, "ttT"},
    {"", "DynamicQuantizeLinear", dynamic_quantize_linear, "t"},
};

}  // namespace

std::span<const OpEntry> quantization_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
