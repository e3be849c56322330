// Models that say two things of one value, or of a value what it cannot be.
#include <cmath>
#include <limits>

#include "tests/error/run.h"

using namespace dlc::test;

namespace {

void declare(onnx::ModelProto& m, const std::string& name, const std::vector<int64_t>& shape,
             int type = onnx::TensorProto::FLOAT) {
  output(m, name, shape, type);  // made as an output, then moved
  *m.mutable_graph()->add_value_info() = m.graph().output(m.graph().output_size() - 1);
  m.mutable_graph()->mutable_output()->RemoveLast();
}

onnx::TensorShapeProto* output_shape(onnx::ModelProto& m) {
  return m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
}

// y = dequantize(quantize(x, scale)), with one scale or one for each of the two channels.
onnx::ModelProto quantised(const std::vector<float>& scale) {
  auto m = model();
  input(m, "x", {3, 2});
  auto* s = m.mutable_graph()->add_initializer();
  s->set_name("x_scale");
  s->set_data_type(onnx::TensorProto::FLOAT);
  if (scale.size() > 1) s->add_dims(static_cast<int64_t>(scale.size()));
  for (const float v : scale) s->add_float_data(v);
  node(m, "QuantizeLinear", "quantise", {"x", "x_scale"}, "q");
  node(m, "DequantizeLinear", "dequantise", {"q", "x_scale"}, "y");
  output(m, "y", {3, 2});
  return m;
}

// A window of 3x3 over a picture of this size.
onnx::ModelProto window(const std::string& op, int64_t height, int64_t width) {
  auto m = model();
  input(m, "x", {1, 1, height, width});
  onnx::NodeProto* n = nullptr;
  if (op == "Conv") {
    weight(m, "w", {1, 1, 3, 3});
    n = node(m, op, "win", {"x", "w"}, "y");
  } else {
    n = node(m, op, "win", {"x"}, "y");
    auto* a = n->add_attribute();
    a->set_name("kernel_shape");
    a->set_type(onnx::AttributeProto::INTS);
    a->add_ints(3);
    a->add_ints(3);
  }
  auto* v = m.mutable_graph()->add_output();
  v->set_name("y");
  return m;
}

}  // namespace

TEST_CASE("outputs are what the model declares of them", "[error]") {
  const Folder f("declared");
  auto m = mlp();
  output_shape(m)->mutable_dim(1)->set_dim_value(5);
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca",
            {"m.onnx: error: ", "'y' is declared f32[2,5] as an output, but it is f32[2,4]", "(node act)", "next: "});
  m = mlp();
  output_shape(m)->add_dim()->set_dim_value(1);
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'y' is declared f32[2,4,1] as an output, but it is f32[2,4]", "(node act)"});
  m = mlp();
  m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT8);
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'y' is declared s8[2,4] as an output, but it is f32[2,4]", "(node act)"});
  m = mlp();
  auto* type = m.mutable_graph()->mutable_output(0)->mutable_type();
  type->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'y' is declared a sequence as an output, but it is a tensor", "(node act)"});
}

TEST_CASE("values between nodes are what the model declares of them", "[error]") {
  const Folder f("value_info");
  auto m = mlp();
  declare(m, "h", {2, 4});
  f.write("m.onnx", m);
  must_succeed(f, "m.onnx --emit=graph");
  declare(m, "s", {2, 3});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'s' is declared f32[2,3] as a value_info, but it is f32[2,4]", "(node bias)"});
  m = mlp();
  declare(m, "h", {2, 4}, onnx::TensorProto::DOUBLE);
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'h' is declared f64[2,4] as a value_info", "(node fc)"});
  // An input that an initializer fills.
  m = mlp();
  input(m, "w", {8, 5});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'w' is declared f32[8,5] as an input, but it is f32[8,4]"});
}

TEST_CASE("a declared name of a dim is one extent", "[error]") {
  const Folder f("dim_names");
  // A name of its own stands for whatever it meets, a number for a batch that became symbolic later.
  auto m = mlp("N");
  output_shape(m)->mutable_dim(0)->set_dim_param("unk__0");
  output_shape(m)->mutable_dim(1)->set_dim_param("unk__1");
  declare(m, "h", {1, 4});
  f.write("m.onnx", m);
  must_succeed(f, "m.onnx --emit=graph");
  must_fail(f, "m.onnx --dim N=3 -o m.dlca", {"'h' is declared f32[1,4] as a value_info, but it is f32[3,4]"});
  // One name, two extents.
  m = mlp();
  output_shape(m)->mutable_dim(0)->set_dim_param("M");
  output_shape(m)->mutable_dim(1)->set_dim_param("M");
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'y' is declared f32[M,M] as an output, but it is f32[2,4]", "(node act)"});
  // The input's dim of that name is another one.
  m = model();
  input(m, "x", {2, 8});
  m.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("N");
  auto* n = node(m, "Concat", "twice", {"x", "x"}, "y");
  auto* axis = n->add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx::AttributeProto::INT);
  axis->set_i(0);
  output(m, "y", {2, 8});
  output_shape(m)->mutable_dim(0)->set_dim_param("N");
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"'y' is declared f32[N,8] as an output, but it is f32[2*N,8]", "(node twice)"});
}

TEST_CASE("names are given once", "[error]") {
  const Folder f("names");
  auto m = mlp();
  output(m, "y", {2, 4});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: output 'y' is declared twice", "next: "});
  m = mlp();
  input(m, "x", {2, 8});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"input 'x' is declared twice"});
  m = mlp();
  weight(m, "w", {8, 4});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"initializer 'w' is defined twice"});
  m = mlp();
  node(m, "Relu", "again", {"h"}, "y");
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"value 'y' is made twice", "(node again)"});
}

