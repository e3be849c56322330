// The importer on small models made here: what it accepts, and what it says about what it does not.
#include <onnx/onnx.pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dlc_test/catch.h"
#include "frontends/onnx/onnx.h"

using namespace dlc;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("dlc_onnx_test_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

onnx::ModelProto model(int opset = 17) {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(opset);
  m.mutable_graph()->set_name("test");
  return m;
}

void declare(onnx::ValueInfoProto* v, const std::string& name, std::vector<int64_t> shape,
             int type = onnx::TensorProto::FLOAT) {
  v->set_name(name);
  auto* t = v->mutable_type()->mutable_tensor_type();
  t->set_elem_type(type);
  auto* s = t->mutable_shape();
  for (const int64_t d : shape) {
    auto* dim = s->add_dim();
    if (d >= 0)
      dim->set_dim_value(d);
    else
      dim->set_dim_param("N");
  }
}

onnx::NodeProto* node(onnx::ModelProto& m, const std::string& op, std::vector<std::string> in,
                      std::vector<std::string> out, const std::string& name = {}) {
  auto* n = m.mutable_graph()->add_node();
  n->set_op_type(op);
  n->set_name(name);
  for (const auto& s : in) n->add_input(s);
  for (const auto& s : out) n->add_output(s);
  return n;
}

Result<Graph> import(const onnx::ModelProto& m, const std::string& folder = {}, const OnnxOptions& options = {}) {
  const std::string bytes = m.SerializeAsString();
  return import_onnx_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), "test.onnx", folder, options);
}

// y = Relu(x)
onnx::ModelProto relu_model(std::vector<int64_t> shape = {2, 3}) {
  auto m = model();
  declare(m.mutable_graph()->add_input(), "x", shape);
  node(m, "Relu", {"x"}, {"y"}, "r");
  m.mutable_graph()->add_output()->set_name("y");
  return m;
}

onnx::TensorProto* initializer(onnx::ModelProto& m, const std::string& name, std::vector<int64_t> dims,
                               std::vector<float> values) {
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t d : dims) t->add_dims(d);
  for (const float v : values) t->add_float_data(v);
  return t;
}

}  // namespace

TEST_CASE("a node becomes a record's node with the model's name") {
  REQUIRE_OK(auto g, import(relu_model()));
  REQUIRE(g.order().size() == 1);
  CHECK(g.node(g.order()[0]).op == "relu");
  CHECK(g.node(g.order()[0]).locations == std::vector<std::string>{"r"});
  CHECK(g.output_names == std::vector<std::string>{"y"});
}

TEST_CASE("symbolic dims become symbols with ranges, or what --dim says") {
  REQUIRE_OK(auto g, import(relu_model({-1, 3})));
  CHECK(to_string(g.value(g.inputs[0]).type) == "f32[N,3]");
  OnnxOptions bound;
  bound.dims["N"] = {4, 4};
  REQUIRE_OK(auto fixed, import(relu_model({-1, 3}), {}, bound));
  CHECK(to_string(fixed.value(fixed.inputs[0]).type) == "f32[4,3]");
}

TEST_CASE("a dim named like a word of the texts survives them") {
  for (const char* name : {"max", "in", "for", "sum", "f32", "a b", "-1", "\xc3\xa9"}) {
    auto m = relu_model({-1, 3});
    m.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param(name);
    REQUIRE_OK(auto g, import(m));
    REQUIRE_OK(auto again, parse_graph(print(g)));
    CHECK(print(again) == print(g));
    REQUIRE_OK(auto k, g.kernel(g.order()[0]));
    REQUIRE_OK(auto kernel, parse_kernel(print(k)));
    CHECK(print(kernel) == print(k));
  }
}

TEST_CASE("every unsupported node is reported at once, with its name and the nearest op") {
  auto m = relu_model();
  node(m, "Rellu", {"y"}, {"z"}, "first");
  node(m, "NoSuchOp", {"z"}, {"w"}, "second");
  auto g = import(m);
  REQUIRE_FALSE(g.has_value());
  REQUIRE(g.error().diagnostics.size() == 2);
  CHECK(g.error().diagnostics[0].loc.node == "first");
  CHECK(g.error().diagnostics[0].hint == "did you mean Relu?");
  CHECK(g.error().diagnostics[1].loc.node == "second");
}

TEST_CASE("an op of another domain is named with it") {
  auto m = relu_model();
  m.add_opset_import()->set_domain("com.example");
  node(m, "Thing", {"y"}, {"z"}, "t")->set_domain("com.example");
  REQUIRE_ERROR(import(m), "com.example.Thing");
}

TEST_CASE("opsets outside 7 to 22 are refused") {
  for (const int v : {6, 23, 1000}) {
    auto m = relu_model();
    m.mutable_opset_import(0)->set_version(v);
    REQUIRE_ERROR(import(m), "opset " + std::to_string(v));
  }
}

