// Control flow: text, verifier, runs, and what passes and cuts make of it.
#include "dlc/graph/control.h"

#include "dlc/graph/read.h"
#include "dlc/graph/segments.h"
#include "dlc_test/catch.h"
#include "dlc_test/graph_text.h"

using namespace dlc;
using dlc_test::elements;
using dlc_test::floats;
using dlc_test::parsed;
using Values = std::vector<double>;

namespace {

Tensor number(double v, DType type) {
  REQUIRE_OK(Tensor t, Tensor::make(type, {}));
  t.set_double(0, v);
  return t;
}

std::vector<Values> results(const Graph& g, std::vector<Tensor> inputs) {
  auto tensors = run_graph(g, inputs);
  if (!tensors) FAIL(to_string(tensors.error()));
  std::vector<Values> all;
  for (const Tensor& t : *tensors) all.push_back(elements(t));
  return all;
}

// The branches differ in shape; `else` fails where the index is out of range.
constexpr const char* kIf = R"(
  in %c: bool[]
  in %x: f32[N]
  in %at: s64[]
  %y: f32[n] = if(%c, %x, %at) loc "If" then (N in 1..8) {
    in %x: f32[N]
    in %at: s64[]
    %r: f32[N] = neg(%x)
    out %r
  } else (N in 1..8) {
    in %x: f32[N]
    in %at: s64[]
    %e: f32[] = gather(%x, %at) {axis = 0}
    %r: f32[1] = reshape(%e) {shape = [1]}
    out %r
  }
  %z: f32[n] = abs(%y)
  out %z
)";
constexpr const char* kIfSymbols = "(N in 1..8, n in 1..8)";

// The state grows by one element in every trip, as long as the condition holds; its sums are stacked.
constexpr const char* kLoop = R"(
  in %trips: s64[]
  in %going: bool[]
  in %x: f32[N]
  in %one: f32[1]
  %last: f32[m], %sums: f32[t] = loop(%trips, %going, %x, %one) {carried = 1} loc "Loop" body (K in 0.., M in 0..) {
    in %i: s64[]
    in %state: f32[K]
    in %one: f32[1]
    const @limit: f32[] = 6
    %next: f32[K + 1] = concat(%state, %one) {axis = 0}
    %sum: f32[] = reduce_sum(%next) {axes = [0]}
    %more: bool[] = less(%sum, @limit)
    out %more
    out %next
    out %sum
  }
  out %last
  out %sums
)";
constexpr const char* kLoopSymbols = "(N in 1..8, m in 0.., t in 0..)";

}  // namespace

TEST_CASE("if runs the branch that is taken, and only that", "[graph][control]") {
  const Graph g = parsed(kIf, kIfSymbols);
  const Tensor x = floats({3}, {1, 2, 3});
  CHECK(results(g, {number(1, kBool), x, number(99, kS64)})[0] == Values{1, 2, 3});  // no index is looked at
  CHECK(results(g, {number(0, kBool), x, number(1, kS64)})[0] == Values{2});
  const Tensor wrong[] = {number(0, kBool), x, number(99, kS64)};
  CHECK_FALSE(run_graph(g, wrong));
}

TEST_CASE("loop carries values that change their shape", "[graph][control]") {
  const Graph g = parsed(kLoop, kLoopSymbols);
  const auto run = [&](double trips, bool going, std::vector<float> x) {
    const auto n = static_cast<int64_t>(x.size());
    return results(g, {number(trips, kS64), number(going ? 1 : 0, kBool), floats({n}, x), floats({1}, {1})});
  };
  CHECK(run(2, true, {5}) == std::vector<Values>{{5, 1}, {6}});        // the condition ends it
  CHECK(run(2, true, {1}) == std::vector<Values>{{1, 1, 1}, {2, 3}});  // the number of trips does
  CHECK(run(9, true, {1, 1}) == std::vector<Values>{{1, 1, 1, 1, 1, 1}, {3, 4, 5, 6}});
  CHECK(run(0, true, {1, 2}) == std::vector<Values>{{1, 2}, {}});
  CHECK(run(-3, true, {1, 2}) == std::vector<Values>{{1, 2}, {}});
  CHECK(run(5, false, {1, 2}) == std::vector<Values>{{1, 2}, {}});
}

TEST_CASE("floats of bodies are doubles where those of the graph are", "[graph][control]") {
  const Graph g = parsed(kLoop, kLoopSymbols);
  const Tensor inputs[] = {number(3, kS64), number(1, kBool), floats({1}, {0.1F}), floats({1}, {1})};
  auto y = run_graph(g, inputs, {.floats_as_double = true});
  if (!y) FAIL(to_string(y.error()));
  CHECK((*y)[0].dtype() == kF64);
  CHECK((*y)[1].get_double(0) == 1 + static_cast<double>(0.1F));
}

