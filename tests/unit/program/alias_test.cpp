// Alias sets: what becomes a view, what may take an operand's place, and the proof that refuses wrong ones.
#include "dlc/program/alias.h"

#include <cstring>

#include "dlc/program/layout.h"
#include "dlc_test/tensors.h"

using namespace dlc;
using dlc_test::noise;

namespace {

Tensor noise(const std::vector<Expr>& shape, int64_t n, uint32_t seed) {
  std::vector<int64_t> dims;
  for (const Expr& d : shape) dims.push_back(evaluate(d, Bindings{{"N", n}}).value());
  return dlc_test::noise(std::move(dims), seed);
}

Program lowered(const std::string& body, const std::string& symbols = "(N in 1..8)") {
  const std::string text = "dlc.graph 1\ngraph @g " + symbols + " {\n" + body + "}\n";
  REQUIRE_OK(const Graph g, parse_graph(text));
  REQUIRE_OK(Program p, lower_to_program(g));
  return p;
}

std::vector<Tensor> run(const Program& p, int64_t n) {
  std::vector<Tensor> inputs;
  for (const auto& b : p.buffers)
    if (b.kind == BufferKind::input) inputs.push_back(noise(b.type.shape, n, static_cast<uint32_t>(inputs.size()) + 3));
  REQUIRE_OK(auto out, run_program(p, inputs));
  return out;
}

// The same bits before and after, for several N; the text round-trips.
AliasStats check_aliased(Program& p) {
  std::vector<std::vector<Tensor>> before;
  for (const int64_t n : {1, 3}) before.push_back(run(p, n));
  REQUIRE_OK(const AliasStats stats, alias_sets(p));
  for (const int64_t n : {1, 3}) {
    const auto after = run(p, n);
    const auto& expected = before[n == 1 ? 0 : 1];
    REQUIRE(after.size() == expected.size());
    for (size_t i = 0; i < after.size(); ++i) {
      REQUIRE(after[i].shape() == expected[i].shape());
      CHECK(std::memcmp(after[i].bytes(), expected[i].bytes(), after[i].byte_size()) == 0);
    }
  }
  REQUIRE_OK(const Program again, parse_program(print(p)));
  CHECK(print(again) == print(p));
  return stats;
}

bool copies(const Program& p) { return !copied_bytes(p).is(0); }

// Three layers that each concatenate everything before them, as densely connected networks do.
constexpr const char* kDense = R"(
  in    %x: f32[N,8,6,6]
  %a: f32[N,8,6,6] = sigmoid(%x)
  %b: f32[N,8,6,6] = softmax(%a) {axis = 1}
  %ab: f32[N,16,6,6] = concat(%a, %b) {axis = 1}
  %c: f32[N,16,6,6] = softmax(%ab) {axis = 1}
  %abc: f32[N,32,6,6] = concat(%a, %b, %c) {axis = 1}
  %d: f32[N,32,6,6] = softmax(%abc) {axis = 1}
  %all: f32[N,64,6,6] = concat(%a, %b, %c, %d) {axis = 1}
  %y: f32[N,64,6,6] = softmax(%all) {axis = 1}
  out   %y "y"
)";

}  // namespace

TEST_CASE("the operands of a concat are written where it wants them", "[program]") {
  Program p = lowered(kDense);
  CHECK(copies(p));
  const auto stats = check_aliased(p);
  CHECK(stats.calls == 3);
  CHECK_FALSE(copies(p));
  Program one = lowered(kDense, "(N in 1..1)");
  REQUIRE_OK(const auto of_one, alias_sets(one));
  CHECK(of_one.calls == 3);
}

