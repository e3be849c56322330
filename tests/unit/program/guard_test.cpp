// Guards: what kernels assume of symbols is refused at the entry, never computed.
#include "dlc/program/guard.h"

#include "dlc/program/program.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

Graph graph(const std::string& text) {
  auto g = parse_graph(text);
  if (!g) FAIL(to_string(g.error()));
  return *g;
}

Tensor ramp(DType dtype, std::vector<int64_t> shape) {
  auto t = Tensor::make(dtype, std::move(shape));
  for (int64_t i = 0; i < t->elements(); ++i) t->set_double(i, static_cast<double>(i % 5 + 1));
  return *t;
}

// The inputs for N = n.
std::vector<Tensor> inputs(const Graph& g, int64_t n) {
  std::vector<Tensor> in;
  for (const ValueId v : g.inputs) {
    std::vector<int64_t> shape;
    for (const Expr& d : g.value(v).type.shape) shape.push_back(*evaluate(d, Bindings{{"N", n}}));
    in.push_back(ramp(g.value(v).type.dtype, std::move(shape)));
  }
  return in;
}

// Right for N = `assumed`; for N = 1, where the graph has another meaning, refused with this message.
void check_guarded(const std::string& text, int64_t assumed, const std::string& message) {
  const Graph g = graph(text);
  for (const bool fuse : {true, false}) {
    REQUIRE_OK(const Program p, lower_to_program(g, {.fuse = fuse}));
    INFO(print(p));
    REQUIRE_OK(const Program again, parse_program(print(p)));
    CHECK(print(again) == print(p));
    REQUIRE_OK(const auto expected, run_graph(g, inputs(g, assumed)));
    REQUIRE_OK(const auto got, run_program(p, inputs(g, assumed)));
    REQUIRE(got.size() == expected.size());
    for (int64_t i = 0; i < expected[0].elements(); ++i) CHECK(got[0].get_double(i) == expected[0].get_double(i));
    CHECK(run_graph(g, inputs(g, 1)).has_value());
    REQUIRE_ERROR(run_program(p, inputs(g, 1)), "N = 1 is not supported by this compilation: it assumes " + message);
    Program without = p;
    without.guards.clear();
    if (!p.calls.empty() && !p.kernels[0].assumptions.empty()) REQUIRE_ERROR(verify(without), "which no guard checks");
  }
}

}  // namespace

TEST_CASE("what a broadcast assumes of a symbol is a guard of the program") {
  check_guarded(R"(dlc.graph 1
graph @g (N in 0..64) {
  in    %a: f32[2,2]
  in    %c: f32[1,N]
  %0: f32[2,2] = gemm(%a, %a, %c) loc "fc"
  out   %0 "y"
})",
                2, "N == 2 (node fc)");
  check_guarded(R"(dlc.graph 1
graph @g (N in 0..64) {
  in    %x: u64[N]
  %0: u64[4] = expand(%x) {shape = [4]} loc "wide"
  out   %0 "y"
})",
                4, "N == 4 (node wide)");
  check_guarded(R"(dlc.graph 1
graph @g (N in 0..64) {
  in    %a: f32[2,1,N]
  in    %b: f32[N,1,N]
  %0: f32[2,1,N] = mul(%a, %b) loc "scale"
  out   %0 "y"
})",
                2, "N == 2 (node scale)");
}

TEST_CASE("guards: text, what the ranges prove, what one says of another") {
  const Expr n = Expr::symbol("N"), m = Expr::symbol("M");
  const Ranges symbols{{"M", Range(1, 8)}, {"N", Range(4, 64)}};
  std::vector<Guard> guards;
  const std::vector<Expr> assumed{n - 4, n - m, m - n, 6 - n, n - 7};
  add_guards(guards, symbols, assumed, {"a"});
  add_guards(guards, symbols, std::vector<Expr>{m - n, n - m}, {"b"});
  REQUIRE(guards.size() == 3);
  CHECK(guards[0].is_equality);
  CHECK(guards[0].locations == std::vector<std::string>{"a", "b"});
  CHECK(to_string(guards[1]) == "N <= 6");
  CHECK(to_string(guards[2]) == "N >= 7");
  CHECK(implies_nonnegative(guards, symbols, m - n));
  CHECK(implies_nonnegative(guards, symbols, n - 4));
  CHECK_FALSE(implies_nonnegative(guards, symbols, n - 5));
}

TEST_CASE("the entry compares every dim once all symbols are known") {
  Program p;
  p.symbols = {{"N", Range(1, 64)}};
  p.symbols["N"].divisible_by = 4;
  const Expr n = Expr::symbol("N");
  p.buffers = {{"a", "a", {kF32, {2 * n}}, {}, BufferKind::input, {}, {}},
               {"b", "b", {kF32, {n}}, {}, BufferKind::input, {}, {}}};
  const auto bind = [&](int64_t a, int64_t b) {
    return bind_symbols(p, std::vector<Tensor>{ramp(kF32, {a}), ramp(kF32, {b})});
  };
  REQUIRE_OK(const Bindings bound, bind(16, 8));
  CHECK(bound == Bindings{{"N", 8}});
  REQUIRE_ERROR(bind(12, 8), "input a is f32[12], f32[2*N] is expected");
  REQUIRE_ERROR(bind(136, 68), "N = 68 is outside its range: N in 1..64 by 4");
  REQUIRE_ERROR(bind(12, 6), "N = 6 is outside its range");
  p.guards = {{n - 16, false, {"x"}}};
  CHECK(bind(32, 16).has_value());
  REQUIRE_ERROR(bind(16, 8), "N = 8 is not supported by this compilation: it assumes N >= 16 (node x)");
  CHECK(entry_conditions(p).size() == 4);
}

TEST_CASE("a plan relies on the guards: sizes that are negative without them are none") {
  const Graph g = graph(R"(dlc.graph 1
graph @g (N in 0..64) {
  in    %x: f32[1,N,N]
  in    %w: f32[N,N,2]
  %0: f32[1,N,N - 1] = conv(%x, %w, _)
  %1: f32[1,N,N - 1] = max_pool(%0) {kernel = [1]}
  %2: f32[1,N,N - 1] = softmax(%1) {axis = 2}
  %3: f32[1,N,N - 1] = softmax(%2) {axis = 1}
  out   %3 "y"
})");
  REQUIRE_OK(const Program p, lower_to_program(g, {.fuse = false}));
  INFO(print(p));
  REQUIRE(check_memory_plan(p).has_value());
  Program without = p;
  without.guards.clear();
  REQUIRE_ERROR(check_memory_plan(without), "may begin before the arena");
  for (const int64_t n : {2, 7}) {
    REQUIRE_OK(const auto expected, run_graph(g, inputs(g, n)));
    REQUIRE_OK(const auto got, run_program(p, inputs(g, n)));
    for (int64_t i = 0; i < expected[0].elements(); ++i) CHECK(got[0].get_double(i) == expected[0].get_double(i));
  }
}
