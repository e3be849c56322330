// Small integer tensors as Exprs: shapes compute shapes before anything runs.
#include "core/graph/value_inference.h"

#include "dlc_test/catch.h"
#include "dlc_test/graph_text.h"

using namespace dlc;
using dlc_test::parsed;

namespace {

std::string text(const std::vector<std::optional<Expr>>& elements) {
  std::string s;
  for (const auto& e : elements) s += (s.empty() ? "" : " ") + (e ? to_string(*e) : std::string("?"));
  return s;
}

std::string inferred(const Graph& g, std::string_view name) {
  ValueInference values(g);
  return text(values.elements(g.find(name)));
}

std::map<int, std::vector<std::optional<Expr>>> no_inputs() { return {}; }

}  // namespace

TEST_CASE("shape, gather, concat, mul on symbols", "[graph][infer]") {
  const Graph g = parsed(R"(
  in    %x: f32[N,S,768]
  const @zero: s64[1] = 0
  const @one: s64[1] = 1
  const @rest: s64[2] = [12, 64]
  const @two: s64[] = 2
  %shape: s64[3] = shape(%x) {end = 3}
  %n: s64[1] = gather(%shape, @zero) {axis = 0}
  %s: s64[1] = gather(%shape, @one) {axis = 0}
  %s2: s64[1] = mul(%s, @two)
  %all: s64[4] = concat(%n, %s2, @rest) {axis = 0}
  out   %all
)",
                         "(N in 1..64, S in 1..512)");
  CHECK(inferred(g, "shape") == "N S 768");
  CHECK(inferred(g, "n") == "N");
  CHECK(inferred(g, "all") == "N 2*S 12 64");
  ValueInference values(g);
  auto known = values.known(g.find("all"));
  REQUIRE(known);
  CHECK((*known)[1] == Expr::symbol("S") * 2);
}

TEST_CASE("what depends on data is unknown, its neighbours are not", "[graph][infer]") {
  const Graph g = parsed(R"(
  in    %x: f32[N,4]
  in    %i: s64[1]
  %shape: s64[2] = shape(%x) {end = 2}
  %all: s64[3] = concat(%i, %shape) {axis = 0}
  out   %all
)",
                         "(N)");
  CHECK(inferred(g, "all") == "? N 4");
  ValueInference values(g);
  CHECK_FALSE(values.known(g.find("all")));
  CHECK(values.elements(g.find("x")).empty());
  CHECK_FALSE(values.known(g.find("x")));
}

TEST_CASE("division, negation and where on symbols", "[graph][infer]") {
  const Graph g = parsed(R"(
  in    %x: f32[4*H]
  const @two: s64[] = 2
  const @zero: s64[] = 0
  %n: s64[1] = shape(%x) {end = 1}
  %half: s64[1] = div(%n, @two)
  %neg: s64[1] = neg(%half)
  %positive: bool[1] = greater(%n, @zero)
  %chosen: s64[1] = where(%positive, %half, %neg)
  out   %chosen
)",
                         "(H in 1..100)");
  CHECK(inferred(g, "half") == "2*H");
  CHECK(inferred(g, "neg") == "-2*H");
  CHECK(inferred(g, "positive") == "1");
  CHECK(inferred(g, "chosen") == "2*H");
}

TEST_CASE("a kernel on Exprs: reductions, seq, guards", "[graph][infer]") {
  const auto outputs = [](const char* body) {
    REQUIRE_OK(Kernel k, parse_kernel(std::string("dlc.kernel 1\nkernel @k {\n") + body + "}\n"));
    return text(evaluate_on_exprs(k, no_inputs(), {{"N", Range(1, 8)}})[0]);
  };
  CHECK(outputs("out Y: s64[3]\nfor i < 3: Y[i] = sum[k < 4] (N*k + i)\n") == "6*N 6*N + 4 6*N + 8");
  CHECK(outputs("temp T: s64[3]\nout Y: s64[3]\nfor i < 3: T[i] = N\nfor i < 3: Y[i] = T[i + 1] ?: -1\n") == "N N -1");
  CHECK(outputs("out Y: s64[3]\nseq t < 3 by 1 {\n Y[t] = (Y[t - 1] ?: 0) + N\n}\n") == "N 2*N 3*N");
  CHECK(outputs("out Y: s64[2]\nfor i < 2: Y[i] = max(N + i, 1)\n") == "N N + 1");
  CHECK(outputs("out Y: s8[2]\nfor i < 2: Y[i] = 100*i + 50\n") == "50 -106");
}

TEST_CASE("numbers that an Expr does not have are left to the interpreter", "[graph][infer]") {
  const Graph g = parsed(R"(
  in    %x: f32[4]
  const @top: u64[1] = 18446744073709551615
  const @one: u64[1] = 1
  const @two: u64[1] = 2
  const @minus: s64[1] = -1
  const @byte: s64[1] = 200
  %less: bool[1] = less(@top, @one)
  %max: u64[1] = max_n(@top, @one)
  %half: u64[1] = div(@top, @two)
  %below: u64[1] = sub(@one, @two)
  %wrapped: u64[1] = cast(@minus) {to: u64}
  %sum: u64[1] = add(@one, @two)
  %known: bool[1] = less(@one, @two)
  %narrow: s8[1] = cast(@byte) {to: s8}
  out   %less
)");
  for (const char* unknown : {"less", "max", "half", "below", "wrapped"}) CHECK(inferred(g, unknown) == "?");
  CHECK(inferred(g, "sum") == "3");
  CHECK(inferred(g, "known") == "1");
  CHECK(inferred(g, "narrow") == "-56");
}
