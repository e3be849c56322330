// Records whose operands or attributes are not those of the ONNX op.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/exporter.h"

namespace dlc::onnx_frontend {

namespace {

// stride, dilation and padding of a window over the spatial dims of the first operand.
Result<> window(NodeWriter& w, onnx::NodeProto& to, bool dilated = true) {
  const size_t rank = w.shape(0).size() - 2;
  DLC_TRY(const auto stride, w.integers("stride", rank));
  DLC_TRY(auto pads, w.integers("pad_lo", rank));
  DLC_TRY(const auto hi, w.integers("pad_hi", rank));
  pads.insert(pads.end(), hi.begin(), hi.end());
  NodeWriter::set(to, "strides", stride);
  NodeWriter::set(to, "pads", pads);
  if (!dilated) return {};
  DLC_TRY(const auto dilation, w.integers("dilation", rank));
  NodeWriter::set(to, "dilations", dilation);
  return {};
}

Result<> conv(NodeWriter& w) {
  auto& node = w.emit("Conv");
  DLC_TRY(const int64_t group, w.integer("group"));
  NodeWriter::set(node, "group", group);
  return window(w, node);
}

Result<> conv_transpose(NodeWriter& w) {
  auto& node = w.emit("ConvTranspose");
  DLC_TRY(const int64_t group, w.integer("group"));
  DLC_TRY(const auto out_pad, w.integers("out_pad", w.shape(0).size() - 2));
  NodeWriter::set(node, "group", group);
  NodeWriter::set(node, "output_padding", out_pad);
  return window(w, node);
}

Result<> pool(NodeWriter& w, onnx::NodeProto& node, bool dilated) {
  DLC_TRY(const auto kernel, w.integers("kernel", w.shape(0).size() - 2));
  DLC_TRY(const int64_t ceil_mode, w.integer("ceil_mode"));
  NodeWriter::set(node, "kernel_shape", kernel);
  NodeWriter::set(node, "ceil_mode", ceil_mode);
  return window(w, node, dilated);
}

Result<> max_pool(NodeWriter& w) { return pool(w, w.emit("MaxPool"), true); }

Result<> avg_pool(NodeWriter& w) {
  DLC_TRY(const auto dilation, w.integers("dilation", w.shape(0).size() - 2));
  if (std::ranges::any_of(dilation, [](int64_t d) { return d != 1; })) return fail({}, "its window is dilated");
  DLC_TRY(const int64_t include, w.integer("count_include_pad"));
  auto& node = w.emit("AveragePool");
  NodeWriter::set(node, "count_include_pad", include);
  return pool(w, node, false);
}

Result<> gemm(NodeWriter& w) {
  auto& node = w.emit("Gemm");
  DLC_TRY(const int64_t a, w.integer("trans_a"));
  DLC_TRY(const int64_t b, w.integer("trans_b"));
  NodeWriter::set(node, "transA", a);
  NodeWriter::set(node, "transB", b);
  NodeWriter::set(node, "alpha", w.attrs().real("alpha").value_or(1));
  NodeWriter::set(node, "beta", w.attrs().real("beta").value_or(1));
  return {};
}

template <const char* Op>
Result<> renamed(NodeWriter& w) {
  w.emit(Op);
  return {};
}
constexpr char kMatMul[] = "MatMul", kMax[] = "Max", kMin[] = "Min", kSum[] = "Sum", kClip[] = "Clip";

template <const char* Op>
Result<> with_axis(NodeWriter& w) {
  DLC_TRY(const int64_t axis, w.integer("axis"));
  NodeWriter::set(w.emit(Op), "axis", axis);
  return {};
}
constexpr char kConcat[] = "Concat", kSoftmax[] = "Softmax", kLogSoftmax[] = "LogSoftmax", kGather[] = "Gather",
               kGatherElements[] = "GatherElements";

// Of opset 17, all but ReduceSum take their axes as an attribute.
template <const char* Op>
Result<> reduce(NodeWriter& w) {
  const auto it = w.node().attrs.find("axes");
  const auto* list = it == w.node().attrs.end() ? nullptr : std::get_if<std::vector<Expr>>(&it->second);
  if (list == nullptr) return fail({}, "its axes are not given");
  DLC_TRY(const auto axes, w.integers("axes", list->size()));
  DLC_TRY(const int64_t keep, w.integer("keepdims"));
  const bool as_input = Op == std::string_view("ReduceSum");
  auto& node = as_input ? w.emit(Op, {w.in(0), w.exporter().integers(axes, "axes")}) : w.emit(Op);
  if (!as_input) NodeWriter::set(node, "axes", axes);
  NodeWriter::set(node, "keepdims", keep);
  return {};
}
constexpr char kReduceMean[] = "ReduceMean", kReduceSum[] = "ReduceSum", kReduceMax[] = "ReduceMax",
               kReduceMin[] = "ReduceMin", kReduceL2[] = "ReduceL2";

// Sizes for a Reshape: numbers, extents that stay where they are (0), and one that is what is left (-1).
Result<> reshape(NodeWriter& w) {
  const auto& from = w.shape(0);
  std::vector<int64_t> sizes;
  bool left = false;
  for (size_t i = 0; i < w.result_shape().size(); ++i) {
    const Expr& e = w.result_shape()[i];
    if (const auto c = e.constant()) {
      if (*c == 0) return fail({}, "its result has no elements");
      sizes.push_back(*c);
    } else if (i < from.size() && from[i] == e) {
      sizes.push_back(0);
    } else if (!left) {
      left = true;
      sizes.push_back(-1);
    } else {
      return fail({}, fmt::format("its size {} depends on symbols", to_string(e)), "bind them: --dim NAME=VALUE");
    }
  }
  w.emit("Reshape", {w.in(0), w.exporter().integers(sizes, "shape")});
  return {};
}

Result<> transpose(NodeWriter& w) {
  DLC_TRY(const auto perm, w.integers("perm", w.shape(0).size()));
  NodeWriter::set(w.emit("Transpose"), "perm", perm);
  return {};
}

// A bound that is the extent itself is the end, whatever it is.
Result<> slice(NodeWriter& w) {
  const size_t rank = w.shape(0).size();
  DLC_TRY(const auto start, w.integers("start", rank));
  DLC_TRY(const auto step, w.integers("step", rank));
  const auto stops = w.attrs().list("stop", rank);
  if (!stops) return fail({}, "its ends are not given");
  std::vector<int64_t> stop, axes;
  for (size_t i = 0; i < rank; ++i) {
    const auto c = (*stops)[i].constant();
    if (!c && (*stops)[i] != w.shape(0)[i]) return fail({}, fmt::format("its end is {}", to_string((*stops)[i])));
    stop.push_back(c.value_or(INT64_MAX));
    axes.push_back(static_cast<int64_t>(i));
  }
  auto& e = w.exporter();
  w.emit("Slice", {w.in(0), e.integers(start, "starts"), e.integers(stop, "ends"), e.integers(axes, "axes"),
                   e.integers(step, "steps")});
  return {};
}

Result<> pad(NodeWriter& w) {
  const size_t rank = w.shape(0).size();
  DLC_TRY(auto pads, w.integers("lo", rank));
  DLC_TRY(const auto hi, w.integers("hi", rank));
  pads.insert(pads.end(), hi.begin(), hi.end());
  const std::string mode = w.attrs().text("mode").value_or("constant");
  if (mode == "wrap") return fail({}, "its mode is 'wrap'");
  std::vector<std::string> inputs{w.in(0), w.exporter().integers(pads, "pads")};
  if (w.has(1)) inputs.push_back(w.in(1));
  NodeWriter::set(w.emit("Pad", inputs), "mode", mode);
  return {};
}

Result<> quantize_linear(NodeWriter& w) {
  DLC_TRY(const int64_t axis, w.integer("axis"));
  NodeWriter::set(w.emit("QuantizeLinear"), "axis", axis);
  return {};
}
Result<> dequantize_linear(NodeWriter& w) {
  DLC_TRY(const int64_t axis, w.integer("axis"));
  NodeWriter::set(w.emit("DequantizeLinear"), "axis", axis);
  return {};
}

Result<> cast(NodeWriter& w) {
  DLC_TRY(const int to, onnx_type(w.exporter().graph().value(w.node().outputs[0]).type.dtype));
  NodeWriter::set(w.emit("Cast"), "to", static_cast<int64_t>(to));
  return {};
}

Result<> expand(NodeWriter& w) {
  DLC_TRY(const auto shape, w.integers("shape", w.result_shape().size()));
  w.emit("Expand", {w.in(0), w.exporter().integers(shape, "shape")});
  return {};
}

Result<> layer_norm(NodeWriter& w) {
  DLC_TRY(const int64_t axis, w.integer("axis"));
  auto& node = w.emit("LayerNormalization");
  NodeWriter::set(node, "axis", axis);
  NodeWriter::set(node, "epsilon", w.attrs().real("epsilon").value_or(1e-5));
  return {};
}

template <const char* Op>
Result<> with_reals(NodeWriter& w) {
  auto& node = w.emit(Op);
  for (const char* name : {"alpha", "beta"})
    if (const auto v = w.attrs().real(name)) NodeWriter::set(node, name, *v);
  return {};
}
constexpr char kHardSigmoid[] = "HardSigmoid", kLeakyRelu[] = "LeakyRelu", kElu[] = "Elu";

// x * sigmoid(alpha * x): of alpha 1.
Result<> swish(NodeWriter& w) {
  if (w.attrs().real("alpha") != 1) return fail({}, "its alpha is not 1");
  const std::string gate = w.exporter().unique(w.exporter().name(w.node().outputs[0]) + ".gate");
  w.exporter().add_node("Sigmoid", {w.in(0)}, w.node()).add_output(gate);
  w.emit("Mul", {w.in(0), gate});
  return {};
}

// By the sizes of the result; opset 17 has no crop that is not by its roi.
Result<> resize(NodeWriter& w, const char* mode) {
  const std::string coordinates = w.attrs().text("coordinates").value_or("half_pixel");
  if (coordinates == "tf_crop_and_resize" || coordinates == "half_pixel_symmetric" || w.has(1))
    return fail({}, fmt::format("it resizes by '{}'", coordinates));
  std::vector<int64_t> sizes;
  for (const Expr& e : w.result_shape()) {
    const auto c = e.constant();
    if (!c) return fail({}, fmt::format("its size {} is a symbol", to_string(e)), "bind it: --dim NAME=VALUE");
    sizes.push_back(*c);
  }
  auto& node = w.emit("Resize", {w.in(0), "", "", w.exporter().integers(sizes, "sizes")});
  NodeWriter::set(node, "mode", std::string(mode));
  NodeWriter::set(node, "coordinate_transformation_mode", coordinates);
  if (const auto rounding = w.attrs().text("rounding")) NodeWriter::set(node, "nearest_mode", *rounding);
  return {};
}
Result<> resize_nearest(NodeWriter& w) { return resize(w, "nearest"); }
Result<> resize_linear(NodeWriter& w) { return resize(w, "linear"); }

struct Entry {
  std::string_view record;
  WriteOp write;
};
constexpr Entry kWriters[] = {
    {"conv", conv},
    {"conv_transpose", conv_transpose},
    {"gemm", gemm},
    {"matmul", renamed<kMatMul>},
    {"max_pool", max_pool},
    {"avg_pool", avg_pool},
    {"reduce_mean", reduce<kReduceMean>},
    {"reduce_sum", reduce<kReduceSum>},
    {"reduce_max", reduce<kReduceMax>},
    {"reduce_min", reduce<kReduceMin>},
    {"reduce_l2", reduce<kReduceL2>},
    {"reshape", reshape},
    {"squeeze", reshape},
    {"unsqueeze", reshape},
    {"transpose", transpose},
    {"slice", slice},
    {"pad", pad},
    {"concat", with_axis<kConcat>},
    {"softmax", with_axis<kSoftmax>},
    {"log_softmax", with_axis<kLogSoftmax>},
    {"gather", with_axis<kGather>},
    {"gather_elements", with_axis<kGatherElements>},
    {"clip", renamed<kClip>},
    {"max_n", renamed<kMax>},
    {"min_n", renamed<kMin>},
    {"sum_n", renamed<kSum>},
    {"quantize_linear", quantize_linear},
    {"dequantize_linear", dequantize_linear},
    {"cast", cast},
    {"expand", expand},
    {"layer_norm", layer_norm},
    {"hard_sigmoid", with_reals<kHardSigmoid>},
    {"leaky_relu", with_reals<kLeakyRelu>},
    {"elu", with_reals<kElu>},
    {"swish", swish},
    {"resize_nearest", resize_nearest},
    {"resize_linear", resize_linear},
};

}  // namespace

WriteOp writer_of(std::string_view record) {
  const auto it = std::ranges::find(kWriters, record, &Entry::record);
  return it == std::end(kWriters) ? nullptr : it->write;
}

}  // namespace dlc::onnx_frontend
