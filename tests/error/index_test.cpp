// Numbers that a run brings and that say where something lies, or how much of it there is: each stays inside what it
// indexes, on every device (published cases: ORT#27903, index tensors used as offsets; ORT#28731, dilations).
#include <cstdint>
#include <limits>

#include "tests/error/run.h"

using namespace dlc::test;

namespace {

constexpr int64_t kHuge = int64_t{1} << 40;
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// An op with its data `x`, and `i`, the numbers that the run brings.
struct Indexed {
  std::string op;
  std::vector<int64_t> x, i;        // shapes
  std::vector<std::string> inputs;  // "x", "i", and "u": updates like x[0:1]
  std::vector<int64_t> updates;     // their shape
};

onnx::ModelProto model_of(const Indexed& c) {
  auto m = model();
  input(m, "x", c.x);
  input(m, "i", c.i, onnx::TensorProto::INT64);
  if (!c.updates.empty()) weight(m, "u", c.updates);
  node(m, c.op, "at", c.inputs, "y");
  m.mutable_graph()->add_output()->set_name("y");
  return m;
}

std::string floats(const std::vector<int64_t>& shape) {
  onnx::TensorProto t;
  t.set_data_type(onnx::TensorProto::FLOAT);
  int64_t n = 1;
  for (const int64_t d : shape) {
    t.add_dims(d);
    n *= d;
  }
  for (int64_t i = 0; i < n; ++i) t.add_float_data(static_cast<float>(i));
  return t.SerializeAsString();
}

std::string number(const std::vector<int64_t>& shape, int64_t v) {
  onnx::TensorProto t;
  t.set_data_type(onnx::TensorProto::INT64);
  for (const int64_t d : shape) t.add_dims(d);
  t.add_int64_data(v);
  return t.SerializeAsString();
}

void ints(onnx::NodeProto* n, const std::string& name, const std::vector<int64_t>& values) {
  auto* a = n->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (const int64_t v : values) a->add_ints(v);
}

}  // namespace

TEST_CASE("an index that a run brings stays inside what it indexes", "[error]") {
  const Folder f("index");
  const std::vector<Indexed> cases = {
      {"Gather", {5, 3}, {1}, {"x", "i"}, {}},
      {"GatherElements", {5, 3}, {1, 1}, {"x", "i"}, {}},
      {"GatherND", {5, 3}, {1, 1}, {"x", "i"}, {}},
      {"ScatterND", {5, 3}, {1, 1}, {"x", "i", "u"}, {1, 3}},
      {"ScatterElements", {5, 3}, {1, 1}, {"x", "i", "u"}, {1, 1}},
  };
  for (const Indexed& c : cases) {
    f.write("m.onnx", model_of(c));
    f.write("x.pb", floats(c.x));
    must_succeed(f, "m.onnx -o m.dlca");
    for (const int64_t v : {int64_t{5}, int64_t{-6}, kHuge, kLeast}) {
      f.write("i.pb", number(c.i, v));
      for (const std::string device : {"cpu:", "interp:"})
        must_fail(f, "run m.dlca --device " + device + " --input x=x.pb --input i=i.pb", {"at"});
    }
    f.write("i.pb", number(c.i, -5));
    for (const std::string device : {"cpu:", "interp:"})
      must_succeed(f, "run m.dlca --device " + device + " --input x=x.pb --input i=i.pb");
  }
}

