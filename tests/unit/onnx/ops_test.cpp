// What single ops mean after import, against values worked out by hand from ONNX's text. One case for each way in which
// ONNX's form differs from the record's.
#include "models.h"

using namespace dlc;
using namespace dlc_test;
using Values = std::vector<double>;

TEST_CASE("Resize: scales, sizes, and the forms before opset 11") {
  OneNode up("Upsample", 9, {1, 1, 2, 2}, {"x", "scales"});
  initializer(up.m, "scales", {4}, {1, 1, 2, 2});
  CHECK(elements(run(up.m, {1, 2, 3, 4})) == Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});

  OneNode old("Upsample", 7, {1, 1, 1, 2});
  set_floats(old.n, "scales", {1, 1, 1, 2});
  CHECK(elements(run(old.m, {1, 2})) == Values{1, 1, 2, 2});

  OneNode ten("Resize", 10, {1, 1, 1, 3}, {"x", "scales"});
  initializer(ten.m, "scales", {4}, {1, 1, 1, 0.6F});  // floor(o / 0.6) of 1 element
  CHECK(elements(run(ten.m, {5, 6, 7})) == Values{5});

  OneNode sizes("Resize", 13, {1, 1, 1, 2}, {"x", "", "", "sizes"});
  integers(sizes.m, "sizes", {4}, {1, 1, 1, 4});
  set_string(sizes.n, "mode", "linear");
  CHECK(elements(run(sizes.m, {0, 4})) == Values{0, 1, 3, 4});

  OneNode corners("Resize", 13, {1, 1, 1, 2}, {"x", "", "scales"});
  initializer(corners.m, "scales", {4}, {1, 1, 1, 2.5F});
  set_string(corners.n, "mode", "linear");
  set_string(corners.n, "coordinate_transformation_mode", "align_corners");
  CHECK(elements(run(corners.m, {0, 4})) == Values{0, 1, 2, 3, 4});

  OneNode axes("Resize", 18, {1, 1, 1, 2}, {"x", "", "scales"});
  initializer(axes.m, "scales", {1}, {2});
  set_ints(axes.n, "axes", {-1});
  CHECK(elements(run(axes.m, {1, 2})) == Values{1, 1, 2, 2});

  OneNode ratio("Resize", 18, {1, 1, 2, 1}, {"x", "", "", "sizes"});
  integers(ratio.m, "sizes", {2}, {4, 8});
  set_ints(ratio.n, "axes", {2, 3});
  set_string(ratio.n, "keep_aspect_ratio_policy", "not_larger");
  CHECK(run(ratio.m, {1, 2}).shape() == std::vector<int64_t>{1, 1, 4, 2});
}

TEST_CASE("Resize: what is not supported is refused by name") {
  OneNode smooth("Resize", 18, {1, 1, 2, 2}, {"x", "", "scales"});
  initializer(smooth.m, "scales", {4}, {1, 1, 2, 2});
  set_int(smooth.n, "antialias", 1);
  REQUIRE_ERROR(import(smooth.m), "mode 'nearest' has no antialias");
  OneNode huge("Resize", 13, {1, 1, 2, 2}, {"x", "", "scales"});
  initializer(huge.m, "scales", {4}, {1, 1, 1e30F, 2});
  REQUIRE_ERROR(import(huge.m), "is out of range");
}

TEST_CASE("GroupNormalization: scale per group before opset 21, per channel from then on") {
  for (const int opset : {18, 21}) {
    OneNode one("GroupNormalization", opset, {1, 4, 1}, {"x", "s", "b"});
    set_int(one.n, "num_groups", 2);
    set_float(one.n, "epsilon", 0.0F);
    const std::vector<float> scale = opset < 21 ? std::vector<float>{1, 2} : std::vector<float>{1, 1, 2, 2};
    initializer(one.m, "s", {static_cast<int64_t>(scale.size())}, scale);
    initializer(one.m, "b", {static_cast<int64_t>(scale.size())}, std::vector<float>(scale.size(), 1));
    CHECK(elements(run(one.m, {1, 3, 5, 7})) == Values{0, 2, -1, 3});
  }
}