TEST_CASE("contradictions of the graph are errors that name the value") {
  auto m = relu_model();
  node(m, "Add", {"y", "missing"}, {"z"}, "a");
  REQUIRE_ERROR(import(m), "'missing' is used before it is made");
  auto twice = relu_model();
  node(twice, "Neg", {"x"}, {"y"}, "n");
  REQUIRE_ERROR(import(twice), "'y' is made twice");
  auto shapes = relu_model({2, 3});
  declare(shapes.mutable_graph()->add_input(), "b", {4, 5});
  node(shapes, "MatMul", {"x", "b"}, {"z"}, "mm");
  auto g = import(shapes);
  REQUIRE_FALSE(g.has_value());
  CHECK(g.error().diagnostics[0].loc.node == "mm");
}

TEST_CASE("attributes of the wrong type and out of range are errors") {
  auto m = relu_model();
  auto* n = node(m, "Softmax", {"y"}, {"z"}, "s");
  auto* a = n->add_attribute();
  a->set_name("axis");
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s("one");
  REQUIRE_ERROR(import(m), "attribute 'axis' is not an integer");
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(7);
  REQUIRE_ERROR(import(m), "axis 7 is out of range for rank 2");
}

TEST_CASE("tensors must hold what their shape says, and sizes that overflow are refused before anything is allocated") {
  auto m = relu_model();
  initializer(m, "w", {2, 2}, {1, 2, 3});
  REQUIRE_ERROR(import(m), "holds 3 elements");
  auto huge = relu_model();
  initializer(huge, "w", {int64_t{1} << 40, int64_t{1} << 40}, {});
  REQUIRE_ERROR(import(huge), "impossible size");
  auto negative = relu_model();
  initializer(negative, "w", {-2, 2}, {});
  REQUIRE_ERROR(import(negative), "impossible size");
  auto large = relu_model();
  initializer(large, "w", {int64_t{1} << 30}, {});
  REQUIRE_ERROR(import(large), "holds 0 elements");
}

TEST_CASE("damaged bytes are an error, never a crash") {
  const std::string good = relu_model().SerializeAsString();
  for (size_t n = 0; n < good.size(); ++n)
    (void)import_onnx_bytes(std::as_bytes(std::span(good.data(), n)), "cut.onnx");
  std::string noise(4096, '\0');
  uint32_t seed = 1;
  for (char& c : noise) c = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
  REQUIRE_ERROR(import_onnx_bytes(std::as_bytes(std::span(noise.data(), noise.size())), "noise.onnx"),
                "is not an ONNX model");
}

TEST_CASE("external data is read from the model's folder and nowhere else") {
  Folder folder;
  std::ofstream(folder / "w.bin", std::ios::binary) << std::string(16, '\0');
  fs::create_directories(folder.path / "sub");
  std::ofstream(folder / "sub/w.bin", std::ios::binary) << std::string(16, '\0');
  std::ofstream(folder / "short.bin", std::ios::binary) << std::string(8, '\0');
  fs::create_symlink("w.bin", folder.path / "link.bin");
  fs::create_directory_symlink("sub", folder.path / "linked");
  fs::create_hard_link(folder.path / "short.bin", folder.path / "hard.bin");
  ::mkfifo((folder / "pipe").c_str(), 0600);

  const auto load = [&](const std::string& location) {
    auto m = relu_model();
    auto* t = m.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(onnx::TensorProto::FLOAT);
    t->add_dims(4);
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* e = t->add_external_data();
    e->set_key("location");
    e->set_value(location);
    return import(m, folder.path.string());
  };
  CHECK(load("w.bin").has_value());
  CHECK(load("sub/w.bin").has_value());
  CHECK(load("./w.bin").has_value());
  REQUIRE_ERROR(load("../w.bin"), "leaves the folder");
  REQUIRE_ERROR(load("sub/../../w.bin"), "leaves the folder");
  REQUIRE_ERROR(load("/etc/passwd"), "absolute");
  REQUIRE_ERROR(load("link.bin"), "symbolic link");
  REQUIRE_ERROR(load("linked/w.bin"), "symbolic link");
  REQUIRE_ERROR(load("hard.bin"), "hard link");
  REQUIRE_ERROR(load("pipe"), "not a regular file");
  REQUIRE_ERROR(load("none.bin"), "cannot open");
  REQUIRE_ERROR(load(""), "empty");
  fs::remove(folder.path / "hard.bin");
  REQUIRE_ERROR(load("short.bin"), "8 bytes");
}

TEST_CASE("shape arithmetic over symbolic dims is known at import") {
  // Reshape(x, Concat(Shape(x)[0:1], [-1]))
  auto m = model(13);
  declare(m.mutable_graph()->add_input(), "x", {-1, 3, 4});
  const auto ints = [&](const std::string& name, std::vector<int64_t> v) {
    auto* t = m.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::INT64);
    t->add_dims(static_cast<int64_t>(v.size()));
    for (const int64_t i : v) t->add_int64_data(i);
  };
  ints("zero", {0});
  ints("one", {1});
  ints("minus", {-1});
  node(m, "Shape", {"x"}, {"shape"});
  node(m, "Slice", {"shape", "zero", "one"}, {"first"});
  auto* c = node(m, "Concat", {"first", "minus"}, {"target"});
  auto* a = c->add_attribute();
  a->set_name("axis");
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(0);
  node(m, "Reshape", {"x", "target"}, {"y"});
  m.mutable_graph()->add_output()->set_name("y");
  REQUIRE_OK(auto g, import(m));
  CHECK(to_string(g.value(g.outputs[0]).type) == "f32[N,12]");
}