TEST_CASE("an axis that a run brings is one, of a list and for padding too", "[error]") {
  const Folder f("axis");
  for (const bool pads : {false, true}) {
    auto m = model();
    input(m, "x", pads ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{4});
    input(m, "i", {1}, onnx::TensorProto::INT64);
    auto* n = node(m, pads ? "Pad" : "CumSum", "at", {"x", "i"}, "y");
    if (pads) {
      auto* t = m.mutable_graph()->add_initializer();
      t->ParseFromString(number({1}, 1));
      t->set_name("p");
      t->set_dims(0, 2);
      t->add_int64_data(2);
      for (const std::string extra : {"", "i"}) n->add_input(extra);
      n->set_input(1, "p");
    }
    m.mutable_graph()->add_output()->set_name("y");
    f.write("m.onnx", m);
    f.write("x.pb", floats(pads ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{4}));
    must_succeed(f, "m.onnx -o m.dlca");
    for (const std::string device : {"cpu:", "interp:"}) {
      const std::string run = "run m.dlca --device " + device + " --input x=x.pb --input i=i.pb";
      for (const int64_t v : {int64_t{3}, int64_t{-5}, kHuge, kLeast}) {
        f.write("i.pb", number({1}, v));
        must_fail(f, run, {"at"});
      }
      f.write("i.pb", number({1}, -1));
      must_succeed(f, run);
    }
  }
}

TEST_CASE("a sequence has no more steps than there are", "[error]") {
  const Folder f("lengths");
  auto m = model();
  input(m, "x", {3, 1, 1});
  input(m, "i", {1}, onnx::TensorProto::INT32);
  weight(m, "w", {1, 4, 1});
  auto* n = node(m, "LSTM", "at", {"x", "w", "w", "", "i"}, "y");
  auto* hidden = n->add_attribute();
  hidden->set_name("hidden_size");
  hidden->set_type(onnx::AttributeProto::INT);
  hidden->set_i(1);
  m.mutable_graph()->add_output()->set_name("y");
  f.write("m.onnx", m);
  f.write("x.pb", floats({3, 1, 1}));
  must_succeed(f, "m.onnx -o m.dlca");
  const auto steps = [&](int32_t v) {
    onnx::TensorProto t;
    t.set_data_type(onnx::TensorProto::INT32);
    t.add_dims(1);
    t.add_int32_data(v);
    f.write("i.pb", t.SerializeAsString());
    return "run m.dlca --input x=x.pb --input i=i.pb --device ";
  };
  for (const std::string device : {"cpu:", "interp:"}) {
    for (const int32_t v : {-1, 4, 1 << 30}) must_fail(f, steps(v) + device, {"at"});
    for (const int32_t v : {0, 3}) must_succeed(f, steps(v) + device);
  }
}

TEST_CASE("a size that a run brings is one, and no more than there is memory", "[error]") {
  const Folder f("sizes");
  const std::vector<Indexed> cases = {
      {"Tile", {4}, {1}, {"x", "i"}, {}},
      {"Expand", {1}, {1}, {"x", "i"}, {}},
      {"ConstantOfShape", {1}, {1}, {"i"}, {}},
      {"TopK", {4}, {1}, {"x", "i"}, {}},
  };
  for (const Indexed& c : cases) {
    auto m = model_of(c);
    if (c.op == "TopK") m.mutable_graph()->mutable_node(0)->add_output("z");
    f.write("m.onnx", m);
    f.write("x.pb", floats(c.x));
    must_succeed(f, "m.onnx -o m.dlca");
    for (const int64_t v : {int64_t{-6}, kHuge, std::numeric_limits<int64_t>::max(), kLeast}) {
      f.write("i.pb", number(c.i, v));
      for (const std::string device : {"cpu:", "interp:"})
        must_fail(f, "run m.dlca --device " + device + " --input x=x.pb --input i=i.pb", {});
    }
  }
}

TEST_CASE("steps, strides and padding of a window are what a window can have", "[error]") {
  const Folder f("window");
  const struct {
    std::string attribute;
    std::vector<int64_t> values;
  } cases[] = {
      {"dilations", {0, 1}}, {"dilations", {-1, 1}},       {"dilations", {int64_t{1} << 62, 1}},
      {"strides", {0, 1}},   {"strides", {-1, 1}},         {"strides", {int64_t{1} << 62, 1}},
      {"pads", {0, 0}},      {"pads", {-9, 0, 0, 0}},      {"pads", {int64_t{1} << 62, 0, 0, 0}},
      {"kernel_shape", {3}}, {"kernel_shape", {kHuge, 3}},
  };
  for (const std::string op : {"Conv", "ConvTranspose", "MaxPool"})
    for (const auto& c : cases) {
      auto m = model();
      input(m, "x", {1, 2, 6, 6});
      const bool pool = op == "MaxPool";
      if (!pool) weight(m, "w", {2, 2, 3, 3});
      auto* n = node(m, op, "win", pool ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "w"}, "y");
      if (pool && c.attribute != "kernel_shape") ints(n, "kernel_shape", {3, 3});
      ints(n, c.attribute, c.values);
      m.mutable_graph()->add_output()->set_name("y");
      f.write("m.onnx", m);
      must_fail(f, "m.onnx -o m.dlca", {"(node win)"});
    }
}

