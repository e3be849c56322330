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

Result<ValueId> floats(const NodeView& n, const std::vector<double>& values, std::vector<int64_t> shape) {
  DLC_TRY(Tensor t, Tensor::make(kF32, std::move(shape)));
  if (t.elements() != static_cast<int64_t>(values.size()))
    return n.error(fmt::format("an attribute has {} numbers, {} are needed", values.size(), t.elements()));
  for (size_t i = 0; i < values.size(); ++i) t.set_double(static_cast<int64_t>(i), values[i]);
  return n.add_constant(std::move(t));
}

Result<ValueId> as_float(const NodeView& n, ValueId v) {
  if (n.graph().value(v).type.dtype == kF32) return v;
  return n.emit("cast", {v}, {{"to", kF32}});
}

// (X - offset) * scale, of numbers for all or for each feature.
Result<Values> scaler(const NodeView& n) {
  DLC_TRY(ValueId x, as_float(n, n.in(0)));
  for (const auto& [name, record] : {std::pair("offset", "sub"), std::pair("scale", "mul")}) {
    DLC_TRY(const auto v, n.attr_floats(name, std::vector<double>{}));
    if (v.empty()) continue;
    DLC_TRY(const ValueId t, floats(n, v, {static_cast<int64_t>(v.size())}));
    DLC_TRY(x, n.emit(record, {x, t}));
  }
  return Values{x};
}

// Each row through its norm; a row whose norm is 0 stays.
Result<Values> normalizer(const NodeView& n) {
  DLC_TRY(const std::string norm, n.attr_string("norm", "MAX"));
  const char* const record = norm == "MAX" ? "reduce_max" : norm == "L1" ? "reduce_l1" : "reduce_l2";
  if (norm != "MAX" && norm != "L1" && norm != "L2") return n.error(fmt::format("attribute 'norm' is '{}'", norm));
  if (n.rank(0) == 0) return n.error("scalars are not supported");
  DLC_TRY(const ValueId x, as_float(n, n.in(0)));
  const Attrs last{{"axes", std::vector<Expr>{n.rank(0) - 1}}, {"keepdims", Expr(1)}};
  DLC_TRY(ValueId by, n.emit(record, {x}, last));
  DLC_TRY(const ValueId zero, n.scalar(kF32, 0));
  DLC_TRY(const ValueId one, n.scalar(kF32, 1));
  DLC_TRY(const ValueId none, n.emit("equal", {by, zero}));
  DLC_TRY(by, n.emit("where", {none, one, by}));
  return n.emit_all("div", {x, by});
}

// X C' + intercepts, of `count` rows of coefficients.
Result<ValueId> linear(const NodeView& n, int64_t count, const std::vector<double>& intercepts) {
  DLC_TRY(const auto coefficients, n.attr_floats("coefficients", {}));
  DLC_TRY(ValueId x, as_float(n, n.in(0)));
  if (n.rank(0) == 1) {
    DLC_TRY(x, n.emit("unsqueeze", {x}, {{"axes", std::vector<Expr>{0}}}));
  }
  const auto features = static_cast<int64_t>(coefficients.size()) / std::max<int64_t>(count, 1);
  DLC_TRY(const ValueId w, floats(n, coefficients, {count, features}));
  ValueId shift = kNoValue;
  if (!intercepts.empty()) {
    DLC_TRY(shift, floats(n, intercepts, {count}));
  }
  return n.emit("gemm", {x, w, shift}, {{"trans_b", Expr(1)}});
}

}  // namespace

Result<ValueId> post_transformed(const NodeView& n, ValueId y) {
  DLC_TRY(const std::string kind, n.attr_string("post_transform", "NONE"));
  if (kind == "NONE") return y;
  if (kind == "LOGISTIC") return n.emit("sigmoid", {y});
  if (kind == "SOFTMAX") return n.emit("softmax", {y}, {{"axis", Expr(1)}});
  return n.error(fmt::format("attribute 'post_transform' is '{}'", kind), "NONE, LOGISTIC and SOFTMAX are supported");
}