TEST_CASE("LayerNormalization keeps the reduced dims of its statistics") {
  OneNode one("LayerNormalization", 17, {2, 3}, {"x", "s"});
  one.n->add_output("mean");
  initializer(one.m, "s", {3}, {1, 1, 1});
  one.m.mutable_graph()->mutable_output(0)->set_name("mean");
  const Tensor mean = run(one.m, {1, 2, 3, 4, 5, 6});
  CHECK(mean.shape() == std::vector<int64_t>{2, 1});
  CHECK(elements(mean) == Values{2, 5});
}

TEST_CASE("ConvTranspose: an output_shape above the full result ends in zeros") {
  OneNode one("ConvTranspose", 11, {1, 1, 2}, {"x", "w"});
  initializer(one.m, "w", {1, 1, 2}, {1, 1});
  set_ints(one.n, "strides", {2});
  set_ints(one.n, "output_shape", {5});
  CHECK(elements(run(one.m, {1, 2})) == Values{1, 1, 2, 2, 0});
}

TEST_CASE("Range counts up, down, in fractions, and over symbolic limits") {
  const auto range = [](std::vector<float> v) {
    OneNode one("Range", 11, {}, {"start", "limit", "delta"});
    initializer(one.m, "start", {}, {v[0]});
    initializer(one.m, "limit", {1}, {v[1]});
    initializer(one.m, "delta", {}, {v[2]});
    return elements(run(one.m, {0}));
  };
  CHECK(range({1, 2, 0.5F}) == Values{1, 1.5});
  CHECK(range({3, 0, -2}) == Values{3, 1});
  CHECK(range({3, 0, 1}).empty());
  OneNode none("Range", 11, {}, {"start", "limit", "delta"});
  for (const char* name : {"start", "limit", "delta"}) integers(none.m, name, {}, {0});
  REQUIRE_ERROR(import(none.m), "delta is 0");

  auto m = model(13);  // Range(0, Shape(x)[0], 1)
  declare(m.mutable_graph()->add_input(), "x", {-1, 2});
  integers(m, "zero", {}, {0});
  integers(m, "one", {}, {1});
  node(m, "Shape", {"x"}, {"shape"});
  node(m, "Gather", {"shape", "zero"}, {"n"});
  node(m, "Range", {"zero", "n", "one"}, {"y"});
  m.mutable_graph()->add_output()->set_name("y");
  REQUIRE_OK(auto g, import(m));
  CHECK(to_string(g.value(g.outputs[0]).type) == "s64[N]");
}

TEST_CASE("OneHot takes its depth in any type, negative indices and any axis") {
  OneNode one("OneHot", 11, {2}, {"x", "depth", "values"}, onnx::TensorProto::INT64);
  initializer(one.m, "depth", {1}, {3});
  initializer(one.m, "values", {2}, {0, 5});
  set_int(one.n, "axis", 0);
  CHECK(elements(run(one.m, {-1, 1})) == Values{0, 0, 0, 5, 5, 0});
}

TEST_CASE("ReverseSequence with the batch first") {
  OneNode one("ReverseSequence", 10, {2, 3}, {"x", "lengths"});
  integers(one.m, "lengths", {2}, {2, 3});
  set_int(one.n, "batch_axis", 0);
  set_int(one.n, "time_axis", 1);
  CHECK(elements(run(one.m, {1, 2, 3, 4, 5, 6})) == Values{2, 1, 3, 6, 5, 4});
}

TEST_CASE("TopK: k is an attribute, then an input") {
  OneNode old("TopK", 9, {4});
  old.n->add_output("i");
  set_int(old.n, "k", 2);
  CHECK(elements(run(old.m, {1, 4, 2, 3})) == Values{4, 3});
  OneNode smallest("TopK", 11, {4}, {"x", "k"});
  smallest.n->add_output("i");
  integers(smallest.m, "k", {1}, {2});
  set_int(smallest.n, "largest", 0);
  CHECK(elements(run(smallest.m, {1, 4, 2, 3})) == Values{1, 2});
}

