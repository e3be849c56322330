// QuantizeLinear and its relatives: a scale for the whole tensor, for each index of an axis, or for each block along
// one.
#include <fmt/format.h>

#include <optional>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// The element type that an attribute names; absent when it is 0 or not there.
Result<std::optional<DType>> type_attribute(const NodeView& n, const char* name) {
  DLC_TRY(const int64_t wanted, n.attr_int(name, 0));
  if (wanted == 0) return std::nullopt;
  if (wanted < 0 || wanted > 64)
    return n.error(fmt::format("attribute '{}' is {}, which is no element type", name, wanted));
  DLC_TRY(const DType type, element_type(static_cast<int>(wanted), n.loc()));
  return type;
}

Result<> cast_to(const NodeView& n, ValueId& v, DType type) {
  if (n.graph().value(v).type.dtype == type) return {};
  DLC_TRY(v, n.emit("cast", {v}, {{"to", type}}));
  return {};
}

// A scale for each block: of the data's shape, but for the axis.
Result<Values> blocks(const NodeView& n, const Values& in, int64_t block, const std::string& record, Attrs attrs) {
  if (block < 0) return n.error(fmt::format("attribute 'block_size' is {}", block));
  if (n.rank(1) != n.rank(0))
    return n.error(fmt::format("blocks of {} need a scale of rank {}, it has {}", block, n.rank(0), n.rank(1)));
  DLC_TRY(const int64_t given, n.attr_int("axis", 1));
  DLC_TRY(const int64_t axis, checked_axis(n, given, n.rank(0)));
  attrs["axis"] = Expr(axis);
  attrs["block"] = Expr(block);
  return n.emit_all(record + "_blocks", in, std::move(attrs));
}

// The axis of per-axis scales; a scalar scale has none, and 0 or the last axis will do.
Result<int64_t> scale_axis(const NodeView& n) {
  DLC_TRY(const int64_t axis, n.attr_int("axis", 1));
  if (n.rank(1) == 0) return -1;
  if (n.rank(1) == 1 && n.type(1).shape[0].is(1)) return n.rank(0) == 0 ? -1 : 0;
  return checked_axis(n, axis, n.rank(0));
}

// One record per tensor (scalar scale) and per axis, another one for blocks. `in`: data, scale, zero point.
Result<Values> scaled(const NodeView& n, Values in, const std::string& record, Attrs attrs) {
  DLC_TRY(const int64_t block, n.attr_int("block_size", 0));
  if (block != 0) return blocks(n, in, block, record, std::move(attrs));
  DLC_TRY(const int64_t axis, scale_axis(n));
  const std::string linear = record + "_linear";
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
    DLC_TRY(const ValueId y, n.emit(linear, in, std::move(attrs)));
    return n.emit_all("reshape", {y}, {{"shape", std::vector<Expr>{}}});
  }
  attrs["axis"] = Expr(axis < 0 ? 0 : axis);
  return n.emit_all(linear, in, std::move(attrs));
}

// The result type is the zero point's, u8 without one, or output_dtype. The division is in `precision`, by default the
// scale's type; a power of two says nothing about it.
Result<Values> quantize_linear(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("data or scale is missing");
  DLC_TRY(const auto wanted, type_attribute(n, "output_dtype"));
  if (n.has(2) && wanted && *wanted != n.type(2).dtype)
    return n.error(fmt::format("attribute 'output_dtype' says {}, the zero point is {}", to_string(*wanted),
                               to_string(n.type(2).dtype)));
  const DType to = n.has(2) ? n.type(2).dtype : wanted.value_or(kU8);
  DLC_TRY(const auto precision, type_attribute(n, "precision"));
  const DType scale = n.type(1).dtype, data = n.type(0).dtype;
  const DType divides = precision                              ? *precision
                        : scale.is_float() && scale != kF8E8M0 ? scale
                        : data.is_float()                      ? data
                                                               : kF32;
  Values in{n.in(0), n.in(1), n.in(2)};
  DLC_CHECK(cast_to(n, in[0], divides));
  DLC_CHECK(cast_to(n, in[1], divides));
  DLC_TRY(const int64_t saturate, n.attr_int("saturate", 1));
  Attrs attrs{{"to", to}};
  if (saturate == 0) attrs["saturate"] = Expr(0);
  return scaled(n, std::move(in), "quantize", std::move(attrs));
}

// The result type is the scale's, or output_dtype, and the product is in it.
Result<Values> dequantize_linear(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("data or scale is missing");
  DLC_TRY(const auto wanted, type_attribute(n, "output_dtype"));
  Values in{n.in(0), n.in(1), n.in(2)};
  if (wanted) DLC_CHECK(cast_to(n, in[1], *wanted));
  return scaled(n, std::move(in), "dequantize", {});
}

Result<Values> dynamic_quantize_linear(const NodeView& n) { return n.emit_all("dynamic_quantize_linear", {n.in(0)}); }

constexpr OpEntry kTable[] = {
    {"", "QuantizeLinear", quantize_linear, "ttT"},
    {"", "DequantizeLinear", dequantize_linear, "ttT"},
    {"com.microsoft", "QuantizeLinear", quantize_linear, "ttT"},
    {"com.microsoft", "DequantizeLinear", dequantize_linear, "ttT"},
    {"", "DynamicQuantizeLinear", dynamic_quantize_linear, "t"},
};

}  // namespace

std::span<const OpEntry> quantization_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
