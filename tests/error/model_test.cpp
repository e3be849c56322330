// Bad models.
#include <random>

#include "tests/error/run.h"

using namespace dlc::test;

TEST_CASE("a model cut anywhere is refused", "[error]") {
  const Folder f("cut");
  const std::string whole = mlp().SerializeAsString();
  for (size_t part = 0; part < 8; ++part) {
    f.write("m.onnx", std::string_view(whole).substr(0, whole.size() * part / 8));
    must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: "});
  }
  f.write("m.onnx", whole);
  must_succeed(f, "m.onnx -o m.dlca");
}

TEST_CASE("random bytes are refused", "[error]") {
  const Folder f("random");
  std::mt19937 random(3);
  for (int i = 0; i < 10; ++i) {
    std::string bytes(static_cast<size_t>(1) << i, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    f.write("m.onnx", bytes);
    must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: "});
  }
  // Bytes changed in a good model: refused or not, never a crash.
  const std::string whole = mlp().SerializeAsString();
  for (int i = 0; i < 20; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    f.write("m.onnx", bytes);
    const Outcome o = dlc::test::dlc(f, "m.onnx --emit=graph");
    INFO(o.err);
    CHECK((o.code == 0 || o.code == 1));
  }
}

TEST_CASE("a missing model", "[error]") {
  const Folder f("missing");
  must_fail(f, "none.onnx -o m.dlca", {"none.onnx: error: cannot open: No such file or directory"});
  must_fail(f, ". -o m.dlca", {"is not a regular file"});
}

TEST_CASE("weights beside a model that has its own", "[error]") {
  const Folder f("weights");
  f.write("m.onnx", mlp());
  must_fail(f, "--weights none.npz m.onnx -o m.dlca", {"m.onnx: error: --weights is for graph and program text"});
}

TEST_CASE("all unknown ops are named at once", "[error]") {
  const Folder f("ops");
  auto m = model();
  input(m, "x", {2, 8});
  node(m, "Reluu", "first", {"x"}, "a");
  node(m, "Frobnicate", "second", {"a"}, "y");
  output(m, "y", {2, 8});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca",
            {"op Reluu is not supported (node first)", "next: did you mean Relu?",
             "op Frobnicate is not supported (node second)"});
}

TEST_CASE("unknown opsets and dtypes", "[error]") {
  const Folder f("opset");
  auto m = mlp();
  m.mutable_opset_import(0)->set_version(99);
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"opset 99 is not supported", "next: convert the model to an opset from 7 to 27"});

  m = model();
  input(m, "x", {2, 8}, onnx::TensorProto::COMPLEX64);
  node(m, "Relu", "act", {"x"}, "y");
  output(m, "y", {2, 8});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"(node x)"});
}

TEST_CASE("shapes that contradict each other", "[error]") {
  const Folder f("shapes");
  auto m = model();
  input(m, "x", {2, 7});
  weight(m, "w", {8, 4});
  node(m, "MatMul", "fc", {"x", "w"}, "y");
  output(m, "y", {2, 4});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: ", "(node fc)"});
}

TEST_CASE("dims that overflow", "[error]") {
  const Folder f("overflow");
  auto m = model();
  const int64_t huge = int64_t{1} << 40;
  input(m, "x", {huge, huge, huge});
  node(m, "Relu", "act", {"x"}, "y");
  output(m, "y", {huge, huge, huge});
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"overflow", "(node act)"});

  m = mlp();
  m.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t{1} << 62);
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: "});
}

TEST_CASE("external data stays in the model's folder", "[error]") {
  const Folder f("external");
  const Folder outside("outside");
  outside.write("secret.bin", std::string(128, 'x'));
  const auto with_location = [&](const std::string& location) {
    auto m = model();
    input(m, "x", {2, 8});
    auto* w = m.mutable_graph()->add_initializer();
    w->set_name("w");
    w->set_data_type(onnx::TensorProto::FLOAT);
    w->add_dims(8);
    w->add_dims(4);
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* e = w->add_external_data();
    e->set_key("location");
    e->set_value(location);
    node(m, "MatMul", "fc", {"x", "w"}, "y");
    output(m, "y", {2, 4});
    f.write("m.onnx", m);
  };
  const std::string up = "../" + std::filesystem::path(outside / "").parent_path().filename().string() + "/secret.bin";
  with_location(up);
  must_fail(f, "m.onnx -o m.dlca", {"external data '" + up + "' is refused"});
  with_location(outside / "secret.bin");
  must_fail(f, "m.onnx -o m.dlca", {"is refused"});
  std::filesystem::create_symlink(outside / "secret.bin", f / "link.bin");
  with_location("link.bin");
  must_fail(f, "m.onnx -o m.dlca", {"m.onnx: error: ", "link.bin"});
  with_location("none.bin");
  must_fail(f, "m.onnx -o m.dlca", {"cannot open external data 'none.bin'"});
  f.write("good.bin", std::string(128, '\0'));
  with_location("good.bin");
  must_succeed(f, "m.onnx -o m.dlca");
}
