// Classic models (ai.onnx.ml), with numbers for what strings may be too.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// Along the last axis. A list counts as one row.
Result<Values> array_feature_extractor(const NodeView& n) {
  ValueId x = n.in(0);
  if (n.rank(0) == 0) return n.error("scalars are not supported");
  if (n.rank(0) == 1) {
    DLC_TRY(x, n.emit("unsqueeze", {x}, {{"axes", std::vector<Expr>{0}}}));
  }
  Expr count(1);
  for (const Expr& d : n.type(1).shape) count = count * d;
  DLC_TRY(const ValueId at, n.emit("reshape", {n.in(1)}, {{"shape", std::vector<Expr>{count}}}));
  const int64_t last = std::max<int64_t>(n.rank(0), 2) - 1;
  return n.emit_all("gather", {x, at}, {{"axis", Expr(last)}});
}

Result<Values> binarizer(const NodeView& n) {
  DLC_TRY(const double threshold, n.attr_float("threshold", 0.0));
  const DType type = n.type(0).dtype;
  DLC_TRY(const ValueId limit, n.scalar(type, type.is_float() ? threshold : std::floor(threshold)));
  DLC_TRY(const ValueId above, n.emit("greater", {n.in(0), limit}));
  return n.emit_all("cast", {above}, {{"to", type}});
}

// The keys or the values of a label encoder, in whichever of its attributes they are.
Result<Tensor> label_list(const NodeView& n, const std::string& what) {
  if (n.has_attr(what + "_tensor")) return n.attr_tensor(what + "_tensor");
  if (n.has_attr(what + "_int64s")) {
    DLC_TRY(const auto v, n.attr_ints(what + "_int64s", {}));
    return Tensor::from<int64_t>(kS64, {static_cast<int64_t>(v.size())}, v);
  }
  if (!n.has_attr(what + "_floats"))
    return n.error(fmt::format("only integers and floats are supported as {}", what), "strings are not");
  DLC_TRY(const auto v, n.attr_floats(what + "_floats", {}));
  DLC_TRY(Tensor t, Tensor::make(kF32, {static_cast<int64_t>(v.size())}));
  for (size_t i = 0; i < v.size(); ++i) t.set_double(static_cast<int64_t>(i), v[i]);
  return t;
}

Result<Values> label_encoder(const NodeView& n) {
  DLC_TRY(Tensor keys, label_list(n, "keys"));
  DLC_TRY(Tensor values, label_list(n, "values"));
  const DType to = values.dtype();
  DLC_TRY(Tensor otherwise, Tensor::make(to, {}));
  if (n.has_attr("default_tensor")) {
    DLC_TRY(const Tensor t, n.attr_tensor("default_tensor"));
    if (t.elements() != 1 || t.dtype() != to) return n.error("attribute 'default_tensor' does not fit the values");
    DLC_TRY(otherwise, t.reshaped({}));
  } else if (to.is_float()) {
    DLC_TRY(const double v, n.attr_float("default_float", -0.0));
    otherwise.set_double(0, v);
  } else {
    DLC_TRY(const int64_t v, n.attr_int("default_int64", -1));
    otherwise.set_int(0, v);
  }
  if (keys.elements() != values.elements() || keys.elements() == 0)
    return n.error(fmt::format("{} keys are given for {} values", keys.elements(), values.elements()));
  if (keys.dtype() != n.type(0).dtype)
    return n.error(fmt::format("the keys are {}, the data {}", to_string(keys.dtype()), to_string(n.type(0).dtype)));
  return n.emit_all("label_encode", {n.in(0), n.add_constant(std::move(keys)), n.add_constant(std::move(values)),
                                     n.add_constant(std::move(otherwise))});
}

constexpr OpEntry kTable[] = {
    {"ai.onnx.ml", "ArrayFeatureExtractor", array_feature_extractor, "tt"},
    {"ai.onnx.ml", "Binarizer", binarizer, "t"},
    {"ai.onnx.ml", "LabelEncoder", label_encoder, "t", "default_string default_float default_int64"},
};

}  // namespace

std::span<const OpEntry> ml_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
