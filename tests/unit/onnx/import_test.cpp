// The importer on small models made here: what it accepts, and what it says about what it does not.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dlc/passes/pass.h"
#include "frontends/onnx/raw_data.h"
#include "models.h"

using namespace dlc;
using namespace dlc_test;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("dlc_onnx_test_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

// y = Relu(x)
onnx::ModelProto relu_model(std::vector<int64_t> shape = {2, 3}) {
  auto m = model();
  declare(m.mutable_graph()->add_input(), "x", shape);
  node(m, "Relu", {"x"}, {"y"}, "r");
  m.mutable_graph()->add_output()->set_name("y");
  return m;
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

TEST_CASE("opsets that are not known are refused") {
  for (const int v : {0, 28, 1000}) {
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

namespace {

// A tensor of the given bytes.
void fill(onnx::TensorProto* t, const std::string& bytes) {
  t->set_data_type(onnx::TensorProto::UINT8);
  t->add_dims(static_cast<int64_t>(bytes.size()));
  t->set_raw_data(bytes);
}

std::span<const std::byte> as_span(const std::string& s) { return std::as_bytes(std::span(s)); }

}  // namespace

TEST_CASE("raw data stays in the file, wherever in the model its tensor is") {
  onnx::ModelProto m = relu_model();
  auto* g = m.mutable_graph();
  fill(g->add_initializer(), "initializer");
  fill(g->add_initializer(), "");
  fill(g->add_sparse_initializer()->mutable_values(), "sparse values");
  fill(g->mutable_sparse_initializer(0)->mutable_indices(), "sparse indices");
  fill(g->mutable_node(0)->add_attribute()->mutable_t(), "attribute");
  auto* a = g->mutable_node(0)->add_attribute();
  fill(a->add_tensors(), std::string(200, 'x'));  // a length of two bytes
  fill(a->mutable_g()->add_initializer(), "subgraph");
  fill(a->add_graphs()->add_node()->add_attribute()->mutable_t(), "a node of subgraphs");
  fill(a->mutable_sparse_tensor()->mutable_values(), "sparse attribute");
  fill(a->add_sparse_tensors()->mutable_values(), "sparse attributes");
  fill(m.add_functions()->add_node()->add_attribute()->mutable_t(), "function");
  fill(m.add_training_info()->mutable_initialization()->add_initializer(), "training");
  fill(m.mutable_training_info(0)->mutable_algorithm()->add_initializer(), "algorithm");
  const std::string bytes = m.SerializeAsString();
  const auto changed = onnx_frontend::without_raw_data(as_span(bytes), 64);
  REQUIRE(changed);
  for (const char* data : {"initializer", "sparse values", "attribute", "subgraph", "function", "training"})
    CHECK(changed->find(data) == std::string::npos);

  // With the data put back the model is what it was.
  onnx::ModelProto n;
  REQUIRE(n.ParseFromString(*changed));
  const auto restore = [&](onnx::TensorProto* t) {
    const auto data = onnx_frontend::raw_data_at(t->raw_data(), as_span(bytes));
    REQUIRE(data);
    t->set_raw_data(std::string(reinterpret_cast<const char*>(data->data()), data->size()));
  };
  g = n.mutable_graph();
  a = g->mutable_node(0)->mutable_attribute(1);
  for (onnx::TensorProto* t :
       {g->mutable_initializer(0), g->mutable_initializer(1), g->mutable_sparse_initializer(0)->mutable_values(),
        g->mutable_sparse_initializer(0)->mutable_indices(), g->mutable_node(0)->mutable_attribute(0)->mutable_t(),
        a->mutable_tensors(0), a->mutable_g()->mutable_initializer(0),
        a->mutable_graphs(0)->mutable_node(0)->mutable_attribute(0)->mutable_t(),
        a->mutable_sparse_tensor()->mutable_values(), a->mutable_sparse_tensors(0)->mutable_values(),
        n.mutable_functions(0)->mutable_node(0)->mutable_attribute(0)->mutable_t(),
        n.mutable_training_info(0)->mutable_initialization()->mutable_initializer(0),
        n.mutable_training_info(0)->mutable_algorithm()->mutable_initializer(0)})
    restore(t);
  CHECK(n.SerializeAsString() == bytes);
}

TEST_CASE("a model cut anywhere is refused or parsed as protobuf does") {
  onnx::ModelProto m = relu_model();
  fill(m.mutable_graph()->add_initializer(), "a weight");
  fill(m.mutable_graph()->mutable_node(0)->add_attribute()->mutable_t(), "an attribute");
  const std::string bytes = m.SerializeAsString();
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::string cut = bytes.substr(0, n);
    onnx::ModelProto whole;
    const bool good = whole.ParseFromString(cut);
    CHECK(onnx_frontend::without_raw_data(as_span(cut), 64).has_value() == good);
    const auto g = import_onnx_bytes(as_span(cut), "cut.onnx");
    REQUIRE_FALSE(g);
    if (!good)
      CHECK(to_string(g.error()) == "cut.onnx: error: is not an ONNX model, or is damaged or nested too deeply");
  }
  // Lengths that lie: past the end, past the message around, longer than a varint may be, groups.
  const std::string g = "\x3a", tensor = "\x2a", raw = "\x4a";
  using namespace std::string_literals;
  for (const std::string& bad :
       {g + "\x7f"s, g + "\x04" + tensor + "\x03" + raw + "\x01", g + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        g + std::string(11, '\xff') + "\x01", g + "\x02" + tensor + "\x7f", "\x0b\x0c"s, "\x3b"s, "\x3e\x00"s}) {
    CHECK_FALSE(onnx_frontend::without_raw_data(as_span(bad), 64).has_value());
    CHECK_FALSE(import_onnx_bytes(as_span(bad), "bad.onnx").has_value());
  }
  // Places that are none.
  CHECK_FALSE(onnx_frontend::raw_data_at("short", as_span(bytes)).has_value());
  CHECK_FALSE(onnx_frontend::raw_data_at(std::string(16, '\xff'), as_span(bytes)).has_value());
  CHECK_FALSE(
      onnx_frontend::raw_data_at("\x01"s + std::string(7, '\0') + std::string(8, '\xff'), as_span(bytes)).has_value());
}

TEST_CASE("tensors view the mapped file, and outlive it") {
  Folder folder;
  onnx::ModelProto m = model();
  declare(m.mutable_graph()->add_input(), "x", {2});
  auto* w = m.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(2);
  const float values[] = {1.5F, -2};
  w->set_raw_data(std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  node(m, "Add", {"x", "w"}, {"y"});
  m.mutable_graph()->add_output()->set_name("y");
  for (int shift = 0; shift < 4; ++shift) {  // at any alignment
    m.mutable_graph()->set_doc_string(std::string(static_cast<size_t>(shift), ' '));
    m.set_producer_name(std::string(static_cast<size_t>(shift), 'p'));
    std::ofstream(folder / "m.onnx", std::ios::binary) << m.SerializeAsString();
    const auto g = import_onnx(folder / "m.onnx");
    REQUIRE(g);
    fs::remove(folder / "m.onnx");
    const auto& add = g->node(g->value(g->outputs[0]).producer);
    const Tensor& t = *g->value(add.inputs[1]).constant;
    CHECK(t.get_double(0) == 1.5);
    CHECK(t.get_double(1) == -2);
  }
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

TEST_CASE("dims called ? are not of one size") {
  auto m = relu_model({-1, -1});
  for (int i = 0; i < 2; ++i)
    m.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(i)
        ->set_dim_param("?");
  REQUIRE_OK(auto g, import(m));
  CHECK(g.symbols.size() == 2);
}

TEST_CASE("names of dims and values of any kind survive the graph's text") {
  const std::vector<std::string> names = {"",    "-1", "a b", "a-b", "a_b",    "höhe",
                                          "max", "in", "for", "0",   "select", "N"};
  auto m = model();
  const auto value = [](const std::string& dim) { return "x \"" + dim + "\"\n\\%@#é"; };
  for (const auto& dim : names) {
    declare(m.mutable_graph()->add_input(), value(dim), {-1, 2});
    m.mutable_graph()
        ->mutable_input(m.graph().input_size() - 1)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param(dim);
    node(m, "Relu", {value(dim)}, {"y" + value(dim)}, "node" + value(dim));
    m.mutable_graph()->add_output()->set_name("y" + value(dim));
  }
  REQUIRE_OK(auto g, import(m));
  CHECK(g.symbols.size() == names.size());  // none was taken for another
  const std::string text = print(g);
  REQUIRE_OK(auto again, parse_graph(text));
  CHECK(print(again) == text);
}

TEST_CASE("a chain of ten thousand nodes is imported, optimised and run") {
  auto m = model();
  declare(m.mutable_graph()->add_input(), "v0", {2});
  constexpr int kNodes = 10000;
  for (int i = 0; i < kNodes; ++i)
    node(m, i % 2 == 0 ? "Neg" : "Identity", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  m.mutable_graph()->add_output()->set_name("v" + std::to_string(kNodes));
  REQUIRE_OK(auto g, import(m));
  REQUIRE_OK(auto timings, run_passes(g, default_graph_pipeline()));
  REQUIRE_OK(Tensor x, Tensor::from<float>(kF32, {2}, std::vector<float>{1, -2}));
  const Tensor inputs[] = {x};
  REQUIRE_OK(auto y, run_graph(g, inputs));
  CHECK(elements(y[0]) == std::vector<double>{1, -2});
}

TEST_CASE("a model that unfolds to terabytes costs no memory at compile time") {
  auto m = model();
  declare(m.mutable_graph()->add_input(), "x", {1});
  integers(m, "shape", {2}, {1 << 20, 1 << 20});
  integers(m, "twice", {2}, {1024, 1024});
  initializer(m, "one", {}, {1});
  node(m, "Expand", {"one", "shape"}, {"wide"});
  node(m, "Tile", {"wide", "twice"}, {"wider"});
  node(m, "ReduceSum", {"wider"}, {"sum"});
  node(m, "Add", {"sum", "x"}, {"y"});
  m.mutable_graph()->add_output()->set_name("y");
  REQUIRE_OK(auto g, import(m));
  REQUIRE_OK(auto timings, run_passes(g, default_graph_pipeline()));
  REQUIRE_OK(Tensor x, Tensor::make(kF32, {1}));
  const Tensor inputs[] = {x};
  CHECK_FALSE(run_graph(g, inputs).has_value());
}

TEST_CASE("nodes that use each other's results are an error") {
  auto m = model();
  declare(m.mutable_graph()->add_input(), "x", {2});
  node(m, "Add", {"x", "b"}, {"a"});
  node(m, "Neg", {"a"}, {"b"});
  m.mutable_graph()->add_output()->set_name("b");
  REQUIRE_ERROR(import(m), "'b' is used before it is made");
}