TEST_CASE("a bias has an element for each channel, no more and no fewer", "[error]") {
  const Folder f("bias");
  for (const int64_t length : {0, 1, 3, 4096}) {
    auto m = model();
    input(m, "x", {1, 2, 6, 6});
    weight(m, "w", {2, 2, 3, 3});
    weight(m, "b", {length});
    node(m, "Conv", "biased", {"x", "w", "b"}, "y");
    m.mutable_graph()->add_output()->set_name("y");
    f.write("m.onnx", m);
    must_fail(f, "m.onnx -o m.dlca", {"(node biased)"});
  }
}

TEST_CASE("a name in a model is no path: nothing is written outside of the folder that was given", "[error]") {
  const Folder f("names");
  auto m = mlp();
  for (auto& n : *m.mutable_graph()->mutable_node()) n.set_name("../../../" + n.name());
  m.mutable_graph()->set_name("../../escaped");
  std::filesystem::create_directories(f / "sub/inner");
  f.write("sub/m.onnx", m);
  f.write("x.pb", floats({2, 8}));
  must_succeed(f, "sub/m.onnx -o sub/inner/m.dlca --dump sub/inner/dump");
  must_succeed(f, "run sub/m.onnx --device interp: --input x=x.pb");
  CHECK(f.files() == std::vector<std::string>{"sub", "x.pb"});
  int inside = 0;
  for (const auto& e : std::filesystem::directory_iterator(f / "sub")) inside += e.exists() ? 1 : 0;
  CHECK(inside == 2);  // the model, and the folder that was given
}

TEST_CASE("bodies in bodies are as deep as they may be, and no deeper", "[error]") {
  const Folder f("nested");
  const auto nested = [](int depth) {
    onnx::GraphProto body;
    auto* leaf = body.add_node();
    leaf->set_op_type("Relu");
    leaf->add_input("x");
    leaf->add_output("y");
    body.add_output()->set_name("y");
    body.set_name("leaf");
    for (int i = 0; i < depth; ++i) {
      onnx::GraphProto outer;
      outer.set_name("body");
      auto* n = outer.add_node();
      n->set_op_type("If");
      n->set_name("branch");
      n->add_input("c");
      n->add_output("y");
      for (const char* name : {"then_branch", "else_branch"}) {
        auto* a = n->add_attribute();
        a->set_name(name);
        a->set_type(onnx::AttributeProto::GRAPH);
        if (std::string(name) == "then_branch") {
          a->mutable_g()->Swap(&body);
          continue;
        }
        auto* other = a->mutable_g()->add_node();
        other->set_op_type("Neg");
        other->add_input("x");
        other->add_output("y");
        a->mutable_g()->add_output()->set_name("y");
      }
      outer.add_output()->set_name("y");
      body.Swap(&outer);
    }
    auto m = model();
    input(m, "x", {2});
    input(m, "c", {}, onnx::TensorProto::BOOL);
    *m.mutable_graph()->mutable_node() = body.node();
    output(m, "y", {2});
    return m;
  };
  f.write("m.onnx", nested(8));
  must_succeed(f, "m.onnx -o m.dlca");
  for (const int depth : {40, 500}) {
    std::string bytes;
    const auto m = nested(depth);
    if (!m.SerializeToString(&bytes)) continue;
    f.write("deep.onnx", bytes);
    must_fail(f, "deep.onnx -o deep.dlca", {"deep.onnx: error: "});
  }
}