namespace {

Result<Values> linear_regressor(const NodeView& n) {
  DLC_TRY(const int64_t targets, n.attr_int("targets", 1));
  DLC_TRY(const auto intercepts, n.attr_floats("intercepts", std::vector<double>{}));
  if (targets < 1) return n.error(fmt::format("attribute 'targets' is {}", targets));
  DLC_TRY(const ValueId y, linear(n, targets, intercepts));
  DLC_TRY(const ValueId z, post_transformed(n, y));
  return Values{z};
}

// The label of the largest score, and the scores. One row of coefficients for two labels would need rules of its own.
Result<Values> linear_classifier(const NodeView& n) {
  if (!n.has_attr("classlabels_ints")) return n.error("the labels must be integers", "strings are not supported");
  DLC_TRY(const auto labels, n.attr_ints("classlabels_ints", {}));
  DLC_TRY(const auto intercepts, n.attr_floats("intercepts", std::vector<double>{}));
  const auto count = static_cast<int64_t>(labels.size());
  if (count < 2 || (!intercepts.empty() && intercepts.size() != labels.size()))
    return n.error(fmt::format("{} labels do not fit {} intercepts", labels.size(), intercepts.size()));
  DLC_TRY(const ValueId scores, linear(n, count, intercepts));
  DLC_TRY(const ValueId best, n.emit("arg_max", {scores}, {{"axis", std::vector<Expr>{1}}, {"keepdims", Expr(0)}}));
  DLC_TRY(const Tensor names, Tensor::from<int64_t>(kS64, {count}, labels));
  DLC_TRY(const ValueId label, n.emit("gather", {n.add_constant(names), best}, {{"axis", Expr(0)}}));
  DLC_TRY(const ValueId y, post_transformed(n, scores));
  return Values{label, y};
}

// The inputs' features beside each other.
Result<Values> feature_vectorizer(const NodeView& n) {
  Values parts;
  for (size_t i = 0; i < n.input_count(); ++i) {
    if (n.rank(i) < 1 || n.rank(i) > 2) return n.error("the inputs need rank 1 or 2");
    DLC_TRY(ValueId x, as_float(n, n.in(i)));
    if (n.rank(i) == 1) {
      DLC_TRY(x, n.emit("unsqueeze", {x}, {{"axes", std::vector<Expr>{0}}}));
    }
    parts.push_back(x);
  }
  DLC_TRY(const ValueId y, concatenated(n, std::move(parts), 1));
  return Values{y};
}

// What equals a value (NaN equals NaN) becomes another one, the same for all features or one for each.
Result<Values> imputer(const NodeView& n) {
  const DType type = n.type(0).dtype;
  const bool real = type.is_float();
  DLC_TRY(const double replaced, n.attr_float("replaced_value_float", 0.0));
  DLC_TRY(const int64_t replaced_int, n.attr_int("replaced_value_int64", 0));
  DLC_TRY(const auto reals, n.attr_floats("imputed_value_floats", std::vector<double>{}));
  DLC_TRY(const auto ints, n.attr_ints("imputed_value_int64s", std::vector<int64_t>{}));
  const auto count = static_cast<int64_t>(real ? reals.size() : ints.size());
  if (count == 0) return n.error("there is no value to impute");
  DLC_TRY(Tensor values, Tensor::make(type, {count}));
  for (int64_t i = 0; i < count; ++i) {
    if (real)
      values.set_double(i, reals[static_cast<size_t>(i)]);
    else
      values.set_int(i, ints[static_cast<size_t>(i)]);
  }
  ValueId gone = kNoValue;
  if (real && std::isnan(replaced)) {
    DLC_TRY(gone, n.emit("is_nan", {n.in(0)}));
  } else {
    Tensor t;
    DLC_TRY(t, Tensor::make(type, {}));
    if (real)
      t.set_double(0, replaced);
    else
      t.set_int(0, replaced_int);
    DLC_TRY(gone, n.emit("equal", {n.in(0), n.add_constant(std::move(t))}));
  }
  return n.emit_all("where", {gone, n.add_constant(std::move(values)), n.in(0)});
}

// For each element a 1 beside its category, or only zeros.
Result<Values> one_hot_encoder(const NodeView& n) {
  if (!n.has_attr("cats_int64s")) return n.error("the categories must be integers", "strings are not supported");
  DLC_TRY(const auto cats, n.attr_ints("cats_int64s", {}));
  DLC_TRY(const int64_t zeros, n.attr_int("zeros", 1));
  if (zeros == 0) return n.error("attribute 'zeros' is 0: a run cannot refuse what is no category");
  DLC_TRY(ValueId x, n.emit("unsqueeze", {n.in(0)}, {{"axes", std::vector<Expr>{n.rank(0)}}}));
  if (n.type(0).dtype != kS64) {
    DLC_TRY(x, n.emit("cast", {x}, {{"to", kS64}}));
  }
  DLC_TRY(const Tensor t, Tensor::from<int64_t>(kS64, {static_cast<int64_t>(cats.size())}, cats));
  DLC_TRY(const ValueId same, n.emit("equal", {x, n.add_constant(t)}));
  return n.emit_all("cast", {same}, {{"to", kF32}});
}

constexpr OpEntry kTable[] = {
    {"ai.onnx.ml", "ArrayFeatureExtractor", array_feature_extractor, "tt"},
    {"ai.onnx.ml", "Binarizer", binarizer, "t"},
    {"ai.onnx.ml", "Scaler", scaler, "t"},
    {"ai.onnx.ml", "Normalizer", normalizer, "t"},
    {"ai.onnx.ml", "LinearRegressor", linear_regressor, "t"},
    {"ai.onnx.ml", "LinearClassifier", linear_classifier, "t", "multi_class"},
    {"ai.onnx.ml", "FeatureVectorizer", feature_vectorizer, "t*", "inputdimensions"},
    {"ai.onnx.ml", "Imputer", imputer, "t"},
    {"ai.onnx.ml", "OneHotEncoder", one_hot_encoder, "t"},
    {"ai.onnx.ml", "LabelEncoder", label_encoder, "t", "default_string default_float default_int64"},
};

}  // namespace

std::span<const OpEntry> ml_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
