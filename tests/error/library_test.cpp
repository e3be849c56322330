// Libraries whose weights are too large to be inside lie in three files, which are written while the model is compiled:
// whatever happens, each of them is the old one or the new one.
#include <fmt/format.h>

#include "tests/error/run.h"

using namespace dlc::test;

namespace {

// y = x * w of 70 MB. Each value of `fill` is another model of the same shapes.
onnx::ModelProto large(char fill) {
  constexpr int64_t kSize = 4200;
  auto m = model();
  input(m, "x", {1, kSize});
  auto* w = m.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(kSize);
  w->add_dims(kSize);
  w->set_raw_data(std::string(kSize * kSize * sizeof(float), fill));
  node(m, "MatMul", "fc", {"x", "w"}, "y");
  output(m, "y", {1, kSize});
  return m;
}

const std::vector<std::string> kFiles = {"m.h", "m.so", "m.weights"};

std::vector<std::string> contents(const Folder& f) {
  std::vector<std::string> all;
  for (const std::string& name : kFiles) all.push_back(read_file(f / name));
  return all;
}

}  // namespace

TEST_CASE("a disk that fills up while a library's weights are written", "[error]") {
  const Folder f("full_library");
  f.write("a.onnx", large(1));
  f.write("b.onnx", large(2));
  // Before there are any, and over those that there are.
  must_fail(f, "b.onnx -o m.so", {"m.weights: error: cannot write: File too large"}, "ulimit -f 8;");
  must_succeed(f, "a.onnx -o m.so");
  const auto old = contents(f);
  CHECK(old[2].size() > size_t{4200} * 4200 * 4);
  for (const char* limit : {"ulimit -f 8;", "ulimit -f 60000;"})
    must_fail(f, "b.onnx -o m.so", {"m.weights: error: cannot write: File too large"}, limit);
  CHECK((contents(f) == old));
}

TEST_CASE("a library's weights that cannot be written are said before the work", "[error]") {
  const Folder f("weights_folder");
  f.write("broken.onnx", "no model");
  std::filesystem::create_directories(f / "m.weights");
  must_fail(f, "broken.onnx -o m.so", {"m.weights: error: cannot write: is a folder"});
}

TEST_CASE("a library that is killed while it is written", "[error]") {
  const Folder f("killed_library");
  f.write("a.onnx", large(1));
  f.write("b.onnx", large(2));
  must_succeed(f, "b.onnx -o m.so");
  const auto next = contents(f);
  must_succeed(f, "a.onnx -o m.so");
  const auto old = contents(f);
  REQUIRE((old[2] != next[2]));
  for (int i = 1; i <= 8; ++i) {
    dlc::test::dlc(f, "b.onnx -o m.so", fmt::format("timeout -s KILL 0.{:03}", 60 * i));
    const auto now = contents(f);
    for (size_t k = 0; k < now.size(); ++k) {
      INFO(kFiles[k] << " after " << 60 * i << " ms");
      CHECK((now[k] == old[k] || now[k] == next[k]));
    }
    CHECK(f.files().size() <= 2 + 2 * kFiles.size());
  }
  must_succeed(f, "b.onnx -o m.so");  // takes what was left
  CHECK((contents(f) == next));
  CHECK(f.files() == std::vector<std::string>{"a.onnx", "b.onnx", "m.h", "m.so", "m.weights"});
}