TEST_CASE("control flow as text is read as it was printed", "[graph][control]") {
  for (const auto& [text, symbols] : {std::pair(kIf, kIfSymbols), std::pair(kLoop, kLoopSymbols)}) {
    const Graph g = parsed(text, symbols);
    if (auto ok = verify(g); !ok) FAIL(to_string(ok.error()));
    REQUIRE_OK(const Graph again, parse_graph(print(g)));
    CHECK(print(again) == print(g));
  }
}

TEST_CASE("constants of bodies have names of their own in the weight table", "[graph][control]") {
  Graph g = parsed(
      "in %c: bool[]\nin %x: f32[20]\n%y: f32[20] = if(%c, %x) then {\nin %x: f32[20]\nout %x\n} else {\n"
      "in %x: f32[20]\nout %x\n}\nout %y");
  auto& bodies = g.node(g.order()[0]).bodies;
  for (size_t b = 0; b < 2; ++b) {
    Graph body = *bodies[b];
    std::vector<float> row(20);
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(100 * b + i);
    const ValueId w = body.add_constant("w", floats({20}, row));
    REQUIRE_OK(const NodeId add, body.add_node("add", {body.inputs[0], w}, {}, {}));
    body.outputs = {body.node(add).outputs[0]};
    bodies[b] = std::make_shared<const Graph>(std::move(body));
  }
  const auto table = table_constants(g);
  REQUIRE(table.size() == 2);
  CHECK(table[0].first == "y:then:w");
  CHECK(table[1].first == "y:else:w");
  const auto weights = [&](std::string_view name) -> std::optional<Tensor> {
    for (const auto& [n, t] : table)
      if (n == name) return t;
    return std::nullopt;
  };
  REQUIRE_OK(const Graph again, parse_graph(print(g), {}, weights));
  const Tensor zeros = floats({20}, std::vector<float>(20, 0));
  CHECK(results(again, {number(0, kBool), zeros})[0][3] == 103);
}

TEST_CASE("what does not fit its bodies is refused", "[graph][control]") {
  const auto refused = [](const std::string& text, const std::string& why) {
    INFO(text);
    auto g = parse_graph("dlc.graph 1\ngraph @g (N in 1..8, n in 0..8) {\n" + text + "\n}\n");
    REQUIRE_FALSE(g);
    INFO(to_string(g.error()));
    CHECK(to_string(g.error()).find(why) != std::string::npos);
  };
  const std::string in = "in %c: bool[]\nin %x: f32[N]\nin %k: s64[]\n";
  refused(in + "%y: f32[N] = if(%c, %x)\nout %y", "expected 'then'");
  refused(in + "%y: f32[N] = if(%x) then {\nout %y\n} else {\n}\nout %y", "there is no value called y");
  refused(in + "%y: f32[N] = if(%x) then {\n} else {\n}\nout %y", "the condition is f32[N], not bool[]");
  refused(in + "%y: f32[N] = if(%c) then {\n} else {\n}\nout %y", "then gives 0 values, not 1");
  refused(in + "%y: f32[N] = if(%c, %x) then {\n} else {\n}\nout %y", "then takes 0 values, 1 are given");
  const std::string pass = " (M in 1..8) {\nin %x: f32[M]\nout %x\n}";
  refused(in + "%y: f32[N,1] = if(%c, %x) then" + pass + " else" + pass + "\nout %y", "which is no f32[N,1]");
  refused(in + "%y: s64[N] = if(%c, %x) then" + pass + " else" + pass + "\nout %y", "which is no s64[N]");
  refused(in + "%y: f32[N] = if(%c, %k) then" + pass + " else" + pass + "\nout %y", "but the operand is s64[]");
  refused(in + "%y: f32[N] = loop(%k, %c, %x) {carried = 2} body" + pass + "\nout %y", "2 values cannot be carried");
  refused(in + "%y: f32[N] = loop(%k, %c, %x) {carried = 1} body" + pass + "\nout %y", "the first input of body");
  refused(in + "%y: f32[N] = loop(%x, %c, %x) {carried = 1} body" + pass + "\nout %y", "the number of trips is f32[N]");
  refused(in + "%y: f32[N] = loop(%k, %c, %x) {carried = 1} body (M in 1..8) {\nin %i: s64[]\nin %x: f32[M]\nout %x\n"
               "out %x\n}\nout %y",
          "the first output of body is the condition");
  std::string deep = "out %x\n";
  for (int i = 0; i < 500; ++i)
    deep = "%y: f32[N] = if(%c, %c, %x) then (N in 1..8) {\nin %c: bool[]\nin %x: f32[N]\n" + deep + "} else" + pass +
           "\nout %y\n";
  refused(in + deep, "bodies are nested more than 16 deep");
}

TEST_CASE("a node of control flow is a segment of its own, and binds the sizes it finds out", "[graph][control]") {
  const Graph g = parsed(kIf, kIfSymbols);
  CHECK(found_symbols(g).contains("n"));
  REQUIRE_OK(const auto segments, cut_at_externs(g));
  REQUIRE(segments.size() == 2);
  CHECK(segments[0].kind == Segment::Kind::control);
  CHECK(segments[0].graph.order().size() == 1);
  CHECK(segments[1].kind == Segment::Kind::program);
}
