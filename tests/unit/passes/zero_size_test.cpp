// Tensors without elements: every op takes them, gives the shape it should, and a reduction over nothing its neutral
// element. Also after the passes, which must not change that.
#include <cmath>

#include "dlc/passes/pass.h"
#include "groups.h"

using namespace dlc;
using dlc_test::parsed;

namespace {

struct Case {
  std::string_view body;
  std::vector<int64_t> shape;       // of the result
  std::vector<double> values = {};  // its elements
};

Tensor filled(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Expr& d : type.shape) shape.push_back(*d.constant());
  REQUIRE_OK(Tensor t, Tensor::make(type.dtype, shape));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_double(i, 1);
  return t;
}

void check(const Case& c) {
  INFO(c.body);
  Graph g = parsed(std::string(c.body));
  for (const bool optimised : {false, true}) {
    INFO((optimised ? "after the passes" : "as it is"));
    if (optimised) {
      auto timings = run_passes(g, default_graph_pipeline());
      if (!timings) FAIL(to_string(timings.error()));
    }
    std::vector<Tensor> inputs;
    for (ValueId v : g.inputs) inputs.push_back(filled(g.value(v).type));
    auto results = run_graph(g, inputs);
    if (!results) FAIL(to_string(results.error()));
    CHECK((*results)[0].shape() == c.shape);
    std::vector<double> values;
    for (int64_t i = 0; i < (*results)[0].elements(); ++i) values.push_back((*results)[0].get_double(i));
    REQUIRE(values.size() == c.values.size());
    for (size_t i = 0; i < values.size(); ++i)
      CHECK((values[i] == c.values[i] || (std::isnan(values[i]) && std::isnan(c.values[i]))));
  }
}

constexpr double kInf = INFINITY;
constexpr double kNan = NAN;

}  // namespace

TEST_CASE("ops that move elements take tensors without any", "[zero]") {
  check({"in %x: f32[4,3,0,2]\n%y: f32[12,0,2] = reshape(%x) {shape = [12, 0, 2]}\nout %y", {12, 0, 2}});
  check({"in %x: f32[0]\n%y: f32[5,0,3] = reshape(%x) {shape = [5, 0, 3]}\nout %y", {5, 0, 3}});
  check({"in %x: f32[2,0,3]\n%y: f32[3,0,2] = transpose(%x) {perm = [2, 1, 0]}\nout %y", {3, 0, 2}});
  check({"in %x: f32[1,0]\n%y: f32[0] = squeeze(%x) {axes = [0]}\nout %y", {0}});
  check({"in %x: f32[0]\n%y: f32[1,0] = unsqueeze(%x) {axes = [0]}\nout %y", {1, 0}});
  check({"in %x: f32[0]\nin %z: f32[2]\n%y: f32[2] = concat(%x, %z) {axis = 0}\nout %y", {2}, {1, 1}});
  check({"in %x: f32[2,0]\nin %z: f32[2,0]\n%y: f32[2,0] = concat(%x, %z) {axis = 1}\nout %y", {2, 0}});
  check({"in %x: f32[3]\n%y: f32[0] = slice(%x) {start = [2], stop = [1]}\nout %y", {0}});
  check({"in %x: f32[0]\n%y: f32[0] = slice(%x) {start = [0], stop = [5]}\nout %y", {0}});
  check({"in %x: f32[0]\n%y: f32[0] = slice(%x) {start = [-1], stop = [-5], step = [-1]}\nout %y", {0}});
  check({"in %x: f32[0]\n%y: f32[3] = pad(%x) {lo = [1], hi = [2]}\nout %y", {3}, {0, 0, 0}});
  check({"in %x: f32[2]\n%y: f32[0] = tile(%x) {repeats = [0]}\nout %y", {0}});
  check({"in %x: f32[0,2]\n%y: f32[0,4] = tile(%x) {repeats = [3, 2]}\nout %y", {0, 4}});
  check({"in %x: f32[1]\n%y: f32[0] = expand(%x) {shape = [0]}\nout %y", {0}});
  check({"in %x: f32[2,3]\nconst @i: s64[0] = []\n%y: f32[0,3] = gather(%x, @i) {axis = 0}\nout %y", {0, 3}});
  check({"in %x: f32[0,4,2,2]\n%y: f32[0,1,4,4] = depth_to_space(%x) {block = 2}\nout %y", {0, 1, 4, 4}});
  check({"in %x: f32[0,4,4]\n%y: f32[0,4,4] = trilu(%x)\nout %y", {0, 4, 4}});
}

TEST_CASE("element-wise ops broadcast nothing to nothing", "[zero]") {
  check({"in %x: f32[2,0]\nin %z: f32[2,1]\n%y: f32[2,0] = add(%x, %z)\nout %y", {2, 0}});
  check({"in %x: f32[0]\n%y: f32[0] = relu(%x)\nout %y", {0}});
  check({"in %x: f32[0,3]\n%y: s32[0,3] = cast(%x) {to: s32}\nout %y", {0, 3}});
  check({"in %c: bool[0]\nin %x: f32[1]\nin %z: f32[1]\n%y: f32[0] = where(%c, %x, %z)\nout %y", {0}});
  check({"in %x: f32[0,2]\nconst @s: f32[1] = 1\n%y: u8[0,2] = quantize_linear(%x, @s) {axis = 1}\nout %y", {0, 2}});
}

