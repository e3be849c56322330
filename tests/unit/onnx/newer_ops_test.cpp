// Ops of opsets 18 to 27 and of classic models, on numbers that can be checked by hand; ONNX's own tests have the many
// forms.
#include <cmath>

#include "models.h"

using namespace dlc;
using namespace dlc_test;
using Values = std::vector<double>;

TEST_CASE("CumProd, forward and exclusive from the end", "[onnx]") {
  OneNode t("CumProd", 26, {3}, {"x", "axis"});
  integers(t.m, "axis", {}, {0});
  CHECK(elements(run(t.m, {2, 3, 4})) == Values{2, 6, 24});
  set_int(t.n, "reverse", 1);
  set_int(t.n, "exclusive", 1);
  CHECK(elements(run(t.m, {2, 3, 4})) == Values{12, 4, 1});
}

TEST_CASE("CenterCropPad puts what is odd to the end", "[onnx]") {
  const auto to = [](int64_t wanted, std::vector<double> x) {
    OneNode t("CenterCropPad", 18, {static_cast<int64_t>(x.size())}, {"x", "shape"});
    integers(t.m, "shape", {1}, {wanted});
    return elements(run(t.m, x));
  };
  CHECK(to(2, {1, 2, 3, 4, 5}) == Values{2, 3});
  CHECK(to(5, {1, 2}) == Values{0, 1, 2, 0, 0});
}

TEST_CASE("TensorScatter writes from an index on, around a ring if so asked", "[onnx]") {
  OneNode t("TensorScatter", 24, {1, 4, 1}, {"x", "u", "at"});
  initializer(t.m, "u", {1, 2, 1}, {8, 9});
  integers(t.m, "at", {1}, {3});
  set_string(t.n, "mode", "circular");
  CHECK(elements(run(t.m, {0, 1, 2, 3})) == Values{9, 1, 2, 8});
}

TEST_CASE("BitCast keeps the bits", "[onnx]") {
  OneNode t("BitCast", 26, {2}, {"x"}, onnx::TensorProto::INT32);
  set_int(t.n, "to", onnx::TensorProto::FLOAT);
  CHECK(elements(run(t.m, {0x3f800000, 0x40490fdb})) == Values{1, 3.1415927410125732});
  OneNode wide("BitCast", 26, {2});
  set_int(wide.n, "to", onnx::TensorProto::DOUBLE);
  REQUIRE_ERROR(import(wide.m), "require bits(T) == bits(to)");
}

TEST_CASE("Col2Im adds what overlaps", "[onnx]") {
  OneNode t("Col2Im", 18, {1, 2, 2}, {"x", "image", "block"});  // blocks of [1, 2] at columns 0 and 1
  integers(t.m, "image", {2}, {1, 3});
  integers(t.m, "block", {2}, {1, 2});
  CHECK(elements(run(t.m, {1, 2, 10, 20})) == Values{1, 12, 20});
}

TEST_CASE("DeformConv reads where the offsets say", "[onnx]") {
  OneNode t("DeformConv", 19, {1, 1, 1, 3}, {"x", "w", "offset"});
  initializer(t.m, "w", {1, 1, 1, 1}, {2});
  initializer(t.m, "offset", {1, 2, 1, 3}, {0, 0, 0, 0.5F, 1, 1});  // rows, then columns
  CHECK(elements(run(t.m, {1, 3, 7})) == Values{4, 14, 0});
}

TEST_CASE("AffineGrid of the identity is the grid itself, inner dim first", "[onnx]") {
  OneNode t("AffineGrid", 20, {1, 2, 3}, {"x", "size"});
  integers(t.m, "size", {4}, {1, 1, 1, 2});
  set_int(t.n, "align_corners", 1);
  CHECK(elements(run(t.m, {1, 0, 0, 0, 1, 0.25})) == Values{-1, 0.25, 1, 0.25});
}

TEST_CASE("RoiAlign takes as many samples as a bin has elements", "[onnx]") {
  OneNode t("RoiAlign", 16, {1, 1, 2, 4}, {"x", "regions", "images"});
  initializer(t.m, "regions", {1, 4}, {0, 0, 4, 2});
  integers(t.m, "images", {1}, {0});
  set_int(t.n, "output_width", 2);
  CHECK(elements(run(t.m, {0, 1, 2, 3, 4, 5, 6, 7})) == Values{2.5, 4.5});
}