TEST_CASE("NonZero finds out its size when it runs") {
  OneNode one("NonZero", 13, {4});
  const Tensor y = run(one.m, {1, 0, 2, 0});
  CHECK(y.shape() == std::vector<int64_t>{1, 2});
  CHECK(elements(y) == Values{0, 2});
}

TEST_CASE("element-wise ops with attributes") {
  OneNode shrink("Shrink", 9, {3});
  set_float(shrink.n, "lambd", 1.5F);
  set_float(shrink.n, "bias", 1.0F);
  CHECK(elements(run(shrink.m, {-2, 1, 2})) == Values{-1, 0, 1});

  OneNode shift("BitShift", 11, {2}, {"x", "by"}, onnx::TensorProto::UINT8);
  integers(shift.m, "by", {2}, {1, 7}, onnx::TensorProto::UINT8);
  set_string(shift.n, "direction", "LEFT");
  CHECK(elements(run(shift.m, {200, 3})) == Values{144, 128});

  OneNode hardmax("Hardmax", 13, {2, 2});
  CHECK(elements(run(hardmax.m, {1, 2, 3, 3})) == Values{0, 1, 1, 0});

  OneNode eye("EyeLike", 9, {2, 2});
  set_int(eye.n, "k", 1);
  set_int(eye.n, "dtype", onnx::TensorProto::INT32);
  CHECK(elements(run(eye.m, {0, 0, 0, 0})) == Values{0, 1, 0, 0});
}

TEST_CASE("LRN and pools of p-norms") {
  OneNode lrn("LRN", 13, {1, 3, 1, 1});
  set_int(lrn.n, "size", 3);
  set_float(lrn.n, "alpha", 3.0F);
  set_float(lrn.n, "beta", 1.0F);
  CHECK(elements(run(lrn.m, {1, 1, 1})) == Values{1.0F / 3, 0.25, 1.0F / 3});
  OneNode pool("LpPool", 11, {1, 1, 2});
  set_ints(pool.n, "kernel_shape", {2});
  set_int(pool.n, "p", 1);
  CHECK(elements(run(pool.m, {3, -4})) == Values{7});
  OneNode global("GlobalLpPool", 7, {1, 1, 2});
  CHECK(elements(run(global.m, {3, -4})) == Values{5});
}

TEST_CASE("Dropout gives a mask that drops nothing") {
  OneNode one("Dropout", 13, {2});
  one.n->add_output("mask");
  one.m.mutable_graph()->mutable_output(0)->set_name("mask");
  const Tensor mask = run(one.m, {1, 2});
  CHECK(mask.dtype() == kBool);
  CHECK(elements(mask) == Values{1, 1});
}

TEST_CASE("RNN with its batch first") {
  OneNode one("RNN", 14, {2, 1, 1}, {"x", "w", "r"});  // two sequences of one step
  initializer(one.m, "w", {1, 1, 1}, {2});
  initializer(one.m, "r", {1, 1, 1}, {1});
  set_int(one.n, "hidden_size", 1);
  set_int(one.n, "layout", 1);
  auto* a = attribute(one.n, "activations", onnx::AttributeProto::STRINGS);
  a->add_strings("Relu");
  const Tensor y = run(one.m, {1, 3});
  CHECK(y.shape() == std::vector<int64_t>{2, 1, 1, 1});
  CHECK(elements(y) == Values{2, 6});
}