TEST_CASE("a reduction over nothing gives its neutral element", "[zero]") {
  check({"in %x: f32[2,0]\n%y: f32[2] = reduce_sum(%x) {axes = [1]}\nout %y", {2}, {0, 0}});
  check({"in %x: f32[2,0]\n%y: f32[2,1] = reduce_prod(%x) {axes = [1], keepdims = 1}\nout %y", {2, 1}, {1, 1}});
  check({"in %x: f32[2,0]\n%y: f32[2] = reduce_max(%x) {axes = [1]}\nout %y", {2}, {-kInf, -kInf}});
  check({"in %x: f32[2,0]\n%y: f32[2] = reduce_min(%x) {axes = [1]}\nout %y", {2}, {kInf, kInf}});
  check({"in %x: f32[2,0]\n%y: f32[2] = reduce_mean(%x) {axes = [1]}\nout %y", {2}, {kNan, kNan}});
  check({"in %x: f32[0,3]\n%y: f32[0] = reduce_mean(%x) {axes = [1]}\nout %y", {0}});
  check({"in %x: f32[2,0]\n%y: f32[2] = reduce_log_sum_exp(%x) {axes = [1]}\nout %y", {2}, {-kInf, -kInf}});
  check({"in %x: f32[0,3]\n%y: s64[0] = arg_max(%x) {axis = [1]}\nout %y", {0}});
  check({"in %x: f32[0,3]\n%y: f32[0,3] = cumsum(%x) {axis = 1}\nout %y", {0, 3}});
  check({"in %x: f32[2,0]\n%y: f32[2,0] = cumsum(%x) {axis = 1}\nout %y", {2, 0}});
}

TEST_CASE("products over no depth are zero, over no rows empty", "[zero]") {
  check({"in %x: f32[2,0]\nin %w: f32[0,2]\n%y: f32[2,2] = matmul(%x, %w)\nout %y", {2, 2}, {0, 0, 0, 0}});
  check({"in %x: f32[0,3]\nin %w: f32[3,2]\n%y: f32[0,2] = matmul(%x, %w)\nout %y", {0, 2}});
  check({"in %x: f32[2,3]\nin %w: f32[3,0]\n%y: f32[2,0] = matmul(%x, %w)\nout %y", {2, 0}});
  check({"in %x: f32[1,0]\nin %w: f32[0,2]\nin %b: f32[2]\n%y: f32[1,2] = gemm(%x, %w, %b)\nout %y", {1, 2}, {1, 1}});
  check({"in %x: f32[0,2,4,4]\nin %w: f32[3,2,3,3]\n%y: f32[0,3,2,2] = conv(%x, %w)\nout %y", {0, 3, 2, 2}});
  check(
      {"in %x: f32[0,2,4,4]\nin %w: f32[3,2,3,3]\n%y: f32[0,3,4,4] = conv(%x, %w) {pad_lo = [1, 1], pad_hi = [1, 1]}\n"
       "out %y",
       {0, 3, 4, 4}});
  check({"in %x: f32[1,0,2,2]\nin %w: f32[1,0,2,2]\nin %b: f32[1]\n%y: f32[1,1,1,1] = conv(%x, %w, %b)\nout %y",
         {1, 1, 1, 1},
         {1}});
  check({"in %x: f32[1,2,4,4]\nin %w: f32[0,2,3,3]\n%y: f32[1,0,2,2] = conv(%x, %w)\nout %y", {1, 0, 2, 2}});
  check({"in %x: f32[0,2,4,4]\n%y: f32[0,2,2,2] = max_pool(%x) {kernel = [2, 2], stride = [2, 2]}\nout %y",
         {0, 2, 2, 2}});
  check({"in %x: f32[0,2,4,4]\n%y: f32[0,2,2,2] = avg_pool(%x) {kernel = [2, 2], stride = [2, 2]}\nout %y",
         {0, 2, 2, 2}});
}

TEST_CASE("normalisations of nothing", "[zero]") {
  check({"in %x: f32[0,3]\n%y: f32[0,3] = softmax(%x) {axis = 1}\nout %y", {0, 3}});
  check({"in %x: f32[2,0]\n%y: f32[2,0] = softmax(%x) {axis = 1}\nout %y", {2, 0}});
  check({"in %x: f32[2,0]\n%y: f32[2,0] = log_softmax(%x) {axis = 1}\nout %y", {2, 0}});
  check({"in %x: f32[2,0]\n%y: f32[2,0] = hardmax(%x) {axis = 1}\nout %y", {2, 0}});
  check({"in %x: f32[0,3]\nin %s: f32[3]\n%y: f32[0,3], %m: f32[0], %v: f32[0] = layer_norm(%x, %s) {axis = 1}\nout %y",
         {0, 3}});
  check({"in %x: f32[0,2,3]\nin %s: f32[2]\n%y: f32[0,2,3] = instance_norm(%x, %s, %s)\nout %y", {0, 2, 3}});
  check({"in %x: f32[0,4,3]\nin %s: f32[4]\n%y: f32[0,4,3] = group_norm(%x, %s, %s) {groups = 2}\nout %y", {0, 4, 3}});
}

TEST_CASE("a symbolic dim may turn out to be 0", "[zero]") {
  const Graph g = parsed(
      "in %x: f32[N,4]\n%a: f32[4*N] = reshape(%x) {shape = [4*N]}\n%b: f32[2*N,2] = reshape(%a) {shape = [2*N, 2]}\n"
      "%y: f32[2*N,2] = softmax(%b) {axis = 1}\nout %y",
      "(N in 0..4)");
  for (const int64_t n : {0, 3}) {
    REQUIRE_OK(Tensor x, Tensor::make(kF32, {n, 4}));
    const Tensor inputs[] = {x};
    REQUIRE_OK(auto y, run_graph(g, inputs));
    CHECK(y[0].shape() == std::vector<int64_t>{2 * n, 2});
  }
}