TEST_CASE("a concat that is fused with what follows leaves its operands where another one wants them", "[program]") {
  Program p = lowered(R"(
  in    %x: f32[N,8,6,6]
  %a: f32[N,8,6,6] = softmax(%x) {axis = 1}
  %b: f32[N,8,6,6] = softmax(%a) {axis = 1}
  %ab: f32[N,16,6,6] = concat(%a, %b) {axis = 1}
  %s: f32[N,16,6,6] = sigmoid(%ab)
  %c: f32[N,8,6,6] = max_pool(%b) {kernel = [1, 1], stride = [1, 1]}
  %all: f32[N,24,6,6] = concat(%a, %b, %c) {axis = 1}
  %t: f32[N,24,6,6] = softmax(%all) {axis = 1}
  out   %s "s"
  out   %t "t"
)");
  CHECK(check_aliased(p).views == 3);
  CHECK_FALSE(copies(p));
  CHECK(print(p).find("?:") == std::string::npos);
}

TEST_CASE("slices and transposes are read where they come from", "[program]") {
  Program p = lowered(R"(
  in    %x: f32[N,12,24]
  %s: f32[N,12,24] = softmax(%x) {axis = 2}
  %r: f32[N,12,3,8] = reshape(%s) {shape = [N, 12, 3, 8]}
  %t: f32[N,3,12,8] = transpose(%r) {perm = [0, 2, 1, 3]}
  %u: f32[N,3,12,8] = softmax(%t) {axis = 3}
  %part: f32[N,2,12,8] = slice(%u) {start = [0, 1, 0, 0], stop = [N, 3, 12, 8]}
  %y: f32[N,2,12,8] = softmax(%part) {axis = 3}
  out   %y "y"
)");
  CHECK(copies(p));
  CHECK(check_aliased(p).views == 2);
  CHECK_FALSE(copies(p));
}

TEST_CASE("what cannot be a view stays a copy", "[program]") {
  SECTION("rows would no longer be contiguous") {
    Program p = lowered(R"(
  in    %x: f32[N,12,8]
  %s: f32[N,12,8] = softmax(%x) {axis = 2}
  %t: f32[N,8,12] = transpose(%s) {perm = [0, 2, 1]}
  %y: f32[N,8,12] = softmax(%t) {axis = 2}
  out   %y "y"
)");
    check_aliased(p);
    CHECK(copies(p));
  }
  SECTION("an operand twice, an input, and a reader that looks beyond the slice") {
    Program p = lowered(R"(
  in    %x: f32[N,4,6,6]
  %s: f32[N,4,6,6] = softmax(%x) {axis = 1}
  %c: f32[N,12,6,6] = concat(%s, %x, %s) {axis = 1}
  %m: f32[N,12,6,6] = softmax(%c) {axis = 1}
  %p: f32[N,4,6,6] = slice(%m) {start = [0, 2, 0, 0], stop = [N, 6, 6, 6]}
  %y: f32[N,4,6,6] = max_pool(%p) {kernel = [3, 3], stride = [1, 1], pad_lo = [1, 1], pad_hi = [1, 1]}
  out   %y "y"
)");
    check_aliased(p);
    CHECK(copied_bytes(p) == Expr::symbol("N") * Expr((12 + 4) * 36 * 4));
  }
}

TEST_CASE("a result takes the bytes of an operand that is not needed any more", "[program]") {
  Program p = lowered(R"(
  in    %x: f32[N,64]
  const @w: f32[64,64] = 0.5
  %a: f32[N,64] = softmax(%x) {axis = 1}
  %m: f32[N,64] = matmul(%a, @w)
  %b: f32[N,64] = add(%m, %a)
  %n: f32[N,64] = matmul(%b, @w)
  %c: f32[N,64] = add(%n, %b)
  %y: f32[N,64] = softmax(%c) {axis = 1}
  out   %y "y"
)");
  // Each product reads rows of what its residual sum would overwrite, so neither may.
  CHECK(check_aliased(p).in_place == 0);
  Program residual = lowered(R"(
  in    %x: f32[N,64]
  const @w: f32[64,64] = 0.5
  %a: f32[N,64] = softmax(%x) {axis = 1}
  %q: f32[N,64] = softmax(%a) {axis = 1}
  %m: f32[N,64] = matmul(%q, @w)
  %b: f32[N,64] = add(%m, %a)
  %y: f32[N,64] = softmax(%b) {axis = 1}
  out   %y "y"
)");
  const Expr before = residual.arena_bytes;
  CHECK(check_aliased(residual).in_place == 1);
  CHECK(print(residual).find(" over ") != std::string::npos);
  CHECK(provably_lt(residual.arena_bytes, before, residual.symbols));
}

