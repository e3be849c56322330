// Building, changing and verifying graphs.
#include "dlc/graph/graph.h"

#include "core/graph/algorithms.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

struct Diamond {  // x -> a -> (b, c) -> d
  Graph g;
  ValueId x;
  NodeId a, b, c, d;

  static Diamond make() {
    Diamond m;
    m.x = m.g.add_input("x", {kF32, {4}});
    REQUIRE_OK(m.a, m.g.add_node("relu", {m.x}, {}, {"na"}, "a"));
    REQUIRE_OK(m.b, m.g.add_node("exp", {m.out(m.a)}, {}, {"nb"}, "b"));
    REQUIRE_OK(m.c, m.g.add_node("neg", {m.out(m.a)}, {}, {"nc"}, "c"));
    REQUIRE_OK(m.d, m.g.add_node("add", {m.out(m.b), m.out(m.c)}, {}, {"nd"}, "d"));
    m.g.outputs = {m.out(m.d)};
    m.g.output_names = {"d"};
    return m;
  }
  ValueId out(NodeId n) const { return g.node(n).outputs[0]; }
};

void require_valid(const Graph& g) {
  if (auto r = verify(g); !r) FAIL(to_string(r.error()));
}

}  // namespace

TEST_CASE("a graph knows its order and users", "[graph]") {
  auto m = Diamond::make();
  require_valid(m.g);
  CHECK(m.g.order() == std::vector{m.a, m.b, m.c, m.d});
  CHECK(m.g.users(m.out(m.a)) == std::vector{m.b, m.c});
  CHECK(m.g.all_users()[static_cast<size_t>(m.x)] == std::vector{m.a});
  CHECK(m.g.value(m.out(m.b)).producer == m.b);
  CHECK(to_string(m.g.value(m.out(m.d)).type) == "f32[4]");
}

TEST_CASE("the order follows uses, not ids", "[graph]") {
  auto m = Diamond::make();
  REQUIRE_OK(NodeId late, m.g.add_node("tanh", {m.x}, {}, {}, "late"));
  m.g.node(m.a).inputs[0] = m.out(late);
  CHECK(m.g.order() == std::vector{late, m.a, m.b, m.c, m.d});
  require_valid(m.g);
}

TEST_CASE("values are replaced, nodes erased, names given back", "[graph]") {
  auto m = Diamond::make();
  m.g.replace_uses(m.out(m.d), m.out(m.b));
  CHECK(m.g.outputs == std::vector{m.out(m.b)});
  m.g.erase(m.d);
  m.g.erase(m.c);
  require_valid(m.g);
  CHECK(m.g.order() == std::vector{m.a, m.b});
  CHECK(m.g.find("d") == kNoValue);
  CHECK(m.g.unique_name("d") == "d");
  CHECK(m.g.unique_name("a") == "a_1");
  m.g.rename(m.out(m.b), "d");
  CHECK(m.g.find("d") == m.out(m.b));
  CHECK(m.g.find("b") == kNoValue);
}

TEST_CASE("a node that its record refuses is not added", "[graph]") {
  auto m = Diamond::make();
  const ValueId y = m.g.add_input("y", {kF32, {5}});
  const size_t nodes = m.g.node_count(), values = m.g.value_count();
  REQUIRE_ERROR(m.g.add_node("add", {m.x, y}, {}, {"bad"}), "bad");
  REQUIRE_ERROR(m.g.add_node("no_such_op", {m.x}, {}, {"bad"}), "no op is called 'no_such_op' (node bad)");
  REQUIRE_ERROR(m.g.add_node("add", {m.x}, {}, {"bad"}), "is missing");
  REQUIRE_ERROR(m.g.add_node("relu", {m.x}, {{"what", Expr(1)}}, {"bad"}), "what");
  CHECK(m.g.node_count() == nodes);
  CHECK(m.g.value_count() == values);
}

TEST_CASE("the verifier finds what is broken", "[graph]") {
  SECTION("a cycle, with the nodes in it") {
    auto m = Diamond::make();
    m.g.node(m.a).inputs[0] = m.out(m.d);
    REQUIRE_ERROR(verify(m.g), "these nodes use each other's results: relu, exp, neg, add");
  }
  SECTION("a use of an erased node") {
    auto m = Diamond::make();
    m.g.erase(m.b);
    REQUIRE_ERROR(verify(m.g), "add uses %b, whose node was erased");
  }
  SECTION("a type that is not what the record infers") {
    auto m = Diamond::make();
    m.g.value(m.out(m.b)).type.shape[0] = 5;
    REQUIRE_ERROR(verify(m.g), "%b is declared f32[5], but exp gives f32[4]");
  }
  SECTION("a symbol that is not declared") {
    auto m = Diamond::make();
    m.g.value(m.x).type.shape[0] = Expr::symbol("N");
    REQUIRE_ERROR(verify(m.g), "the shape of %x uses the symbol N, which the graph does not declare");
  }
  SECTION("a value that does not exist") {
    auto m = Diamond::make();
    m.g.node(m.b).inputs[0] = 99;
    REQUIRE_ERROR(verify(m.g), "exp uses value 99, which does not exist");
  }
  SECTION("two values of one name") {
    auto m = Diamond::make();
    m.g.value(m.out(m.b)).name = m.g.value(m.out(m.c)).name;
    REQUIRE_ERROR(verify(m.g), "two values are called c");
  }
  SECTION("outputs without names") {
    auto m = Diamond::make();
    m.g.output_names.clear();
    REQUIRE_ERROR(verify(m.g), "1 outputs have 0 names");
  }
  SECTION("a constant with another type") {
    Graph g;
    REQUIRE_OK(Tensor t, Tensor::make(kF32, {2}));
    const ValueId c = g.add_constant("c", t);
    g.value(c).type.dtype = kS8;
    REQUIRE_ERROR(verify(g), "constant @c is f32[2], its value is declared s8[2]");
  }
}

TEST_CASE("digraphs have cycles or none", "[graph]") {
  Digraph d(5);  // 0 -> 1 -> 2, 0 -> 3 -> 2, 4 alone
  d.add_edge(0, 1);
  d.add_edge(1, 2);
  d.add_edge(0, 3);
  d.add_edge(3, 2);
  CHECK(d.cycles().empty());
  d.add_edge(2, 0);
  CHECK(d.cycles() == std::vector<std::vector<size_t>>{{0, 1, 2, 3}});
}