TEST_CASE("a window fits what it runs over", "[error]") {
  const Folder f("window");
  for (const std::string op : {"Conv", "MaxPool", "AveragePool", "LpPool"}) {
    f.write("m.onnx", window(op, 2, 2));  // an extent of 0
    must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: ", "(node win)", "3 against 2", "f32[1,1,2,2]"});
    f.write("m.onnx", window(op, 5, 1));  // of less
    must_fail(f, "m.onnx -o m.dlca", {"(node win)", "3 against 1", "f32[1,1,5,1]"});
    f.write("m.onnx", window(op, 3, 3));
    must_succeed(f, "m.onnx --emit=graph");
  }
}

TEST_CASE("a window fits the sizes that a run brings", "[error]") {
  const Folder f("window_at_run");
  for (const std::string op : {"Conv", "MaxPool"}) {
    auto m = window(op, 2, 5);
    auto* shape = m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->mutable_dim(2)->set_dim_param("H");
    f.write("m.onnx", m);
    must_succeed(f, "m.onnx -o m.dlca");
    for (const int64_t height : {1, 2, 3}) {
      onnx::TensorProto x;
      x.set_data_type(onnx::TensorProto::FLOAT);
      for (const int64_t d : {int64_t{1}, int64_t{1}, height, int64_t{5}}) x.add_dims(d);
      for (int64_t i = 0; i < height * 5; ++i) x.add_float_data(1);
      f.write("x.pb", x.SerializeAsString());
      for (const std::string device : {"cpu:", "interp:"}) {
        const std::string command = "run m.dlca --device " + device + " --input x=x.pb";
        if (height < 3)
          must_fail(f, command, {"win", "H"});
        else
          must_succeed(f, command);
      }
    }
  }
}

TEST_CASE("scales are positive and finite", "[error]") {
  const Folder f("scales");
  f.write("m.onnx", quantised({0.5F}));
  must_succeed(f, "m.onnx --emit=graph");
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {0.0F, -0.5F, inf, -inf, std::nanf("")}) {
    f.write("m.onnx", quantised({bad}));
    must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: ", "x_scale", "in (0, inf)", "(node quantise)", "next: "});
    f.write("m.onnx", quantised({0.5F, bad}));
    must_fail(f, "m.onnx -o m.dlca", {"element 1 of the constant 'x_scale", "(node quantise)"});
  }
}

TEST_CASE("scales of operators on integers are positive and finite", "[error]") {
  const Folder f("qlinear");
  const std::vector<std::string> scales{"as", "bs", "ys"};
  for (const std::string& bad : scales) {
    auto m = model();
    input(m, "a", {2, 2}, onnx::TensorProto::UINT8);
    input(m, "b", {2, 2}, onnx::TensorProto::UINT8);
    for (const std::string& s : scales) weight(m, s, {})->set_float_data(0, s == bad ? 0.0F : 0.5F);
    auto* z = weight(m, "z", {});
    z->clear_float_data();
    z->set_data_type(onnx::TensorProto::UINT8);
    z->add_int32_data(128);
    node(m, "QLinearMatMul", "product", {"a", "as", "z", "b", "bs", "z", "ys", "z"}, "y");
    output(m, "y", {2, 2}, onnx::TensorProto::UINT8);
    f.write("m.onnx", m);
    must_fail(f, "m.onnx -o m.dlca", {"the constant '" + bad, "(node product)"});
  }
}

TEST_CASE("a stored element is one of its type", "[error]") {
  const Folder f("elements");
  auto m = quantised({0.5F});
  auto* z = weight(m, "zero", {});
  z->clear_float_data();
  z->set_data_type(onnx::TensorProto::UINT8);
  z->add_int32_data(300);
  m.mutable_graph()->mutable_node(0)->add_input("zero");
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"element 0 of tensor 'zero' is 300, which is no u8"});
}

TEST_CASE("an axis that a run brings is one of the value's", "[error]") {
  const Folder f("axes");
  for (const std::string op : {"ReduceSum", "Unsqueeze", "CumSum"}) {
    auto m = model();
    input(m, "x", {2, 3});
    input(m, "axes", {1}, onnx::TensorProto::INT64);
    node(m, op, "along", {"x", "axes"}, "y");
    m.mutable_graph()->add_output()->set_name("y");
    f.write("m.onnx", m);
    must_succeed(f, "m.onnx -o m.dlca");
    onnx::TensorProto x;
    x.set_data_type(onnx::TensorProto::FLOAT);
    x.add_dims(2);
    x.add_dims(3);
    for (int i = 0; i < 6; ++i) x.add_float_data(1);
    f.write("x.pb", x.SerializeAsString());
    for (const int64_t axis : {-7, -1, 1, 5}) {
      onnx::TensorProto axes;
      axes.set_data_type(onnx::TensorProto::INT64);
      axes.add_dims(1);
      axes.add_int64_data(axis);
      f.write("axes.pb", axes.SerializeAsString());
      for (const std::string device : {"cpu:", "interp:"}) {
        const std::string command = "run m.dlca --device " + device + " --input x=x.pb --input axes=axes.pb";
        if (axis == -1 || axis == 1)
          must_succeed(f, command);
        else
          must_fail(f, command, {op == "CumSum" ? "axes" : "(node along)"});
      }
    }
  }
}
