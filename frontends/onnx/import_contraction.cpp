// Convolutions and matrix products.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

using Values = std::vector<ValueId>;

namespace {

// The spatial extents of a weight [o, i, k...].
Result<std::vector<Expr>> kernel_of(const NodeView& n, size_t weight) {
  if (n.rank(weight) < 3) return n.error(fmt::format("the weight has rank {}, at least 3 is needed", n.rank(weight)));
  const auto shape = n.type(weight).shape;
  return std::vector<Expr>(shape.begin() + 2, shape.end());
}

}  // namespace

Result<Attrs> conv_attrs(const NodeView& n, size_t weight, bool channels_come_last) {
  if (!n.has(0) || !n.has(weight)) return n.error("data or weight is missing");
  if (n.rank(0) != n.rank(weight))
    return n.error(fmt::format("data has rank {} and weight rank {}", n.rank(0), n.rank(weight)));
  DLC_TRY(auto kernel, kernel_of(n, weight));
  const auto shape = n.type(0).shape;
  DLC_TRY(const Window w,
          read_window(n, std::move(kernel), std::span(shape).subspan(channels_come_last ? 1 : 2, shape.size() - 2)));
  DLC_TRY(const int64_t group, n.attr_int("group", 1));
  if (group < 1) return n.error(fmt::format("attribute 'group' is {}", group));
  Attrs a = window_attrs(w, false);
  a["group"] = Expr(group);
  return a;
}

Result<Values> gemm(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 1.0));
  DLC_TRY(const double beta, n.attr_float("beta", 1.0));
  DLC_TRY(const int64_t trans_a, n.attr_int("transA", 0));
  DLC_TRY(const int64_t trans_b, n.attr_int("transB", 0));
  if (n.type(0).dtype.is_int()) {
    if (alpha != 1 || beta != 1) return n.error("of integers, alpha and beta must be 1");
    ValueId in[2] = {n.in(0), n.in(1)};
    for (const size_t i : {0, 1}) {
      if ((i == 0 ? trans_a : trans_b) == 0) continue;
      DLC_TRY(in[i], n.emit("transpose", {in[i]}, {{"perm", std::vector<Expr>{1, 0}}}));
    }
    DLC_TRY(const ValueId product, n.emit("matmul", {in[0], in[1]}));
    return n.has(2) ? n.emit_all("add", {product, n.in(2)}) : Result<Values>(Values{product});
  }
  return n.emit_all(
      "gemm", {n.in(0), n.in(1), n.in(2)},
      {{"alpha", alpha}, {"beta", beta}, {"trans_a", Expr(trans_a != 0)}, {"trans_b", Expr(trans_b != 0)}});
}

Result<Values> matmul_like(const NodeView& n, const char* record, size_t left, size_t right, Values operands) {
  if (!n.has(left) || !n.has(right)) return n.error("needs two inputs");
  const auto as_matrix = [&](size_t operand, int64_t axis) -> Result<ValueId> {
    if (n.rank(operand) != 1) return operands[operand];
    return n.emit("unsqueeze", {operands[operand]}, {{"axes", std::vector<Expr>{Expr(axis)}}});
  };
  if (n.rank(left) == 0 || n.rank(right) == 0) return n.error("an operand is a scalar");
  DLC_TRY(operands[left], as_matrix(left, 0));
  DLC_TRY(operands[right], as_matrix(right, 1));
  DLC_TRY(ValueId y, n.emit(record, operands));
  std::vector<Expr> drop;
  if (n.rank(left) == 1) drop.emplace_back(-2);
  if (n.rank(right) == 1) drop.emplace_back(-1);
  if (!drop.empty()) {
    const auto rank = static_cast<int64_t>(n.graph().value(y).type.shape.size());
    for (auto& d : drop) d = d + rank;
    DLC_TRY(y, n.emit("squeeze", {y}, {{"axes", drop}}));
  }
  return Values{y};
}

