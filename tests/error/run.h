// Runs the `dlc` that was built, and makes the files it is run on.
#pragma once

#include <onnx/onnx.pb.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "dlc_test/catch.h"

namespace dlc::test {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return std::move(s).str();
}

// A new folder for each test: other runs of these tests have theirs.
class Folder {
 public:
  explicit Folder(const std::string& name) {
    std::string path = std::filesystem::temp_directory_path() / ("dlc_error_" + name + "_XXXXXX");
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~Folder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string write(const std::string& name, const onnx::ModelProto& m) const {
    return write(name, m.SerializeAsString());
  }
  // Names of all files, to see that nothing was left behind.
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& e : std::filesystem::directory_iterator(path_)) out.push_back(e.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::filesystem::path path_;
};

// `before` goes before the program: "ulimit -f 1;".
inline Outcome dlc(const Folder& f, const std::string& arguments, const std::string& before = "") {
  const Folder outside("out");
  const std::string out = outside / "out";
  const std::string command = "export HOME=/nonexistent; (" + before + " " DLC_BINARY_DIR "/bin/dlc " + arguments +
                              ") >" + out + " 2>" + out + ".err";
  const int status = std::system(("cd '" + (f / ".") + "' && " + command).c_str());
  Outcome o;
  o.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  o.out = read_file(out);
  o.err = read_file(out + ".err");
  return o;
}

// Exit code 1 and every part in the message; no file but those that were there.
inline void must_fail(const Folder& f, const std::string& arguments, const std::vector<std::string>& parts,
                      const std::string& before = "") {
  const auto files = f.files();
  const Outcome o = dlc(f, arguments, before);
  INFO("dlc " << arguments << "\n" << o.out << o.err);
  CHECK(o.code == 1);
  CHECK_THAT(o.err, Catch::Matchers::Contains("error: "));
  for (const std::string& part : parts) CHECK_THAT(o.err, Catch::Matchers::Contains(part));
  CHECK(f.files() == files);
}
// A wrong command line: exit code 2, and every part in the message.
inline void must_be_usage(const Folder& f, const std::string& arguments, const std::vector<std::string>& parts) {
  const auto files = f.files();
  const Outcome o = dlc(f, arguments);
  INFO("dlc " << arguments << "\n" << o.out << o.err);
  CHECK(o.code == 2);
  CHECK_THAT(o.err, Catch::Matchers::Contains("error: "));
  for (const std::string& part : parts) CHECK_THAT(o.err, Catch::Matchers::Contains(part));
  CHECK(f.files() == files);
}
inline Outcome must_succeed(const Folder& f, const std::string& arguments) {
  Outcome o = dlc(f, arguments);
  INFO("dlc " << arguments << "\n" << o.out << o.err);
  REQUIRE(o.code == 0);
  return o;
}

// ---- models

inline onnx::ModelProto model(int opset = 17) {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(opset);
  m.mutable_graph()->set_name("g");
  return m;
}
inline void input(onnx::ModelProto& m, const std::string& name, const std::vector<int64_t>& shape,
                  int type = onnx::TensorProto::FLOAT, bool is_output = false) {
  auto* v = is_output ? m.mutable_graph()->add_output() : m.mutable_graph()->add_input();
  v->set_name(name);
  auto* t = v->mutable_type()->mutable_tensor_type();
  t->set_elem_type(type);
  auto* dims = t->mutable_shape();  // no dims: a scalar
  for (const int64_t d : shape) dims->add_dim()->set_dim_value(d);
}
inline void output(onnx::ModelProto& m, const std::string& name, const std::vector<int64_t>& shape,
                   int type = onnx::TensorProto::FLOAT) {
  input(m, name, shape, type, true);
}
inline onnx::NodeProto* node(onnx::ModelProto& m, const std::string& op, const std::string& name,
                             const std::vector<std::string>& inputs, const std::string& result) {
  auto* n = m.mutable_graph()->add_node();
  n->set_op_type(op);
  n->set_name(name);
  for (const auto& i : inputs) n->add_input(i);
  n->add_output(result);
  return n;
}
// Float data: 0.25, 0.5, ...
inline onnx::TensorProto* weight(onnx::ModelProto& m, const std::string& name, const std::vector<int64_t>& shape) {
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(onnx::TensorProto::FLOAT);
  int64_t n = 1;
  for (const int64_t d : shape) {
    t->add_dims(d);
    n *= d;
  }
  for (int64_t i = 0; i < n; ++i) t->add_float_data(static_cast<float>(i % 7) * 0.25F);
  return t;
}

// y = relu(x * w + b): [2, 8] -> [2, 4]; with a symbol, the 2 is symbolic.
inline onnx::ModelProto mlp(const std::string& symbol = "") {
  auto m = model();
  input(m, "x", {2, 8});
  weight(m, "w", {8, 4});
  weight(m, "b", {4});
  node(m, "MatMul", "fc", {"x", "w"}, "h");
  node(m, "Add", "bias", {"h", "b"}, "s");
  node(m, "Relu", "act", {"s"}, "y");
  output(m, "y", {2, 4});
  if (!symbol.empty())
    for (auto* v : {m.mutable_graph()->mutable_input(0), m.mutable_graph()->mutable_output(0)})
      v->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(symbol);
  return m;
}

}  // namespace dlc::test
