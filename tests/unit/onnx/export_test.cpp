// Graphs as ONNX and back: the same function under the same names.
#include "dlc_test/graph_text.h"
#include "frontends/onnx/export_onnx.h"
#include "frontends/onnx/onnx.h"

using namespace dlc;
using dlc_test::elements;
using dlc_test::noise;
using dlc_test::parsed;

namespace {

Graph round_trip(const Graph& g) {
  REQUIRE_OK(const auto bytes, export_onnx(g));
  REQUIRE_OK(Graph back, import_onnx_bytes(bytes, "test.onnx"));
  REQUIRE(back.output_names == g.output_names);
  REQUIRE(back.inputs.size() == g.inputs.size());
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    CHECK(back.value(back.inputs[i]).name == g.value(g.inputs[i]).name);
    CHECK(back.value(back.inputs[i]).type == g.value(g.inputs[i]).type);
  }
  return back;
}

void check_same(const std::string& body, const std::vector<int64_t>& shape, const std::string& symbols = "") {
  INFO(body);
  const Graph g = parsed(body, symbols);
  const Graph back = round_trip(g);
  const Tensor x = noise(shape, 5);
  const std::vector<Tensor> in(g.inputs.size(), x);
  REQUIRE_OK(const auto want, run_graph(g, in));
  REQUIRE_OK(const auto got, run_graph(back, in));
  for (size_t i = 0; i < want.size(); ++i) {
    CHECK(want[i].shape() == got[i].shape());
    CHECK(elements(want[i]) == elements(got[i]));
  }
}

}  // namespace

TEST_CASE("ops are written and read again") {
  const std::string in = "in %x: f32[1,4,6,6]\n";
  for (const std::string op : {
           "f32[1,4,6,6] = relu(%x)",
           "f32[1,4,6,6] = hard_sigmoid(%x) {alpha = 0.25, beta = 0.5}",
           "f32[1,4,6,6] = leaky_relu(%x) {alpha = 0.125}",
           "f32[1,4,6,6] = hard_swish(%x)",
           "f32[1,4,6,6] = swish(%x)",
           "f32[1,4,6,6] = mul(%x, %x)",
           "f32[1,4,5,3] = max_pool(%x) {kernel = [2, 2], stride = [1, 2], pad_lo = [0, 0], pad_hi = [0, 0]}",
           "f32[1,4,3,3] = max_pool(%x) {kernel = [3, 3], stride = [2, 2], pad_lo = [1, 1], pad_hi = [0, 0]}",
           "f32[1,4,4,4] = avg_pool(%x) {kernel = [2, 2], stride = [2, 2], pad_lo = [1, 1], pad_hi = [1, 1], "
           "count_include_pad = 1}",
           "f32[1,4,4,4] = avg_pool(%x) {kernel = [2, 2], stride = [2, 2], pad_lo = [1, 1], pad_hi = [1, 1]}",
           "f32[1,4,1,1] = reduce_mean(%x) {axes = [2, 3], keepdims = 1}",
           "f32[1,4] = reduce_sum(%x) {axes = [2, 3]}",
           "f32[4,36] = reshape(%x) {shape = [4, 36]}",
           "f32[1,6,6,4] = transpose(%x) {perm = [0, 2, 3, 1]}",
           "f32[1,2,3,6] = slice(%x) {start = [0, 1, 0, 0], stop = [1, 3, 6, 6], step = [1, 1, 2, 1]}",
           "f32[1,4,7,8] = pad(%x) {lo = [0, 0, 0, 1], hi = [0, 0, 1, 1]}",
           "f32[1,8,6,6] = concat(%x, %x) {axis = 1}",
           "f32[1,4,6,6] = softmax(%x) {axis = 1}",
           "f32[1,4,12,12] = resize_nearest(%x) {size = [1, 4, 12, 12], coordinates = \"asymmetric\", rounding = "
           "\"floor\"}",
       })
    check_same(in + "%y: " + op + "\nout %y \"y\"\n", {1, 4, 6, 6});
}

TEST_CASE("constants, biases, quantisation") {
  check_same(
      "in %x: f32[1,2,3,3]\nconst @w: f32[2,1,2,2] = [1, 2, 3, 4, 5, 6, 7, 8]\nconst @b: f32[2] = [1, 2]\n"
      "%y: f32[1,2,3,2] = conv(%x, @w, @b) {group = 2, pad_lo = [1, 0], dilation = [1, 1], pad_hi = [0, 0]}\n"
      "const @lo: f32[] = -1\nconst @hi: f32[] = 2\n%z: f32[1,2,3,2] = clip(%y, @lo, @hi)\nout %z \"y\"\n",
      {1, 2, 3, 3});
  check_same(
      "in %x: f32[2,3]\nconst @s: f32[] = 0.25\nconst @z: s8[] = 3\nconst @w: s8[2,3] = [1, -2, 3, 4, 5, -6]\n"
      "const @ws: f32[2] = [0.5, 0.125]\n%q: s8[2,3] = quantize_linear(%x, @s, @z) {axis = 0, to: s8}\n"
      "%r: f32[2,3] = dequantize_linear(%q, @s, @z) {axis = 0}\n%v: f32[2,3] = dequantize_linear(@w, @ws) {axis = 0}\n"
      "%y: f32[2,2] = gemm(%r, %v) {trans_b = 1, alpha = 0.5}\nout %y \"y\"\n",
      {2, 3});
}

TEST_CASE("symbols, and names that meet") {
  check_same("in %x: f32[N,2,3]\n%a: f32[N,6] = reshape(%x) {shape = [N, 6]}\nout %a \"y\"\n", {4, 2, 3},
             "(N in 1..8)");
  check_same("in %x: f32[2]\n%a: f32[2] = relu(%x)\n%b: f32[2] = exp(%a)\nout %b \"a\"\nout %a \"b\"\nout %x \"z\"\n",
             {2});
  check_same("in %x: f32[2]\n%a: f32[2] = relu(%x)\nout %a \"p\"\nout %a \"q\"\n", {2});
}

TEST_CASE("what has no form in ONNX is told, all of it") {
  const Graph g = parsed(
      "in %x: f32[4]\n%a: f32[4] = swish(%x) {alpha = 2.0} loc \"one\"\n%b: f32[4] = gelu(%a) loc \"two\"\nout %b "
      "\"y\"\n");
  const auto bytes = export_onnx(g);
  REQUIRE_FALSE(bytes.has_value());
  CHECK(bytes.error().diagnostics.size() == 2);
  CHECK_THAT(to_string(bytes.error()), Catch::Matchers::Contains("(node one)"));
  CHECK_THAT(to_string(bytes.error()), Catch::Matchers::Contains("(node two)"));
}
