// Products with quantised weights (com.microsoft): weights of a few bits in blocks, and integers whose result is float.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;
using Exprs = std::vector<Expr>;

Result<ValueId> reshaped(const NodeView& n, ValueId v, Exprs shape) {
  return n.emit("reshape", {v}, {{"shape", std::move(shape)}});
}

Result<ValueId> as_type(const NodeView& n, ValueId v, DType type) {
  if (n.graph().value(v).type.dtype == type) return v;
  return n.emit("cast", {v}, {{"to", type}});
}

Expr elements(const Exprs& shape) {
  Expr count(1);
  for (const Expr& d : shape) count = count * d;
  return count;
}

// Rows of packed weights [rows, blocks, bytes] with their scales [rows, blocks]: `count` weights a row.
Result<ValueId> unpacked(const NodeView& n, ValueId packed, ValueId scales, ValueId zeros, ValueId groups, int64_t bits,
                         const Expr& count) {
  const bool numbers = zeros != kNoValue && n.graph().value(zeros).type.dtype.is_float();
  return n.emit("unpack_blocks", {packed, scales, numbers ? kNoValue : zeros, numbers ? zeros : kNoValue, groups},
                {{"bits", Expr(bits)}, {"count", count}});
}

Result<int64_t> checked_bits(const NodeView& n, int64_t otherwise) {
  DLC_TRY(const int64_t bits, n.attr_int("bits", otherwise));
  if (bits != 2 && bits != 4 && bits != 8)
    return n.error(fmt::format("attribute 'bits' is {}, 2, 4 or 8 is needed", bits));
  return bits;
}

// A, packed B, scales, zero points, groups, bias. How exact the product is beyond 'accuracy_level' is free.
Result<Values> matmul_nbits(const NodeView& n) {
  DLC_TRY(const int64_t bits, checked_bits(n, 4));
  DLC_TRY(const int64_t rows, n.attr_int("N", {}));
  DLC_TRY(const int64_t depth, n.attr_int("K", {}));
  DLC_TRY(const int64_t block, n.attr_int("block_size", {}));
  DLC_TRY(const int64_t prepacked, n.attr_int("weight_prepacked", 0));
  if (prepacked != 0) return n.error("attribute 'weight_prepacked' is not supported: the layout is a device's own");
  if (rows < 1 || depth < 1 || block < 8 || block % 8 != 0) return n.error("'N', 'K' or 'block_size' is out of range");
  const int64_t blocks = (depth + block - 1) / block;
  DLC_TRY(const ValueId packed, reshaped(n, n.in(1), {rows, blocks, block / 8 * bits}));
  DLC_TRY(const ValueId scales, reshaped(n, n.in(2), {rows, blocks}));
  ValueId zeros = n.in(3);
  if (zeros != kNoValue) {
    const bool numbers = n.type(3).dtype.is_float();
    DLC_TRY(zeros, reshaped(n, zeros, {rows, numbers ? blocks : (blocks * bits + 7) / 8}));
  }
  ValueId groups = n.in(4);
  if (groups != kNoValue) {
    DLC_TRY(groups, as_type(n, groups, kS64));
    const auto shape = n.type(4).shape;
    if (shape.size() == 1 && shape[0] != Expr(depth)) {  // padded to whole blocks
      DLC_TRY(groups, n.emit("slice", {groups}, {{"start", Exprs{0}}, {"stop", Exprs{depth}}}));
    }
  }
  DLC_TRY(ValueId w, unpacked(n, packed, scales, zeros, groups, bits, depth));
  DLC_TRY(w, as_type(n, w, n.type(0).dtype));
  DLC_TRY(w, n.emit("transpose", {w}, {{"perm", Exprs{1, 0}}}));
  DLC_TRY(Values y, matmul_like(n, "matmul", 0, 1, {n.in(0), w}));
  if (!n.has(5)) return y;
  return n.emit_all("add", {y[0], n.in(5)});
}