TEST_CASE("quantised ops of onnxruntime") {
  const auto quantised = [](const std::string& op, std::vector<int64_t> shape, std::vector<std::string> inputs) {
    OneNode one(op, 13, std::move(shape), std::move(inputs), onnx::TensorProto::UINT8);
    one.n->set_domain("com.microsoft");
    auto* set = one.m.add_opset_import();
    set->set_domain("com.microsoft");
    set->set_version(1);
    initializer(one.m, "half", {}, {0.5F});
    initializer(one.m, "one", {1}, {1});
    integers(one.m, "ten", {}, {10}, onnx::TensorProto::UINT8);
    return one;
  };
  // (20 - 10) / 2 + (12 - 10) / 2 = 6
  auto add = quantised("QLinearAdd", {2}, {"x", "half", "ten", "x", "half", "ten", "one", ""});
  CHECK(elements(run(add.m, {20, 12})) == Values{10, 2});
  auto mul = quantised("QLinearMul", {2}, {"x", "half", "ten", "x", "half", "ten", "one", "ten"});
  CHECK(elements(run(mul.m, {20, 12})) == Values{35, 11});
  auto mean = quantised("QLinearGlobalAveragePool", {1, 1, 2}, {"x", "half", "ten", "one", "ten"});
  CHECK(elements(run(mean.m, {20, 12})) == Values{13});
  auto pool = quantised("QLinearAveragePool", {1, 1, 2}, {"x", "half", "ten", "one", "ten"});
  set_ints(pool.n, "kernel_shape", {2});
  CHECK(elements(run(pool.m, {20, 12})) == Values{13});
  auto join = quantised("QLinearConcat", {2}, {"one", "ten", "x", "half", "ten", "x", "one", "ten"});
  set_int(join.n, "axis", 0);
  CHECK(elements(run(join.m, {20, 12})) == Values{15, 11, 20, 12});
  auto last = quantised("QLinearGlobalAveragePool", {1, 2, 1}, {"x", "half", "ten", "one", "ten"});
  set_int(last.n, "channels_last", 1);
  CHECK(elements(run(last.m, {20, 12})) == Values{13});
}

TEST_CASE("QLinearMatMul takes the result's scale and zero point as f32[1] and u8[1]") {
  OneNode one("QLinearMatMul", 10, {1, 1}, {"x", "s", "z", "w", "s", "z", "s", "z"}, onnx::TensorProto::UINT8);
  initializer(one.m, "s", {1}, {1});
  integers(one.m, "z", {1}, {1}, onnx::TensorProto::UINT8);
  integers(one.m, "w", {1, 1}, {4}, onnx::TensorProto::UINT8);
  CHECK(elements(run(one.m, {3})) == Values{7});
}

TEST_CASE("MatMulInteger with a zero point for each row of each matrix") {
  OneNode one("MatMulInteger", 10, {2, 1, 2}, {"x", "w", "zero"}, onnx::TensorProto::UINT8);
  integers(one.m, "w", {2, 1}, {1, 1}, onnx::TensorProto::UINT8);
  integers(one.m, "zero", {2, 1, 1}, {1, 3}, onnx::TensorProto::UINT8);
  CHECK(elements(run(one.m, {5, 6, 7, 8})) == Values{9, 9});
}

TEST_CASE("Einsum: products, diagonals, sums, and dims that broadcast") {
  const auto einsum = [](const std::string& equation, std::vector<int64_t> shape, std::vector<int64_t> other = {},
                         std::vector<float> w = {}) {
    OneNode one("Einsum", 12, std::move(shape),
                other.empty() ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "w"});
    if (!other.empty()) initializer(one.m, "w", std::move(other), std::move(w));
    set_string(one.n, "equation", equation);
    return one.m;
  };
  CHECK(elements(run(einsum("ij,jk->ik", {2, 2}, {2, 1}, {1, 10}), {1, 2, 3, 4})) == Values{21, 43});
  CHECK(elements(run(einsum("ij,jk", {1, 2}, {2, 1}, {1, 10}), {1, 2})) == Values{21});
  CHECK(elements(run(einsum("i,j->ji", {2}, {2}, {1, 10}), {1, 2})) == Values{1, 2, 10, 20});
  CHECK(elements(run(einsum("ii->i", {2, 2}), {1, 2, 3, 4})) == Values{1, 4});
  CHECK(elements(run(einsum("ii", {2, 2}), {1, 2, 3, 4})) == Values{5});
  CHECK(elements(run(einsum("...j->...", {2, 2}), {1, 2, 3, 4})) == Values{3, 7});
  CHECK(elements(run(einsum("bi,bi->bi", {2, 2}, {1, 2}, {1, 10}), {1, 2, 3, 4})) == Values{1, 20, 3, 40});
  REQUIRE_ERROR(import(einsum("ij->k", {2, 2})), "has a wrong result");
  REQUIRE_ERROR(import(einsum("ijk->i", {2, 2})), "does not fit the rank 2");
}

