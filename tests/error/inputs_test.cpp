// Arrays that `run` is given, in every form that numpy writes.
#include <fmt/format.h>

#include "dlc/io/numpy.h"
#include "tests/error/run.h"

using namespace dlc;
using namespace dlc::test;

namespace {

std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                const std::string& fortran = "False") {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
  header.append(128 - 10 - 1 - header.size(), ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

// One Relu of this type and shape.
onnx::ModelProto relu(const std::vector<int64_t>& shape, int type = onnx::TensorProto::FLOAT,
                      const std::string& op = "Relu") {
  auto m = model();
  input(m, "x", shape, type);
  node(m, op, "act", {"x"}, "y");
  output(m, "y", shape, type);
  return m;
}

std::string floats(const std::vector<float>& values, bool big = false) {
  std::string s;
  for (const float v : values) {
    std::string b(reinterpret_cast<const char*>(&v), 4);
    if (big) std::reverse(b.begin(), b.end());
    s += b;
  }
  return s;
}

}  // namespace

TEST_CASE("arrays in other orders", "[error]") {
  const Folder f("orders");
  f.write("m.onnx", relu({2, 3}));
  f.write("c.npy", npy("<f4", "(2, 3)", floats({1, 2, 3, 4, 5, 6})));
  f.write("fortran.npy", npy("<f4", "(2, 3)", floats({1, 4, 2, 5, 3, 6}), "True"));
  f.write("big.npy", npy(">f4", "(2, 3)", floats({1, 2, 3, 4, 5, 6}, true)));
  for (const char* file : {"c", "fortran", "big"}) {
    must_succeed(f, fmt::format("run m.onnx --input {}.npy --output y.npz", file));
    REQUIRE_OK(const NamedTensors y, read_tensors(f / "y.npz"));
    for (int64_t i = 0; i < 6; ++i) CHECK(y[0].second.get_double(i) == static_cast<double>(i + 1));
  }
}

TEST_CASE("arrays without dims, without elements, of other types", "[error]") {
  const Folder f("kinds");
  f.write("scalar.onnx", relu({}));
  f.write("scalar.npy", npy("<f4", "()", floats({-3})));
  must_succeed(f, "run scalar.onnx --input x=scalar.npy --output y.npy");
  f.write("bool.onnx", relu({3}, onnx::TensorProto::BOOL, "Not"));
  f.write("bool.npy", npy("|b1", "(3,)", std::string("\1\0\1", 3)));
  CHECK_THAT(must_succeed(f, "run bool.onnx --input bool.npy").out, Catch::Matchers::Contains("y: bool[3] = 0 1 0"));
  f.write("half.onnx", relu({2}, onnx::TensorProto::FLOAT16));
  f.write("half.npy", npy("<f2", "(2,)", std::string("\x00\x3c\x00\xbc", 4)));
  CHECK_THAT(must_succeed(f, "run half.onnx --input half.npy").out, Catch::Matchers::Contains("y: f16[2] = 1 0"));
  f.write("m.onnx", relu({2}));
  f.write("empty.npy", npy("<f4", "(0,)", ""));
  must_fail(f, "run m.onnx --input empty.npy", {"input 'x' is f32[0], the model takes f32[2]"});
  must_fail(f, "run m.onnx --input scalar.npy", {"input 'x' is f32[], the model takes f32[2]"});
  must_fail(f, "run m.onnx --input half.npy",
            {"input 'x' is f16[2], the model takes f32[2]", "next: convert it to f32"});
  f.write("one.onnx", relu({1, 2}));
  f.write("three.npy", npy("<f4", "(3, 2)", floats({1, -2, 3, -4, 5, -6})));
  must_fail(f, "run one.onnx --input three.npy",
            {"input 'x' is f32[3,2], the model takes f32[1,2]",
             "next: dlc run --each runs the model once for each of the 3"});
  CHECK_THAT(must_succeed(f, "run one.onnx --each --input three.npy").out, Catch::Matchers::Contains("1 0 3 0 5 0"));
}

TEST_CASE("arrays of types that numpy has not", "[error]") {
  const Folder f("small");
  constexpr int kE4M3FN = 17, kInt4 = 22;  // the standard's numbers
  f.write("f8.onnx", relu({2}, kE4M3FN, "Identity"));
  f.write("s4.onnx", relu({2}, kInt4, "Identity"));
  f.write("bits.npy", npy("|u1", "(2,)", "\x38\xbc"));
  f.write("ml_dtypes.npy", npy("<V1", "(2,)", "\x0e\x07"));
  f.write("values.npy", npy("|i1", "(2,)", "\xfe\x07"));
  f.write("float.npy", npy("<f4", "(2,)", floats({1, -1.5})));
  CHECK_THAT(must_succeed(f, "run f8.onnx --input bits.npy --output y.npy").out,
             Catch::Matchers::Contains("y: f8e4m3fn[2] = 1 -1.5"));
  REQUIRE_OK(const NamedTensors y, read_tensors(f / "y.npy"));
  CHECK(y[0].second.dtype() == kU8);
  CHECK(y[0].second.get_int(1) == 0xbc);
  for (const char* file : {"ml_dtypes", "values"})
    CHECK_THAT(must_succeed(f, fmt::format("run s4.onnx --input {}.npy", file)).out,
               Catch::Matchers::Contains("y: s4[2] = -2 7"));
  must_fail(f, "run f8.onnx --input float.npy",
            {"input 'x' is f32[2], the model takes f8e4m3fn[2]", "next: give its bits as u8"});
  f.write("nine.npy", npy("|i1", "(2,)", std::string("\x01\x09", 2)));
  must_fail(f, "run s4.onnx --input nine.npy", {"element 1 of input 'x' is 9, which is no s4"});
  must_fail(f, "run s4.onnx --input bits.npy",
            {"input 'x' is u8[2], the model takes s4[2]", "next: give its values as s8"});
}

TEST_CASE("arrays that are refused", "[error]") {
  const Folder f("refused");
  f.write("m.onnx", relu({2}));
  const auto refused = [&](const std::string& bytes, const std::vector<std::string>& parts) {
    f.write("x.npy", bytes);
    must_fail(f, "run m.onnx --input x.npy --output y.npz", parts);
  };
  refused(npy("|O", "(2,)", "12345678"), {"x.npy: error: element type '|O' is not supported"});
  refused(npy("<c8", "(2,)", std::string(16, '\0')), {"'<c8' is not supported"});
  refused(npy("<U1", "(2,)", std::string(8, '\0')), {"x.npy: error: "});
  refused(npy("<f4", "(2,)", "1234"), {"f32[2] does not fit the 4 bytes of data"});
  refused(npy("<f4", "(-2,)", floats({1, 2})), {"header is not understood"});
  refused(npy("<f4", "(4611686018427387904, 4)", floats({1, 2})), {"x.npy: error: "});
  refused("", {"is not a .npy array"});
}

TEST_CASE("inputs that are missing, too many, or not files", "[error]") {
  const Folder f("files");
  auto m = model();
  input(m, "a", {2});
  input(m, "b", {2});
  node(m, "Add", "sum", {"a", "b"}, "y");
  output(m, "y", {2});
  f.write("m.onnx", m);
  f.write("v.npy", npy("<f4", "(2,)", floats({1, 2})));
  must_succeed(f, "run m.onnx --input a=v.npy --input b=v.npy");
  must_fail(f, "run m.onnx --input a=v.npy", {"input 'b' is missing", "given were a"});
  must_fail(f, "run m.onnx --input v.npy", {"input 'a' is missing"});
  must_fail(f, "run m.onnx --input a=v.npy --input b=v.npy --input c=v.npy", {"the model has no input 'c'"});
  must_fail(f, "run m.onnx --input a=.", {"error: "});
  must_fail(f, "run m.onnx --input a=v.txt", {"v.txt: error: "});
  std::filesystem::create_directories(f / "folder.npz");
  must_fail(f, "run m.onnx --input folder.npz", {"folder.npz: error: is not a regular file"});
  f.write("cut.pb", "\x08\x01\x12");
  must_fail(f, "run m.onnx --input a=cut.pb --input b=v.npy", {"cut.pb: error: "});
}

TEST_CASE("an archive that is cut", "[error]") {
  const Folder f("cut_npz");
  f.write("m.onnx", relu({2, 8}));
  REQUIRE_OK(const Tensor t, Tensor::make(kF32, {2, 8}));
  REQUIRE(write_tensors(f / "x.npz", {{"x", t}}).has_value());
  must_succeed(f, "run m.onnx --input x.npz");
  const std::string whole = read_file(f / "x.npz");
  for (size_t part = 0; part < 6; ++part) {
    f.write("x.npz", std::string_view(whole).substr(0, whole.size() * part / 6));
    must_fail(f, "run m.onnx --input x.npz --output y.npz", {"x.npz: error: "});
  }
}