// Rows of a packed table, chosen before they are unpacked.
Result<Values> gather_block_quantized(const NodeView& n) {
  DLC_TRY(const int64_t bits, checked_bits(n, 4));
  DLC_TRY(const int64_t gather, n.attr_int("gather_axis", 0));
  DLC_TRY(const int64_t quantised, n.attr_int("quantize_axis", 1));
  DLC_TRY(const int64_t block, n.attr_int("block_size", 128));
  const int64_t rank = n.rank(0);
  DLC_TRY(const int64_t axis, checked_axis(n, gather, rank));
  DLC_TRY(const int64_t along, checked_axis(n, quantised, rank));
  if (n.type(0).dtype != kU8)
    return n.error(fmt::format("packed data of type {} are not supported, only u8", to_string(n.type(0).dtype)));
  if (axis != 0 || along != rank - 1 || rank < 2)
    return n.error("only rows of data that are quantised along their last axis are supported");
  if (block < 16 || block % 8 != 0) return n.error(fmt::format("attribute 'block_size' is {}", block));
  const auto data = n.type(0).shape;
  const auto index = n.type(1).shape;
  const Expr& width = data.back();
  const Expr count = width * (8 / bits), bytes(block / 8 * bits), blocks = ceil_div(count, block);
  DLC_TRY(const ValueId at, as_type(n, n.in(1), kS64));
  const auto rows = [&](ValueId table) { return n.emit("gather", {table, at}, {{"axis", Expr(0)}}); };
  Expr lines = elements(index);
  for (size_t d = 1; d + 1 < data.size(); ++d) lines = lines * data[d];
  DLC_TRY(ValueId packed, rows(n.in(0)));
  DLC_TRY(packed, reshaped(n, packed, {lines, width}));
  if (blocks * bytes != width) {  // the last block is not full
    DLC_TRY(packed, n.emit("pad", {packed, kNoValue}, {{"lo", Exprs{0, 0}}, {"hi", Exprs{0, blocks * bytes - width}}}));
  }
  DLC_TRY(packed, reshaped(n, packed, {lines, blocks, bytes}));
  DLC_TRY(ValueId scales, rows(n.in(2)));
  DLC_TRY(scales, reshaped(n, scales, {lines, blocks}));
  ValueId zeros = n.in(3);
  if (zeros != kNoValue) {
    DLC_TRY(zeros, rows(zeros));
    DLC_TRY(zeros, reshaped(n, zeros, {lines, ceil_div(blocks * bits, 8)}));
  }
  DLC_TRY(const ValueId y, unpacked(n, packed, scales, zeros, kNoValue, bits, count));
  Exprs shape = index;
  shape.insert(shape.end(), data.begin() + 1, data.end() - 1);
  shape.push_back(count);
  DLC_TRY(const ValueId z, reshaped(n, y, shape));
  return Values{z};
}

// One number, or one for each row of the result.
Result<ValueId> row_scale(const NodeView& n, ValueId scale) {
  const Exprs shape = n.graph().value(scale).type.shape;
  if (shape.size() != 1 || shape[0].is(1)) return scale;
  return reshaped(n, scale, {shape[0], 1});
}

}  // namespace

Result<ValueId> scaled_product(const NodeView& n, ValueId a, ValueId b, ValueId a_zero, ValueId b_zero, ValueId a_scale,
                               ValueId b_scale) {
  const auto as_list = [&](ValueId zero) -> Result<ValueId> {
    if (zero == kNoValue || !n.graph().value(zero).type.shape.empty()) return zero;
    return n.reshaped(zero, {1});
  };
  DLC_TRY(a_zero, as_list(a_zero));
  DLC_TRY(b_zero, as_list(b_zero));
  DLC_TRY(const ValueId sum, n.emit("int_matmul", {a, b, a_zero, b_zero}));
  DLC_TRY(const ValueId wide, n.emit("cast", {sum}, {{"to", n.graph().value(b_scale).type.dtype}}));
  DLC_TRY(const ValueId rows, row_scale(n, a_scale));
  DLC_TRY(const ValueId scale, n.emit("mul", {rows, b_scale}));
  return n.emit("mul", {wide, scale});
}

