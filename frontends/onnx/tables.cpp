#include "frontends/onnx/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace dlc::onnx_frontend {

std::vector<std::span<const OpEntry>> op_tables() {
  return {elementwise_ops(), contraction_ops(), pool_ops(),      resize_ops(),       movement_ops(),
          generate_ops(),    qlinear_ops(),     reduction_ops(), quantization_ops(), recurrent_ops(),
          constant_ops(),    control_ops(),     sequence_ops(),  einsum_ops(),       loss_ops(),
          signal_ops(),      attention_ops(),   vision_ops(),    ml_ops(),           tree_ops(),
          transformer_ops(), fused_ops(),       nbits_ops(),     ms_attention_ops(), random_ops(),
          ms_cache_ops(),    expert_ops()};
}

bool unchanged_since_first(std::string_view op) {
  constexpr std::string_view kOps[] = {"Abs",
                                       "Ceil",
                                       "Concat",
                                       "Elu",
                                       "Exp",
                                       "Floor",
                                       "GlobalAveragePool",
                                       "GlobalMaxPool",
                                       "HardSigmoid",
                                       "Identity",
                                       "InstanceNormalization",
                                       "LeakyRelu",
                                       "Log",
                                       "LRN",
                                       "MatMul",
                                       "Neg",
                                       "Not",
                                       "Reciprocal",
                                       "ReduceL1",
                                       "ReduceL2",
                                       "ReduceLogSum",
                                       "ReduceLogSumExp",
                                       "ReduceMax",
                                       "ReduceMean",
                                       "ReduceMin",
                                       "ReduceProd",
                                       "ReduceSum",
                                       "ReduceSumSquare",
                                       "Relu",
                                       "Selu",
                                       "Shape",
                                       "Sigmoid",
                                       "Size",
                                       "Softplus",
                                       "Softsign",
                                       "SpaceToDepth",
                                       "Sqrt",
                                       "Squeeze",
                                       "Tanh",
                                       "Transpose",
                                       "Unsqueeze"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

Result<int64_t> checked_axis(const NodeView& n, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return n.error(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> checked_axes(const NodeView& n, std::vector<int64_t> axes, int64_t rank) {
  std::set<int64_t> seen;
  for (int64_t& a : axes) {
    DLC_TRY(a, checked_axis(n, a, rank));
    if (!seen.insert(a).second) return n.error(fmt::format("axis {} is given twice", a));
  }
  return axes;
}

Result<ValueId> scalar_input(const NodeView& n, size_t input) {
  if (!n.has(input) || n.rank(input) == 0) return n.in(input);
  for (const Expr& d : n.type(input).shape)
    if (!d.is(1)) return n.error(fmt::format("input {} is {}, one element is needed", input, to_string(n.type(input))));
  return n.reshaped(n.in(input), {});
}

Result<Expr> known_scalar(const NodeView& n, size_t input, std::string_view what) {
  ValueId x = n.in(input);
  if (n.has(input) && n.type(input).dtype.is_float()) {
    if (const auto t = n.constant(input, what)) {
      const double v = t->elements() == 1 ? t->get_double(0) : NAN;
      if (!(v == std::floor(v) && std::abs(v) < 1e15))
        return n.error(fmt::format("input {} must be one integer", what));
      return Expr(static_cast<int64_t>(v));
    }
    DLC_TRY(x, n.emit("cast", {x}, {{"to", kS64}}));
  }
  if (x == kNoValue) return n.error(fmt::format("input {} ({}) is missing", input, what));
  DLC_TRY(const auto known, n.bounds_of(x, what));
  if (known.size() != 1) return n.error(fmt::format("input {} must be one integer", what));
  return known[0];
}

constexpr size_t kAtOnce = 64;

Result<ValueId> concatenated(const NodeView& n, std::vector<ValueId> parts, int64_t axis) {
  while (parts.size() > kAtOnce) {
    std::vector<ValueId> wider;
    for (size_t at = 0; at < parts.size(); at += kAtOnce) {
      const auto from = parts.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<ValueId> some(from, from + static_cast<std::ptrdiff_t>(std::min(kAtOnce, parts.size() - at)));
      DLC_TRY(const ValueId y, n.emit("concat", std::move(some), {{"axis", Expr(axis)}}));
      wider.push_back(y);
    }
    parts = std::move(wider);
  }
  return n.emit("concat", std::move(parts), {{"axis", Expr(axis)}});
}

Result<ValueId> folded(const NodeView& n, const char* record, std::span<const ValueId> values) {
  const size_t first = std::min(kAtOnce, values.size());
  DLC_TRY(ValueId y, n.emit(record, {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(first)}));
  for (size_t at = first; at < values.size(); at += kAtOnce - 1) {
    const auto some = values.subspan(at, std::min(kAtOnce - 1, values.size() - at));
    std::vector<ValueId> in{y};
    in.insert(in.end(), some.begin(), some.end());
    DLC_TRY(y, n.emit(record, std::move(in)));
  }
  return y;
}

Result<ValueId> channels_first(const NodeView& n, ValueId v) {
  const auto rank = static_cast<int64_t>(n.graph().value(v).type.shape.size());
  std::vector<Expr> perm{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) perm.emplace_back(i);
  return n.emit("transpose", {v}, {{"perm", perm}});
}
Result<ValueId> channels_last(const NodeView& n, ValueId v) {
  const auto rank = static_cast<int64_t>(n.graph().value(v).type.shape.size());
  std::vector<Expr> perm{0};
  for (int64_t i = 2; i < rank; ++i) perm.emplace_back(i);
  perm.emplace_back(1);
  return n.emit("transpose", {v}, {{"perm", perm}});
}

std::vector<Expr> to_exprs(std::span<const int64_t> values) { return {values.begin(), values.end()}; }

namespace {

constexpr int64_t kLimit = int64_t{1} << 31;

Result<> check_list(const NodeView& n, const char* what, const std::vector<int64_t>& v, size_t rank, int64_t lo) {
  if (v.size() != rank)
    return n.error(fmt::format("attribute '{}' has {} entries, {} are needed", what, v.size(), rank));
  for (const int64_t x : v)
    if (x < lo || x > kLimit) return n.error(fmt::format("attribute '{}' holds {}, which is out of range", what, x));
  return {};
}

}  // namespace

Result<Window> read_window(const NodeView& n, std::vector<Expr> kernel, std::span<const Expr> spatial) {
  const size_t rank = spatial.size();
  Window w;
  if (n.has_attr("kernel_shape")) {
    DLC_TRY(const auto given, n.attr_ints("kernel_shape", {}));
    DLC_CHECK(check_list(n, "kernel_shape", given, rank, 1));
    w.kernel = to_exprs(given);
    const auto differs = [](const Expr& a, const Expr& b) { return b.constant() && a != b; };
    if (!kernel.empty() && !std::ranges::equal(w.kernel, kernel, std::not_fn(differs)))
      return n.error("attribute 'kernel_shape' differs from the weight's shape");
  } else {
    w.kernel = std::move(kernel);
  }
  DLC_TRY(w.stride, n.attr_ints("strides", std::vector<int64_t>(rank, 1)));
  DLC_TRY(w.dilation, n.attr_ints("dilations", std::vector<int64_t>(rank, 1)));
  if (w.kernel.size() != rank)
    return n.error(fmt::format("the kernel has {} dims, {} are needed", w.kernel.size(), rank));
  DLC_CHECK(check_list(n, "strides", w.stride, rank, 1));
  DLC_CHECK(check_list(n, "dilations", w.dilation, rank, 1));

  DLC_TRY(const std::string auto_pad, n.attr_string("auto_pad", "NOTSET"));
  if (auto_pad == "NOTSET") {
    DLC_TRY(const auto pads, n.attr_ints("pads", std::vector<int64_t>(2 * rank, 0)));
    DLC_CHECK(check_list(n, "pads", pads, 2 * rank, 0));
    for (size_t i = 0; i < rank; ++i) {
      w.pad_lo.emplace_back(pads[i]);
      w.pad_hi.emplace_back(pads[i + rank]);
    }
  } else if (auto_pad == "VALID") {
    w.pad_lo.assign(rank, Expr(0));
    w.pad_hi.assign(rank, Expr(0));
  } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    for (size_t i = 0; i < rank; ++i) {
      // The output has ceil(input / stride) elements; the padding is what that needs.
      const Expr out = ceil_div(spatial[i], w.stride[i]);
      const Expr total = max(Expr(0), (out - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 - spatial[i]);
      const Expr half = floor_div(total, 2);
      w.pad_lo.push_back(auto_pad == "SAME_UPPER" ? half : total - half);
      w.pad_hi.push_back(auto_pad == "SAME_UPPER" ? total - half : half);
    }
  } else {
    return n.error(fmt::format("attribute 'auto_pad' is '{}'", auto_pad));
  }
  return w;
}

Attrs window_attrs(const Window& w, bool with_kernel) {
  Attrs a{
      {"stride", to_exprs(w.stride)}, {"dilation", to_exprs(w.dilation)}, {"pad_lo", w.pad_lo}, {"pad_hi", w.pad_hi}};
  if (with_kernel) a["kernel"] = w.kernel;
  return a;
}

}  // namespace dlc::onnx_frontend
