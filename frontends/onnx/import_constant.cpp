// Constants, shapes, and ops that are nothing at inference.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<Values> constant(const NodeView& n) {
  if (n.has_attr("value")) {
    DLC_TRY(Tensor t, n.attr_tensor("value"));
    return Values{n.add_constant(std::move(t))};
  }
  if (n.has_attr("value_float") || n.has_attr("value_floats")) {
    const bool list = n.has_attr("value_floats");
    std::vector<double> v;
    if (list) {
      DLC_TRY(v, n.attr_floats("value_floats", {}));
    } else {
      DLC_TRY(const double x, n.attr_float("value_float", {}));
      v.push_back(x);
    }
    DLC_TRY(Tensor t,
            Tensor::make(kF32, list ? std::vector<int64_t>{static_cast<int64_t>(v.size())} : std::vector<int64_t>{}));
    for (size_t i = 0; i < v.size(); ++i) t.set_double(static_cast<int64_t>(i), v[i]);
    return Values{n.add_constant(std::move(t))};
  }
  if (n.has_attr("value_int") || n.has_attr("value_ints")) {
    const bool list = n.has_attr("value_ints");
    std::vector<int64_t> v;
    if (list) {
      DLC_TRY(v, n.attr_ints("value_ints", {}));
    } else {
      DLC_TRY(const int64_t x, n.attr_int("value_int", {}));
      v.push_back(x);
    }
    DLC_TRY(Tensor t,
            Tensor::make(kS64, list ? std::vector<int64_t>{static_cast<int64_t>(v.size())} : std::vector<int64_t>{}));
    for (size_t i = 0; i < v.size(); ++i) t.set_int(static_cast<int64_t>(i), v[i]);
    return Values{n.add_constant(std::move(t))};
  }
  return n.error("only tensors, floats and integers are supported as values");
}

Result<Values> constant_of_shape(const NodeView& n) {
  DLC_TRY(const auto shape, n.sizes(0, "shape"));
  DLC_TRY(Tensor value, Tensor::make(kF32, {1}));
  if (n.has_attr("value")) {
    DLC_TRY(value, n.attr_tensor("value"));
  }
  if (value.elements() != 1) return n.error("attribute 'value' must have one element");
  DLC_TRY(Tensor scalar, value.reshaped({}));
  return n.emit_all("expand", {n.add_constant(std::move(scalar))}, {{"shape", shape}});
}

Result<Values> shape(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  const int64_t rank = n.rank(0);
  DLC_TRY(int64_t start, n.attr_int("start", 0));
  DLC_TRY(int64_t end, n.attr_int("end", rank));
  const auto clip = [&](int64_t a) { return std::clamp<int64_t>(a < 0 ? a + rank : a, 0, rank); };
  return n.emit_all("shape", {n.in(0)},
                    {{"start", Expr(clip(start))}, {"end", Expr(std::max(clip(start), clip(end)))}});
}

Result<Values> size(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  return n.emit_all("size", {n.in(0)});
}

Result<Values> dropout(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  if (n.has(2)) {
    DLC_TRY(const Tensor training, n.constant(2, "training_mode"));
    double ratio = 0.5;
    if (n.has(1)) {
      DLC_TRY(const Tensor given, n.constant(1, "ratio"));
      if (given.elements() == 1) ratio = given.get_double(0);
    }
    if (training.elements() == 1 && training.get_int(0) != 0 && ratio != 0)
      return n.error("training is not supported: elements are dropped at random", "export the model for inference");
  }
  if (!n.wants(1)) return Values{n.in(0)};
  // Nothing is dropped: the mask is true, of the data's type before opset 10.
  DLC_TRY(const ValueId kept, n.scalar(n.opset() >= 10 ? kBool : n.type(0).dtype, 1));
  DLC_TRY(const ValueId mask, n.emit("expand", {kept}, {{"shape", n.type(0).shape}}));
  return Values{n.in(0), mask};
}

constexpr OpEntry kTable[] = {
    {"", "Constant", constant, ""},
    {"", "ConstantOfShape", constant_of_shape, "t"},
    {"", "Shape", shape, "t"},
    {"", "Size", size, "t"},
    {"", "Dropout", dropout, "t", "ratio seed", 11},
    {"", "Dropout", dropout, "tTT", "ratio seed"},
};

}  // namespace

std::span<const OpEntry> constant_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
