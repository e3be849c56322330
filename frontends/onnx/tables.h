// The op tables, one per import_*.cpp file.
#pragma once

#include <span>

#include "frontends/onnx/importer.h"

namespace dlc::onnx_frontend {

std::span<const OpEntry> elementwise_ops();
std::span<const OpEntry> contraction_ops();
std::span<const OpEntry> pool_ops();
std::span<const OpEntry> resize_ops();
std::span<const OpEntry> generate_ops();
std::span<const OpEntry> qlinear_ops();
std::span<const OpEntry> movement_ops();
std::span<const OpEntry> reduction_ops();
std::span<const OpEntry> quantization_ops();
std::span<const OpEntry> recurrent_ops();
std::span<const OpEntry> constant_ops();
std::span<const OpEntry> control_ops();
std::span<const OpEntry> sequence_ops();
std::span<const OpEntry> einsum_ops();
std::span<const OpEntry> loss_ops();
std::span<const OpEntry> signal_ops();
std::span<const OpEntry> attention_ops();
std::span<const OpEntry> vision_ops();
std::span<const OpEntry> ml_ops();
std::span<const OpEntry> tree_ops();
std::span<const OpEntry> transformer_ops();
std::span<const OpEntry> fused_ops();
std::span<const OpEntry> nbits_ops();
std::span<const OpEntry> ms_attention_ops();
std::span<const OpEntry> ms_cache_ops();
std::span<const OpEntry> expert_ops();
std::span<const OpEntry> random_ops();

// An axis of an operand of the given rank, checked: -rank <= axis < rank gives 0 .. rank-1.
Result<int64_t> checked_axis(const NodeView& n, int64_t axis, int64_t rank);

// Axes of an operand of the given rank, each checked, none twice.
Result<std::vector<int64_t>> checked_axes(const NodeView& n, std::vector<int64_t> axes, int64_t rank);

// Input `input` without its dims, which must be of one element: exporters write scalars as f32[1]. kNoValue when
// absent.
Result<ValueId> scalar_input(const NodeView& n, size_t input);
// The known integer of a tensor of one element, of any type.
Result<Expr> known_scalar(const NodeView& n, size_t input, std::string_view what);

// The values side by side along an axis, and the fold of a record over them (max_n, sum_n): any number of them, a
// record takes a few dozen at a time.
Result<ValueId> concatenated(const NodeView& n, std::vector<ValueId> parts, int64_t axis);
Result<ValueId> folded(const NodeView& n, const char* record, std::span<const ValueId> values);

// The last dim behind the first, and back: what records want, of data whose channels come last.
Result<ValueId> channels_first(const NodeView& n, ValueId v);
Result<ValueId> channels_last(const NodeView& n, ValueId v);

// stride, dilation, padding and group of a convolution whose data is input 0 and weight input `weight`.
Result<Attrs> conv_attrs(const NodeView& n, size_t weight, bool channels_come_last = false);
// A Gemm of the node's inputs and attributes.
Result<std::vector<ValueId>> gemm(const NodeView& n);
// A product by `record`, of inputs `left` and `right` in numpy's way: a vector on the left gains a leading dim, on the
// right a trailing one, and both lose it in the result.
Result<std::vector<ValueId>> matmul_like(const NodeView& n, const char* record, size_t left, size_t right,
                                         std::vector<ValueId> operands);

// Integers' sum of products, times both scales. A zero point for each column needs no dim of its own.
Result<ValueId> scaled_product(const NodeView& n, ValueId a, ValueId b, ValueId a_zero, ValueId b_zero, ValueId a_scale,
                               ValueId b_scale);

// What attribute 'post_transform' of ai.onnx.ml makes of scores [rows, classes].
Result<ValueId> post_transformed(const NodeView& n, ValueId y);

// Attribute values from plain integers.
std::vector<Expr> to_exprs(std::span<const int64_t> values);

// The window of a convolution or pool: one entry per spatial dim.
struct Window {
  std::vector<int64_t> stride, dilation;
  std::vector<Expr> kernel, pad_lo, pad_hi;
};
// Reads kernel_shape, strides, dilations, pads and auto_pad. `kernel` is the weight's spatial shape when kernel_shape
// is absent. SAME padding of a symbolic dim must come out constant.
Result<Window> read_window(const NodeView& n, std::vector<Expr> kernel, std::span<const Expr> spatial);
Attrs window_attrs(const Window& w, bool with_kernel);

}  // namespace dlc::onnx_frontend