TEST_CASE("blocked layouts and alias sets together", "[program]") {
  Program p = lowered(kDense, "(N in 1..8)");
  REQUIRE_OK(const int blocked, assign_layouts(p, {8}));
  CHECK(blocked == 0);  // no convolution asks for blocks here
  check_aliased(p);
  CHECK_FALSE(copies(p));
}

namespace {

// Two kernels that each write a half of t, one that reads it.
std::string halves(const std::string& calls, const std::string& buffers = "", int64_t second = 4) {
  return "dlc.program 1\nprogram @p {\n  input x \"x\": f32[4]\n  temp t: f32[8] at 0\n" + buffers +
         "  output y \"y\": f32[8]\n  arena 64\n" + calls +
         "}\n"
         "dlc.kernel 1\nkernel @low {\n  in x: f32[4]\n  out t: f32[8]\n  for i < 4: t[i] = x[i] + 1.0\n}\n"
         "dlc.kernel 1\nkernel @high {\n  in x: f32[4]\n  out t: f32[8]\n  for i < 4: t[i + " +
         std::to_string(second) +
         "] = x[i] + 2.0\n}\n"
         "dlc.kernel 1\nkernel @read {\n  in t: f32[8]\n  out y: f32[8]\n  for i < 8: y[i] = t[i] * 2.0\n}\n"
         "dlc.kernel 1\nkernel @turn {\n  in t: f32[8]\n  out y: f32[8]\n  for i < 8: y[i] = t[7 - i] * 2.0\n}\n"
         "dlc.kernel 1\nkernel @both {\n  in t: f32[8]\n  in u: f32[8]\n  out y: f32[8]\n"
         "  for i < 8: y[i] = t[i] + u[i]\n}\n";
}

}  // namespace

TEST_CASE("the proof refuses programs that lose a value", "[program]") {
  const std::string low = "  call @low(x, t)\n", high = "  call @high(x, t)\n", read = "  call @read(t, y)\n";
  CHECK(parse_program(halves(low + high + read)).has_value());
  REQUIRE_ERROR(parse_program(halves(low + read + high)), "@read reads t before call @high has written its part");
  REQUIRE_ERROR(parse_program(halves(low + read)), "of the 32 bytes of t, 16 are written");
  REQUIRE_ERROR(parse_program(halves(low + high + read, "", 3)), "@high may write what @low wrote to t");

  const std::string u = "  temp u: f32[8] over t\n";
  const std::string over = low + high + "  call @read(t, u)\n";
  CHECK(parse_program(halves(over + "  call @read(u, y)\n", u)).has_value());
  REQUIRE_ERROR(parse_program(halves(over + "  call @both(t, u, y)\n", u)),
                "u cannot take the place of t: call @both still uses t");
  REQUIRE_ERROR(parse_program(halves(low + high + "  call @turn(t, u)\n  call @read(u, y)\n", u)),
                "call @turn reads other elements than the one it computes");
  REQUIRE_ERROR(parse_program(halves(over + "  call @read(u, y)\n", "  temp u: f32[8] over x\n")),
                "no buffer of the program's own");
  REQUIRE_ERROR(
      parse_program(halves(over + "  call @read(t, v)\n  call @both(u, v, y)\n", u + "  temp v: f32[8] over t\n")),
      "cannot take the place");
  REQUIRE_ERROR(parse_program(halves(low + high + read, "  temp v: f32[8] in t at 4\n")), "v does not lie inside t");
}
