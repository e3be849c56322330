// The pass manager.
#include "dlc/passes/pass.h"

#include <algorithm>

#include "groups.h"

using namespace dlc;
using dlc_test::parsed;

TEST_CASE("passes are listed by name and the pipeline names them", "[passes]") {
  const auto& passes = graph_passes();
  CHECK(std::ranges::is_sorted(passes, {}, &PassInfo::name));
  for (const auto& name : default_graph_pipeline()) {
    INFO(name);
    CHECK(std::ranges::count(passes, name, &PassInfo::name) == 1);
  }
  for (const auto& p : passes) CHECK_FALSE(p.summary.empty());
}

TEST_CASE("passes run in order, timed and observed", "[passes]") {
  Graph g = parsed("in %x: f32[2]\n%a: f32[2] = identity(%x)\n%b: f32[2] = relu(%a)\n%c: f32[2] = exp(%x)\nout %b\n");
  std::vector<std::string> seen;
  REQUIRE_OK(auto timings, run_passes(g, {"dce", "canonicalise"}, [&](const std::string& name, const Graph& after) {
               seen.push_back(name + " " + std::to_string(after.order().size()));
             }));
  CHECK(seen == std::vector<std::string>{"dce 2", "canonicalise 1"});
  REQUIRE(timings.size() == 2);
  CHECK(timings[0].name == "dce");
  CHECK(timings[0].ms >= 0);
  CHECK(timings[0].counts.at("nodes") == 1);
}

TEST_CASE("a wrong name is reported before anything runs", "[passes]") {
  Graph g = parsed("in %x: f32[2]\n%c: f32[2] = exp(%x)\nout %x\n");
  REQUIRE_ERROR(run_passes(g, {"dce", "cso"}), "no pass is called 'cso'");
  CHECK(g.order().size() == 1);
}

TEST_CASE("the default pipeline runs to a fixed point", "[passes]") {
  Graph g = parsed(R"(
  in    %x: f32[1,2,4,4]
  const @w: f32[2,2,1,1] = [1, 2, 3, 4]
  const @k: f32[2,1,1] = [1, 2]
  const @two: f32[] = 2
  %p: f32[1,2,6,6] = pad(%x) {lo = [0, 0, 1, 1], hi = [0, 0, 1, 1]}
  %c: f32[1,2,6,6] = conv(%p, @w)
  %k2: f32[2,1,1] = mul(@k, @two)
  %m: f32[1,2,6,6] = mul(%c, %k2)
  %y: f32[1,2,6,6] = relu(%m)
  out   %y
)");
  REQUIRE_OK(auto timings, run_passes(g, default_graph_pipeline()));
  CHECK(timings.size() == default_graph_pipeline().size());
  REQUIRE(g.order().size() == 2);
  CHECK(g.node(g.order()[0]).op == "conv");
  const std::string once = print(g);
  REQUIRE_OK(auto again, run_passes(g, default_graph_pipeline()));
  CHECK(again.size() == timings.size());
  CHECK(print(g) == once);
}

TEST_CASE("folding stops at its budget", "[passes]") {
  const std::string text = R"(
  const @c: f32[2,2] = [1, 2, 3, 4]
  %big: f32[64,64] = tile(@c) {repeats = [32, 32]}
  %small: f32[2,2] = matmul(@c, @c)
  out   %big
  out   %small
)";
  const auto folded = [&](int64_t elements, int64_t operations) {
    Graph g = parsed(text);
    const auto pass = std::ranges::find(graph_passes(), "fold", &PassInfo::name);
    REQUIRE(pass != graph_passes().end());
    PassContext context{.counts = {}, .fold_elements = elements, .fold_operations = operations};
    REQUIRE(pass->run(g, context).has_value());
    CHECK(context.counts["folded"] + context.counts["too expensive"] == 2);
    std::string left;
    for (NodeId n : g.order()) left += g.node(n).op + " ";
    return left;
  };
  CHECK(folded(1 << 20, 1 << 20).empty());
  CHECK(folded(1000, 1 << 20) == "tile ");
  CHECK(folded(1 << 20, 1000) == "tile ");
  CHECK(folded(1 << 20, 4096) == "matmul ");  // spent on the first
}

TEST_CASE("passes keep to the record set of the graph", "[passes]") {
  const auto records = [](const std::string& body) {
    REQUIRE_OK(RecordSet set, RecordSet::parse("op recipe(X[i...]) -> Y[i...] { Y[i...] = " + body + " }", "test.ops",
                                               &RecordSet::builtin()));
    return std::make_shared<const RecordSet>(std::move(set));
  };
  Graph g;
  g.records = records("X[i...] + 1");
  const float values[] = {1, 2};
  REQUIRE_OK(Tensor c, Tensor::from<float>(kF32, {2}, values));
  REQUIRE_OK(NodeId n, g.add_node("recipe", {g.add_constant("c", c)}, {}, {}, "y"));
  g.outputs = g.node(n).outputs;
  g.output_names = {"y"};
  Graph h = g;
  h.records = records("X[i...] * 3");
  const auto folded = [](Graph graph) {
    REQUIRE_OK(auto timings, run_passes(graph, {"fold"}));
    REQUIRE(graph.order().empty());
    const auto& y = graph.value(graph.outputs[0]).constant;
    return std::vector{y->get_double(0), y->get_double(1)};
  };
  CHECK(folded(g) == std::vector<double>{2, 3});
  CHECK(folded(h) == std::vector<double>{3, 6});
  REQUIRE_OK(Kernel one, g.kernel(n));
  REQUIRE_OK(Kernel other, h.kernel(n));
  CHECK(print(one) != print(other));
}