TEST_CASE("MaxPool gives indices, and MaxUnpool puts elements back") {
  OneNode pool("MaxPool", 12, {1, 1, 2, 4});
  set_ints(pool.n, "kernel_shape", {2, 2});
  set_ints(pool.n, "strides", {2, 2});
  pool.n->add_output("index");
  pool.m.mutable_graph()->mutable_output(0)->set_name("index");
  CHECK(elements(run(pool.m, {1, 9, 2, 3, 5, 4, 8, 8})) == Values{1, 6});
  set_int(pool.n, "storage_order", 1);
  CHECK(elements(run(pool.m, {1, 9, 2, 3, 5, 4, 8, 8})) == Values{2, 5});
  OneNode back("MaxUnpool", 11, {1, 1, 1, 1}, {"x", "i"});
  integers(back.m, "i", {1, 1, 1, 1}, {2});
  set_ints(back.n, "kernel_shape", {2, 2});
  CHECK(elements(run(back.m, {7})) == Values{0, 0, 7, 0});
}

TEST_CASE("losses ignore a class, and weigh the mean") {
  OneNode one("NegativeLogLikelihoodLoss", 13, {3, 2}, {"x", "t", "w"});
  integers(one.m, "t", {3}, {0, 1, -1});
  initializer(one.m, "w", {2}, {1, 3});
  set_int(one.n, "ignore_index", -1);
  CHECK(elements(run(one.m, {-4, 0, 0, -8, 5, 5})) == Values{7});  // (4 + 3 * 8) / (1 + 3)
  set_string(one.n, "reduction", "none");
  CHECK(elements(run(one.m, {-4, 0, 0, -8, 5, 5})) == Values{4, 24, 0});
}

TEST_CASE("a determinant whose first pivot is 0") {
  OneNode one("Det", 11, {3, 3});
  CHECK(elements(run(one.m, {0, 2, 0, 3, 0, 0, 0, 0, 4})) == Values{-24});
  CHECK(elements(run(one.m, {1, 2, 3, 2, 4, 6, 1, 0, 1})) == Values{0});
}

TEST_CASE("LSTM stops at each sequence's length") {
  OneNode one("RNN", 14, {2, 2, 1}, {"x", "w", "r", "", "lengths"});  // two steps, two sequences
  one.n->add_output("last");
  initializer(one.m, "w", {1, 1, 1}, {1});
  initializer(one.m, "r", {1, 1, 1}, {1});
  integers(one.m, "lengths", {2}, {1, 2}, onnx::TensorProto::INT32);
  set_int(one.n, "hidden_size", 1);
  attribute(one.n, "activations", onnx::AttributeProto::STRINGS)->add_strings("Relu");
  CHECK(elements(run(one.m, {1, 10, 2, 20})) == Values{1, 10, 0, 30});
  one.m.mutable_graph()->mutable_output(0)->set_name("last");
  CHECK(elements(run(one.m, {1, 10, 2, 20})) == Values{1, 30});
  set_string(one.n, "direction", "reverse");
  CHECK(elements(run(one.m, {1, 10, 2, 20})) == Values{1, 30});
}

TEST_CASE("before opset 7 only ops that did not change") {
  OneNode same("Softplus", 1, {1});
  CHECK(elements(run(same.m, {0}))[0] == 0.6931471824645996);
  OneNode changed("Add", 6, {1}, {"x", "x"});
  REQUIRE_ERROR(import(changed.m), "op Add of opset 6 is not supported");
}