TEST_CASE("Resize by scales that only a run knows", "[onnx]") {
  OneNode t("Resize", 13, {1, 2}, {"x", "", "scales"});
  declare(t.m.mutable_graph()->add_input(), "scales", {2});
  REQUIRE_OK(const Graph g, import(t.m));
  const auto resized = [&](float scale) {
    const Tensor inputs[] = {Tensor::from<float>(kF32, {1, 2}, std::vector<float>{1, 2}).value(),
                             Tensor::from<float>(kF32, {2}, std::vector<float>{1, scale}).value()};
    const auto y = run_graph(g, inputs);
    if (!y) FAIL(to_string(y.error()));
    return elements((*y)[0]);
  };
  CHECK(resized(1.5F) == Values{1, 1, 2});
  CHECK(resized(2) == Values{1, 1, 2, 2});
}

TEST_CASE("LRN over more channels than there are", "[onnx]") {
  OneNode t("LRN", 13, {1, 2, 1});
  set_int(t.n, "size", int64_t{1} << 62);
  CHECK(elements(run(t.m, {3, 4})) == Values{3, 4});
}

TEST_CASE("LinearAttention: one step of each rule", "[onnx]") {
  const auto step = [](const std::string& rule, float key = 0.5F) {
    OneNode t("LinearAttention", 27, {1, 1, 1}, {"x", "k", "v", "past", "", ""});
    initializer(t.m, "k", {1, 1, 1}, {key});
    initializer(t.m, "v", {1, 1, 1}, {6});
    initializer(t.m, "past", {1, 1, 1, 1}, {4});
    if (rule.starts_with("gated")) {
      t.n->set_input(4, "decay");
      initializer(t.m, "decay", {1, 1, 1}, {-std::log(2.0F)});
    }
    if (rule.ends_with("delta")) {
      t.n->set_input(5, "beta");
      initializer(t.m, "beta", {1, 1, 1}, {1});
    }
    for (const char* heads : {"q_num_heads", "kv_num_heads"}) set_int(t.n, heads, 1);
    set_string(t.n, "update_rule", rule);
    set_float(t.n, "scale", 1);
    return elements(run(t.m, {1}))[0];
  };
  CHECK(step("linear") == Approx(4 + 3));
  CHECK(step("gated") == Approx(2 + 3));
  CHECK(step("delta") == Approx(4 + 0.5 * (6 - 2)));
  CHECK(step("gated_delta") == Approx(2 + 0.5 * (6 - 1)));
  CHECK(step("linear", 3) == Approx(4 + 18));  // a key as long as none that random tests take
}

TEST_CASE("CausalConvWithState: the past comes first, and the end is the state", "[onnx]") {
  OneNode t("CausalConvWithState", 27, {1, 1, 2}, {"x", "w", "", "past"});
  initializer(t.m, "w", {1, 1, 2}, {1, 10});
  initializer(t.m, "past", {1, 1, 1}, {5});
  t.n->add_output("state");
  CHECK(elements(run(t.m, {1, 2})) == Values{15, 21});
  t.m.mutable_graph()->mutable_output(0)->set_name("state");
  CHECK(elements(run(t.m, {1, 2})) == Values{2});

  OneNode none("CausalConvWithState", 27, {1, 1, 0}, {"x", "w", "", "past"});  // no steps: the state stays
  initializer(none.m, "w", {1, 1, 2}, {1, 10});
  initializer(none.m, "past", {1, 1, 1}, {5});
  none.n->add_output("state");
  none.m.mutable_graph()->mutable_output(0)->set_name("state");
  CHECK(elements(run(none.m, {})) == Values{5});
}

TEST_CASE("LabelEncoder: the last of equal keys, and a value for the others", "[onnx]") {
  OneNode t("LabelEncoder", 17, {3}, {"x"}, onnx::TensorProto::INT64);
  t.n->set_domain("ai.onnx.ml");
  auto* set = t.m.add_opset_import();
  set->set_domain("ai.onnx.ml");
  set->set_version(4);
  set_ints(t.n, "keys_int64s", {1, 2, 1});
  set_floats(t.n, "values_floats", {10, 20, 30});
  set_float(t.n, "default_float", -5);
  CHECK(elements(run(t.m, {1, 2, 3})) == Values{30, 20, -5});
}