namespace {

Result<Values> with_bias(const NodeView& n, ValueId y, size_t bias) {
  if (!n.has(bias)) return Values{y};
  return n.emit_all("add", {y, n.in(bias)});
}

// A, B, their scales, their zero points, bias.
Result<Values> matmul_integer_to_float(const NodeView& n) {
  DLC_TRY(const ValueId y, scaled_product(n, n.in(0), n.in(1), n.in(4), n.in(5), n.in(2), n.in(3)));
  return with_bias(n, y, 6);
}

// A, B, its scale and zero point, bias. A is quantised as its values ask.
Result<Values> dynamic_quantize_matmul(const NodeView& n) {
  DLC_TRY(const Values a, n.emit_all("dynamic_quantize_linear", {n.in(0)}));
  DLC_TRY(const ValueId y, scaled_product(n, a[0], n.in(1), a[2], n.in(3), a[1], n.in(2)));
  return with_bias(n, y, 4);
}

// A, scale, zero point; B likewise; C in the sum's integers; the result's scale and zero point, or it is float.
Result<Values> qgemm(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 1.0));
  Values in{n.in(0), n.in(3)};
  for (const auto& [i, name] : {std::pair(0, "transA"), std::pair(1, "transB")}) {
    DLC_TRY(const int64_t turn, n.attr_int(name, 0));
    auto& v = in[static_cast<size_t>(i)];
    if (turn == 0) continue;
    DLC_TRY(v, n.emit("transpose", {v}, {{"perm", Exprs{1, 0}}}));
  }
  Values zeros;
  for (const size_t i : {2, 5}) {
    ValueId zero = n.in(i);
    if (n.rank(i) == 0) {
      DLC_TRY(zero, n.reshaped(zero, {1}));
    }
    zeros.push_back(zero);
  }
  DLC_TRY(ValueId sum, n.emit("int_matmul", {in[0], in[1], zeros[0], zeros[1]}));
  if (n.has(6)) {
    DLC_TRY(sum, n.emit("add", {sum, n.in(6)}));
  }
  DLC_TRY(const ValueId wide, n.emit("cast", {sum}, {{"to", n.type(1).dtype}}));
  DLC_TRY(ValueId scale, n.emit("mul", {n.in(1), n.in(4)}));
  if (alpha != 1) {
    DLC_TRY(const ValueId factor, n.scalar(n.type(1).dtype, alpha));
    DLC_TRY(scale, n.emit("mul", {scale, factor}));
  }
  if (!n.has(7)) return n.emit_all("mul", {wide, scale});
  DLC_TRY(const ValueId y_scale, scalar_input(n, 7));
  DLC_TRY(scale, n.emit("div", {scale, y_scale}));
  DLC_TRY(const ValueId y, n.emit("mul", {wide, scale}));
  DLC_TRY(ValueId one, n.scalar(n.type(1).dtype, 1));
  DLC_TRY(one, n.reshaped(one, {1}));
  DLC_TRY(ValueId zero, scalar_input(n, 8));
  const DType to = zero == kNoValue ? n.type(0).dtype : n.type(8).dtype;
  if (zero != kNoValue) {
    DLC_TRY(zero, n.reshaped(zero, {1}));
  }
  return n.emit_all("quantize_linear", {y, one, zero}, {{"axis", Expr(0)}, {"to", to}});
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "MatMulNBits", matmul_nbits, "tttTTT", "accuracy_level"},
    {"com.microsoft", "GatherBlockQuantized", gather_block_quantized, "tttT"},
    {"com.microsoft", "MatMulIntegerToFloat", matmul_integer_to_float, "ttttTTT"},
    {"com.microsoft", "DynamicQuantizeMatMul", dynamic_quantize_matmul, "tttTT"},
    {"com.microsoft", "QGemm", qgemm, "ttttttTTT"},
};

}  // namespace

std::span<const OpEntry> nbits_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
