// Graphs on the interpreter: symbols bound from shapes, results seen, errors named.
#include "dlc/graph/graph.h"
#include "dlc_test/catch.h"
#include "dlc_test/graph_text.h"

using namespace dlc;
using dlc_test::elements;
using dlc_test::floats;
using dlc_test::parsed;

namespace {

constexpr const char* kMlp = R"(
  in    %x: f32[N,2]
  const @w: f32[2,2] = [1, 2, 3, 4]
  const @b: f32[2] = [-10, 1]
  %h: f32[N,2] = matmul(%x, @w) loc "fc"
  %s: f32[N,2] = add(%h, @b) loc "bias"
  %y: f32[N,2] = relu(%s) loc "act"
  out   %y "y"
)";

}  // namespace

TEST_CASE("a graph runs for every size of its symbols", "[graph]") {
  const Graph g = parsed(kMlp, "(N in 1..8)");
  GraphRunner runner(g);
  for (int round = 0; round < 2; ++round) {
    const Tensor one[] = {floats({1, 2}, {1, 2})};
    REQUIRE_OK(auto y, runner.run(one));
    CHECK(elements(y[0]) == std::vector<double>{0, 11});
    const Tensor two[] = {floats({2, 2}, {1, 2, 3, 4})};
    REQUIRE_OK(auto z, runner.run(two));
    CHECK(z[0].shape() == std::vector<int64_t>{2, 2});
    CHECK(elements(z[0]) == std::vector<double>{0, 11, 5, 23});
  }
}

TEST_CASE("an observer sees every node", "[graph]") {
  const Graph g = parsed(kMlp, "(N in 1..8)");
  std::vector<std::string> seen;
  const Tensor x[] = {floats({1, 2}, {1, 2})};
  REQUIRE_OK(auto y, run_graph(g, x, {}, [&](NodeId n, std::span<const Tensor> results) {
               seen.push_back(g.node(n).op + " " + std::to_string(results[0].get_double(0)));
             }));
  CHECK(seen == std::vector<std::string>{"matmul 7.000000", "add -3.000000", "relu 0.000000"});
}

TEST_CASE("doubles from end to end", "[graph]") {
  const Graph g = parsed(R"(
  in    %x: f32[1]
  const @tiny: f32[] = 1e-10
  const @one: f32[] = 1
  %s: f32[1] = add(%x, @tiny)
  %y: f32[1] = sub(%s, @one)
  out   %y
)");
  const Tensor x[] = {floats({1}, {1})};
  REQUIRE_OK(auto in_floats, run_graph(g, x));
  CHECK(in_floats[0].dtype() == kF32);
  CHECK(in_floats[0].get_double(0) == 0);
  REQUIRE_OK(auto in_doubles, run_graph(g, x, {.floats_as_double = true}));
  CHECK(in_doubles[0].dtype() == kF64);
  CHECK(in_doubles[0].get_double(0) == Approx(1e-10).epsilon(1e-4));
}

TEST_CASE("inputs that do not fit are errors", "[graph]") {
  const Graph g = parsed(kMlp, "(N in 1..8)");
  const auto run = [&](std::vector<Tensor> inputs) { return run_graph(g, inputs); };
  REQUIRE_ERROR(run({}), "graph g has 1 inputs, got 0");
  REQUIRE_ERROR(run({Tensor()}), "input x has no tensor");
  REQUIRE_ERROR(run({floats({1, 3}, {1, 2, 3})}), "input x is f32[1,3], which does not fit f32[N,2]");
  REQUIRE_ERROR(run({floats({2}, {1, 2})}), "input x is f32[2], which does not fit f32[N,2]");
  REQUIRE_OK(Tensor nine, Tensor::make(kF32, {9, 2}));
  REQUIRE_ERROR(run({nine}), "input x makes N = 9, which is outside its range 1..8");
  REQUIRE_OK(Tensor ints, Tensor::make(kS32, {1, 2}));
  REQUIRE_ERROR(run({ints}), "input x is s32, the graph takes f32");
}

TEST_CASE("symbols are solved from affine dims and checked across inputs", "[graph]") {
  const Graph g = parsed(R"(
  in    %a: f32[2*H + 1]
  in    %b: f32[H]
  %y: f32[H] = relu(%b)
  %z: f32[2*H + 1] = relu(%a)
  out   %y
  out   %z
)",
                         "(H)");
  const Tensor good[] = {floats({5}, {1, 2, 3, 4, 5}), floats({2}, {1, 2})};
  REQUIRE_OK(auto y, run_graph(g, good));
  CHECK(y[0].shape() == std::vector<int64_t>{2});
  const Tensor even[] = {floats({4}, {1, 2, 3, 4}), floats({2}, {1, 2})};
  REQUIRE_ERROR(run_graph(g, even), "input a is f32[4], which does not fit f32[2*H + 1]");
  const Tensor wrong[] = {floats({5}, {1, 2, 3, 4, 5}), floats({3}, {1, 2, 3})};
  REQUIRE_ERROR(run_graph(g, wrong), "input a is f32[5], which does not fit f32[2*H + 1] with H = 3");
}

TEST_CASE("a failing node is named", "[graph]") {
  const Graph g = parsed(R"(
  in    %i: s64[1]
  const @t: f32[2] = [1, 2]
  %y: f32[1] = gather(@t, %i) {axis = 0} loc "lookup"
  out   %y
)");
  const int64_t index[] = {7};
  REQUIRE_OK(Tensor i, Tensor::from<int64_t>(kS64, {1}, index));
  const Tensor inputs[] = {i};
  REQUIRE_ERROR(run_graph(g, inputs), "(node lookup)");
}