namespace {

Result<Values> conv(const NodeView& n) {
  DLC_TRY(Attrs a, conv_attrs(n, 1));
  return n.emit_all("conv", {n.in(0), n.in(1), n.in(2)}, std::move(a));
}

// The offsets [n, groups * taps * dims, out..] as [n, groups, taps, dims, out..], and the mask likewise.
Result<Values> deform_conv(const NodeView& n) {
  DLC_TRY(Attrs a, conv_attrs(n, 1));
  DLC_TRY(const int64_t groups, n.attr_int("offset_group", 1));
  const auto offsets = n.type(2).shape;
  if (n.rank(2) != n.rank(0) || groups < 1) return n.error("the offsets do not fit the data");
  Expr taps(1);
  const auto weight = n.type(1).shape;
  for (size_t i = 2; i < weight.size(); ++i) taps = taps * weight[i];
  std::vector<Expr> shape{offsets[0], groups, taps, n.rank(0) - 2};
  shape.insert(shape.end(), offsets.begin() + 2, offsets.end());
  DLC_TRY(const ValueId moved, n.emit("reshape", {n.in(2)}, {{"shape", shape}}));
  ValueId mask = n.in(4);
  if (mask != kNoValue) {
    shape.erase(shape.begin() + 3);
    DLC_TRY(mask, n.emit("reshape", {mask}, {{"shape", shape}}));
  }
  return n.emit_all("deform_conv", {n.in(0), n.in(1), moved, n.in(3), mask}, std::move(a));
}

Result<Values> conv_transpose(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("data or weight is missing");
  if (n.rank(0) != n.rank(1)) return n.error(fmt::format("data has rank {} and weight rank {}", n.rank(0), n.rank(1)));
  const size_t rank = static_cast<size_t>(n.rank(0)) - 2;
  DLC_TRY(auto kernel, kernel_of(n, 1));
  DLC_TRY(const auto given, n.attr_ints("output_padding", std::vector<int64_t>(rank, 0)));
  if (given.size() != rank) return n.error("attribute 'output_padding' has the wrong length");
  for (const int64_t p : given)
    if (p < 0 || p > INT32_MAX) return n.error(fmt::format("attribute 'output_padding' holds {}", p));
  std::vector<Expr> out_pad = to_exprs(given);
  DLC_TRY(const int64_t group, n.attr_int("group", 1));
  const auto shape = n.type(0).shape;
  const std::span<const Expr> spatial = std::span(shape).subspan(2);
  DLC_TRY(const std::string auto_pad, n.attr_string("auto_pad", "NOTSET"));
  DLC_TRY(const Window w, read_window(n, std::move(kernel), spatial));
  Attrs a;
  if (auto_pad == "NOTSET" && !n.has_attr("output_shape")) {
    a = window_attrs(w, false);
  } else {
    // output_shape and SAME fix the output's extent; the padding is what remains of the full result.
    const auto& stride = w.stride;
    const auto& dilation = w.dilation;
    DLC_TRY(const auto wanted, n.attr_ints("output_shape", std::vector<int64_t>{}));
    if (!wanted.empty() && wanted.size() < rank) return n.error("attribute 'output_shape' is too short");
    for (const int64_t e : wanted)
      if (e < 1 || e > INT32_MAX) return n.error(fmt::format("attribute 'output_shape' holds {}", e));
    std::vector<Expr> lo;
    std::vector<Expr> hi;
    for (size_t i = 0; i < rank; ++i) {
      const Expr full = (spatial[i] - 1) * stride[i] + out_pad[i] + (w.kernel[i] - 1) * dilation[i] + 1;
      Expr out = full;
      if (!wanted.empty()) {
        out = Expr(wanted[wanted.size() - rank + i]);
        // A larger output than the full result ends in elements that no tap reaches.
        out_pad[i] = out_pad[i] + max(Expr(0), out - full);
      } else if (auto_pad != "VALID") {
        out = min(full, spatial[i] * stride[i]);
      }
      const Expr total = max(Expr(0), full - out);
      const Expr half = floor_div(total, 2);
      lo.push_back(auto_pad == "SAME_UPPER" ? half : total - half);
      hi.push_back(auto_pad == "SAME_UPPER" ? total - half : half);
    }
    a = {{"stride", to_exprs(stride)}, {"dilation", to_exprs(dilation)}, {"pad_lo", lo}, {"pad_hi", hi}};
  }
  a["out_pad"] = out_pad;
  a["group"] = Expr(group);
  return n.emit_all("conv_transpose", {n.in(0), n.in(1), n.in(2)}, std::move(a));
}

Result<Values> matmul(const NodeView& n) { return matmul_like(n, "matmul", 0, 1, n.inputs()); }

// A zero point for each row of each matrix of a batch is subtracted beforehand; the record has one for each row.
Result<Values> matmul_integer(const NodeView& n) {
  Values in{n.in(0), n.in(1), n.in(2), n.in(3)};
  for (size_t i = 0; i < 2; ++i) {
    if (!n.has(i) || !n.has(i + 2) || n.rank(i + 2) < 2) continue;
    DLC_TRY(const ValueId zero, n.emit("cast", {in[i + 2]}, {{"to", kS32}}));
    DLC_TRY(const ValueId wide, n.emit("cast", {in[i]}, {{"to", kS32}}));
    DLC_TRY(in[i], n.emit("sub", {wide, zero}));
    in[i + 2] = kNoValue;
  }
  return matmul_like(n, "int_matmul", 0, 1, std::move(in));
}

// Of s16, in 32 bits.
Result<Values> matmul_integer16(const NodeView& n) {
  Values in;
  for (const size_t i : {0, 1}) {
    DLC_TRY(const ValueId wide, n.emit("cast", {n.in(i)}, {{"to", kS32}}));
    in.push_back(wide);
  }
  return matmul_like(n, "matmul", 0, 1, std::move(in));
}

Result<Values> conv_integer(const NodeView& n) {
  DLC_TRY(Attrs a, conv_attrs(n, 1));
  DLC_TRY(const ValueId zero, scalar_input(n, 2));
  return n.emit_all("int_conv", {n.in(0), n.in(1), kNoValue, zero, n.in(3)}, std::move(a));
}

// com.microsoft's may have its channels last.
Result<Values> qlinear_conv(const NodeView& n) {
  DLC_TRY(const int64_t last, n.attr_int("channels_last", 0));
  DLC_TRY(Attrs a, conv_attrs(n, 3, last != 0));
  Values in{n.in(0), n.in(1), n.in(2), n.in(3), n.in(4), n.in(5), n.in(6), n.in(7), n.in(8)};
  for (const size_t i : {1, 2, 6, 7}) {
    DLC_TRY(in[i], scalar_input(n, i));
  }
  if (last == 0) return n.emit_all("qlinear_conv", std::move(in), std::move(a));
  DLC_TRY(in[0], channels_first(n, in[0]));
  DLC_TRY(ValueId y, n.emit("qlinear_conv", std::move(in), std::move(a)));
  DLC_TRY(y, channels_last(n, y));
  return Values{y};
}

Result<Values> qlinear_matmul(const NodeView& n) {
  Values in{n.in(0), n.in(1), n.in(2), n.in(3), n.in(4), n.in(5), n.in(6), n.in(7)};
  for (const size_t i : {6, 7}) {
    DLC_TRY(in[i], scalar_input(n, i));
  }
  return matmul_like(n, "qlinear_matmul", 0, 3, std::move(in));
}

constexpr OpEntry kTable[] = {
    {"", "Conv", conv, "ttT", "pads"},
    {"", "ConvTranspose", conv_transpose, "ttT", "pads"},
    {"", "DeformConv", deform_conv, "tttTT", "pads"},
    {"", "Gemm", gemm, "ttT"},
    {"", "MatMul", matmul, "tt"},
    {"", "MatMulInteger", matmul_integer, "ttTT"},
    {"com.microsoft", "MatMulInteger16", matmul_integer16, "tt"},
    {"", "ConvInteger", conv_integer, "ttTT", "pads"},
    {"", "QLinearConv", qlinear_conv, "ttttttttT", "pads"},
    {"com.microsoft", "QLinearConv", qlinear_conv, "ttttttttT", "pads"},
    {"", "QLinearMatMul", qlinear_matmul, "tttttttt"},
};

}  // namespace

std::span<const OpEntry> contraction_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