TEST_CASE("TreeEnsemble: a stump, what is missing, and a tree that is none", "[onnx]") {
  OneNode t("TreeEnsemble", 17, {3, 1});
  t.n->set_domain("ai.onnx.ml");
  auto* set = t.m.add_opset_import();
  set->set_domain("ai.onnx.ml");
  set->set_version(5);
  const auto tensor = [&](const char* name, onnx::TensorProto::DataType type, std::vector<float> v) {
    auto* a = attribute(t.n, name, onnx::AttributeProto::TENSOR)->mutable_t();
    a->set_data_type(type);
    a->add_dims(static_cast<int64_t>(v.size()));
    for (const float x : v)
      if (type == onnx::TensorProto::FLOAT)
        a->add_float_data(x);
      else
        a->add_int32_data(static_cast<int>(x));
  };
  tensor("leaf_weights", onnx::TensorProto::FLOAT, {10, 20});
  tensor("nodes_splits", onnx::TensorProto::FLOAT, {1});
  tensor("nodes_modes", onnx::TensorProto::UINT8, {0});
  set_ints(t.n, "leaf_targetids", {0, 0});
  set_ints(t.n, "tree_roots", {0});
  set_ints(t.n, "nodes_featureids", {0});
  for (const char* leaf : {"nodes_trueleafs", "nodes_falseleafs"}) set_ints(t.n, leaf, {1});
  set_ints(t.n, "nodes_truenodeids", {0});
  set_ints(t.n, "nodes_falsenodeids", {1});
  set_ints(t.n, "nodes_missing_value_tracks_true", {1});
  CHECK(elements(run(t.m, {1, 2, NAN})) == Values{10, 20, 10});
  for (auto& a : *t.n->mutable_attribute())
    if (a.name() == "nodes_trueleafs") a.set_ints(0, 0);  // the node leads to itself
  REQUIRE_ERROR(import(t.m), "node 0 is reached on two ways");
}

TEST_CASE("DynamicQuantizeLSTM is the LSTM of its weights as floats", "[onnx]") {
  const auto lstm = [](bool quantised) {
    OneNode t(quantised ? "DynamicQuantizeLSTM" : "LSTM", 14, {2, 1, 1}, {"x", "w", "r"});
    set_int(t.n, "hidden_size", 1);
    if (!quantised) {
      initializer(t.m, "w", {1, 4, 1}, {0.5F, 1, -0.5F, 0});
      initializer(t.m, "r", {1, 4, 1}, {0.25F, 0, 0.25F, -0.25F});
      return elements(run(t.m, {1, 2}));
    }
    t.n->set_domain("com.microsoft");
    t.m.add_opset_import()->set_domain("com.microsoft");
    t.m.mutable_opset_import(1)->set_version(1);
    for (const char* in : {"", "", "", "", "", "ws", "wz", "rs", "rz"}) t.n->add_input(in);
    integers(t.m, "w", {1, 1, 4}, {11, 12, 9, 10}, onnx::TensorProto::INT8);
    integers(t.m, "r", {1, 1, 4}, {1, 0, 1, -1}, onnx::TensorProto::INT8);
    initializer(t.m, "ws", {1}, {0.5F});
    integers(t.m, "wz", {1}, {10}, onnx::TensorProto::INT8);
    initializer(t.m, "rs", {1, 4}, {0.25F, 0.25F, 0.25F, 0.25F});
    integers(t.m, "rz", {1, 4}, {0, 0, 0, 0}, onnx::TensorProto::INT8);
    return elements(run(t.m, {1, 2}));
  };
  CHECK(lstm(true) == lstm(false));
}

TEST_CASE("A dim may be 0 where that is asked for", "[onnx]") {
  OneNode t("Relu", 13, {-1});
  OnnxOptions options;
  options.dims["N"] = {0, 4};
  CHECK(import(t.m, {}, options).has_value());
  options.dims["N"] = {-1, 4};
  REQUIRE_ERROR(import(t.m, {}, options), "a dim is at least 0");
}

TEST_CASE("Recurrent layers: other activations, cut inputs, coupled gates", "[onnx]") {
  OneNode t("RNN", 14, {1, 1, 1}, {"x", "w", "r"});
  for (const char* w : {"w", "r"}) initializer(t.m, w, {1, 1, 1}, {1});
  auto* a = attribute(t.n, "activations", onnx::AttributeProto::STRINGS);
  a->add_strings("Affine");
  set_floats(t.n, "activation_alpha", {2});
  set_floats(t.n, "activation_beta", {1});
  set_float(t.n, "clip", 0.5F);
  CHECK(elements(run(t.m, {4})) == Values{2});
  a->set_strings(0, "Step");
  REQUIRE_ERROR(import(t.m), "activation 'Step' is not supported");

  OneNode lstm("LSTM", 14, {1, 1, 1}, {"x", "w", "r", "", "", "", "c"});  // gates of 1/2, cell input 1
  initializer(lstm.m, "w", {1, 4, 1}, {0, 0, 100, 100});
  initializer(lstm.m, "r", {1, 4, 1}, {0, 0, 0, 0});
  initializer(lstm.m, "c", {1, 1, 1}, {4});
  for (const char* out : {"", "cell"}) lstm.n->add_output(out);
  lstm.m.mutable_graph()->mutable_output(0)->set_name("cell");
  CHECK(elements(run(lstm.m, {1}))[0] == Approx(4.5));  // what is forgotten: nothing
  set_int(lstm.n, "input_forget", 1);
  CHECK(elements(run(lstm.m, {1}))[0] == Approx(2.5));  // as much as comes in
}
