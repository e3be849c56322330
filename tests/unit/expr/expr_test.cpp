// The named rules, one line each.
#include "dlc/expr/expr.h"

#include "dlc_test/catch.h"

using namespace dlc;

namespace {
Expr parse(std::string_view text) {
  auto e = parse_expr(text);
  if (!e) FAIL(text << ": " << to_string(e.error()));
  return *e;
}
// The canonical text of `text`.
std::string canon(std::string_view text) { return to_string(parse(text)); }
std::string canon(std::string_view text, const Ranges& r) { return to_string(simplify(parse(text), r)); }
}  // namespace

TEST_CASE("sums of products are canonical") {
  CHECK(canon("x*2 + y - x") == "x + y");
  CHECK(canon("(x + 1)*(x - 1)") == "x*x - 1");
  CHECK(canon("1 + n*4") == "4*n + 1");
  CHECK(parse("a*b*c") == parse("c*(b*a)"));
  CHECK(canon("x - x") == "0");
}

TEST_CASE("division and remainder without ranges") {
  CHECK(canon("(n*4 + 3) // 4") == "n");
  CHECK(canon("(2*H + 2 - 3) // 2 + 1") == "H");  // convolution, stride 2, kernel 3, padding 1
  CHECK(canon("4*(x // 4) + x % 4") == "x");
  CHECK(canon("n*(x // n) + x % n") == "x");
  CHECK(canon("x - 4*(x // 4)") == "x % 4");
  CHECK(canon("n*m*(x // n) - m*x") == "-m*(x % n)");
  CHECK(canon("4*((x + 3) // 4) - x") == "-((x + 3) % 4) + 3");  // the padding up to a multiple of 4
  CHECK(canon("64*(c // 16) + c % 16") == "64*(c // 16) + c % 16");
  CHECK(canon("(x // 4) // 3") == "x // 12");
  CHECK(canon("(x // 4 + 1) // 3") == "(x + 4) // 12");
  CHECK(canon("(6*x) // 4") == "x + x // 2");
  CHECK(canon("(6*x + 1) // 4") == "x + x // 2");
  CHECK(canon("(6*x + 1) % 4") == "2*(x % 2) + 1");
  CHECK(canon("(x % 12) % 4") == "x % 4");
  CHECK(canon("(x % 12) // 4") == "(x // 4) % 3");
  CHECK(canon("12*(i // 12) + 4*((i // 4) % 3) + i % 4") == "i");
  CHECK(canon("(12*x + y % 4) // 12") == "x");
  CHECK(canon("(n*x) // n") == "x");
  CHECK(canon("(n*x + x) // (n + 1)") == "x");
  CHECK(canon("(n*x) // (n*m)") == "x // m");
  CHECK(canon("(n*x) % (n*m)") == "n*(x % m)");
  CHECK(canon("x % -4") == "-((-x) % 4)");
  CHECK(canon("-7 // 2") == "-4");
  CHECK(canon("-7 % 2") == "1");
}

TEST_CASE("min, max and select") {
  CHECK(canon("min(x, x + 1)") == "x");
  CHECK(canon("max(3, 5)") == "5");
  CHECK(parse("min(a, min(b, c))") == parse("min(min(c, a), b)"));
  CHECK(canon("select(x, y, y)") == "y");
  CHECK(canon("select(x % 3, a, b)") == "a");
  CHECK(parse("select(x - y, x, y)") == parse("max(x, y)"));
  CHECK(parse("select(2*x + 1, a, b)") == parse("select(x, a, b)"));
  CHECK(parse("select(-x - 1, a, b)") == parse("select(x, b, a)"));
}

TEST_CASE("simplify with ranges") {
  CHECK(canon("x % 16", {{"x", {0, 15}}}) == "x");
  CHECK(canon("(16*c1 + c0) // 16", {{"c0", {0, 15}}}) == "c1");
  CHECK(canon("(16*c1 + c0) % 16", {{"c0", {0, 15}}}) == "c0");
  CHECK(canon("(32*a + 16*b + c) // 32", {{"b", {0, 1}}, {"c", {0, 15}}}) == "a");
  CHECK(canon("min(S, 2147483647)", {{"S", {1, 2147483647}}}) == "S");  // a slice to the end
  CHECK(canon("select(N - 1 - x, a, b)", {{"x", Range(0, Expr::symbol("N") - 1)}}) == "a");
  CHECK(canon("N // 4 * 4", {{"N", [] {
                                Range r(0, 100);
                                r.divisible_by = 4;
                                return r;
                              }()}}) == "N");
  CHECK(canon("(N + x) // 4 * 4", {{"x", {0, 3}}, {"N", [] {
                                                     Range r;
                                                     r.divisible_by = 4;
                                                     return r;
                                                   }()}}) == "N");
}

TEST_CASE("symbolic upper bounds") {
  const Expr n = Expr::symbol("n"), m = Expr::symbol("M");
  const Ranges r = {
      {"n", {1, Interval::kPosInf}}, {"M", {1, Interval::kPosInf}}, {"j", Range(0, n - 1)}, {"x", Range(0, m - 1)}};
  CHECK(canon("(x*n + j) // n", r) == "x");
  CHECK(canon("(x*n + j) % n", r) == "j");
  CHECK(canon("(64*y + d) // (64*n)", {{"n", {1, Interval::kPosInf}}, {"d", {0, 63}}}) == "y // n");
  CHECK(canon("(64*y + d) % (64*n)", {{"n", {1, Interval::kPosInf}}, {"d", {0, 63}}}) == "d + 64*(y % n)");
  CHECK(canon("(y*n + j) // (n*M)", r) == "y // M");
  CHECK(canon("(y*n + j) % (n*M)", r) == "n*(y % M) + j");
  CHECK(canon("((64*n*x + 64*j + d) // 64) % n", [&] {
          Ranges q = r;
          q["d"] = {0, 63};
          return q;
        }()) == "j");
  CHECK(provably_lt(parse("x*n + j"), parse("M*n"), r));
  CHECK_FALSE(provably_lt(parse("x*n + j"), parse("M*n - 1"), r));
  CHECK(provably_le(parse("min(x, 7)"), parse("M - 1"), r));
  CHECK(provably_le(parse("n"), parse("4*((n + 3) // 4)"), {}));
  CHECK(provably_lt(parse("4*((n + 3) // 4)"), parse("n + 4"), {}));
  // A size that is rounded up: the quotient inside a quotient is no looser bound than the quotient.
  CHECK(provably_le(parse("72 - 72*((N + 2) // 4)"), parse("-64*((72*((N + 2) // 4) - 72) // 64)"), {}));
  CHECK_FALSE(provably_le(parse("72 - 72*((N + 2) // 4)"), parse("-64*((72*((N + 2) // 4) - 72) // 64) - 1"), {}));
  CHECK(provably_lt(parse("4*i + k"), parse("N"), {{"i", Range(0, parse("N // 4 - 1"))}, {"k", {0, 3}}}));
  CHECK(provably_lt(parse("x % n"), parse("n"), {{"n", {1, Interval::kPosInf}}}));
  CHECK_FALSE(provably_lt(parse("x % n"), parse("n"), {}));
  CHECK(provably_eq(parse("x + 4*(x // 4) - x % 4"), parse("8*(x // 4)"), {}));
}

TEST_CASE("overflow is invalid and sticky") {
  const Expr big = Expr(INT64_MAX), x = Expr::symbol("x");
  CHECK_FALSE((big + 1).valid());
  CHECK_FALSE((big * x * 2).valid());
  CHECK_FALSE(((big + 1) * 0).valid());
  CHECK_FALSE(floor_div(x, 0).valid());
  CHECK((big * x + big * x * -1).is(0));
}

TEST_CASE("errors of the parser say where") {
  REQUIRE_ERROR(parse_expr("x + ", {"f", 2, 5, {}}), "f:2:9");
  REQUIRE_ERROR(parse_expr("x / 2"), "'//'");
  REQUIRE_ERROR(parse_expr("foo(1)"), "unknown function 'foo'");
  REQUIRE_ERROR(parse_expr("min(1)"), "takes 2 arguments");
  REQUIRE_ERROR(parse_expr("x // 0"), "division by zero");
  REQUIRE_ERROR(parse_expr("9223372036854775808"), "64 bits");
  REQUIRE_ERROR(parse_expr(std::string(100000, '(')), "200 levels");
  REQUIRE_ERROR(parse_expr(std::string(100000, '-') + "x"), "200 levels");
}

TEST_CASE("affine") {
  const std::vector<std::string> vars = {"x", "y"};
  const auto a = affine(parse("4*x*n + y + x + n // 2"), vars);
  REQUIRE(a);
  CHECK(to_string(a->base) == "n // 2");
  CHECK(to_string(a->coefficients[0]) == "4*n + 1");
  CHECK(to_string(a->coefficients[1]) == "1");
  CHECK_FALSE(affine(parse("x*y"), vars));
  CHECK_FALSE(affine(parse("x // 2"), vars));
}

TEST_CASE("shapes and addresses of the ops come out plain") {
  const Ranges dims = {{"N", {1, 2147483647}}, {"S", {1, 2147483647}}, {"H", {1, 2147483647}}};
  CHECK(canon("(H + 2 - 3) // 1 + 1") == "H");                                 // conv, same padding
  CHECK(canon("max(0, (min(2147483647, S) - 0 + 1 - 1) // 1)", dims) == "S");  // slice [0:INT_MAX]
  CHECK(canon("max(0, (min(S, 9223372036854775807) - max(0, min(1, S))) // 1)", dims) == "S - 1");  // slice [1:]
  CHECK(canon("1 + H + S") == "H + S + 1");                                                         // concat
  CHECK(canon("(N*S*12*64) // (N*S*12)") == "64");                                                  // reshape's -1
  CHECK(canon("(768*N*S) // (64*N*S)") == "12");
  // Layout "n c/16 h+1+1 w+1+1 c16" read by a 3x3 convolution whose input channel is 16*c1 + c0.
  const Ranges tile = {{"c0", {0, 15}}};
  CHECK(canon("53824*((16*c1 + c0) // 16) + 928*(y + k.0) + 16*(x + k.1) + (16*c1 + c0) % 16", tile) ==
        "c0 + 53824*c1 + 928*k.0 + 16*k.1 + 16*x + 928*y");
  // A linear index taken apart by one shape and put together by another.
  const Ranges grid = {{"a", {0, 11}}, {"b", {0, 63}}};
  CHECK(canon("((64*a + b) // 64) % 12", grid) == "a");
  CHECK(canon("(64*a + b) % 768", grid) == "64*a + b");
  CHECK(canon("768*((64*a + b) // 768)", grid) == "0");
  CHECK(canon("(o // 64) * 64 + o % 64") == "o");
}

TEST_CASE("symbols, bounds and the structural order") {
  const Expr e = parse("b*min(a, z // 4) + select(k.1, 2, q)");
  CHECK(e.symbols() == std::vector<std::string>{"a", "b", "k.1", "q", "z"});
  CHECK(e.mentions("z"));
  CHECK_FALSE(e.mentions("k"));
  CHECK(bounds(parse("2*x - y"), {{"x", {0, 3}}, {"y", {-1, 5}}}) == Interval{-5, 7});
  CHECK(bounds(parse("x // 4 + x % 4"), {{"x", {5, 7}}}) == Interval{2, 4});
  CHECK(bounds(parse("x*y"), {{"x", {-2, 3}}, {"y", {-5, 7}}}) == Interval{-15, 21});
  CHECK(bounds(parse("q + 1"), {}) == Interval{});
  CHECK(bounds(parse("j"), {{"j", Range(0, parse("n - 1"))}, {"n", {1, 8}}}) == Interval{0, 7});
  CHECK(structurally_less(parse("x"), parse("y")));
  CHECK_FALSE(structurally_less(parse("x"), parse("x")));
  CHECK(evaluate(parse("select(x, 1 // x, 7)"), {{"x", -1}}) == 7);
  CHECK_FALSE(evaluate(parse("1 // x"), {{"x", 0}}));
  CHECK_FALSE(evaluate(parse("x + y"), {{"x", 0}}));
  CHECK(substitute(parse("select(n - 1, x // n, 5)"), {{"n", 0}}) == Expr(5));
  CHECK_FALSE(substitute(parse("x // n"), {{"n", 0}}).valid());
}

TEST_CASE("a maximum of many is the same in whichever order it is built, and loses what is below a new leaf") {
  Expr chain(0), reversed(0);
  constexpr int kLeaves = 150;
  for (int i = 0; i < kLeaves; ++i) {
    chain = max(chain, Expr::symbol("N" + std::to_string(i)));
    reversed = max(reversed, Expr::symbol("N" + std::to_string(kLeaves - 1 - i)));
  }
  REQUIRE(chain.valid());
  CHECK(chain == reversed);
  CHECK(max(chain, Expr::symbol("N7")) == chain);
  CHECK(max(chain, Expr::symbol("N7") + 1) != chain);
  const std::string text = to_string(max(chain, Expr::symbol("N7") + 1));
  CHECK(text.find("N7 + 1") != std::string::npos);
  CHECK(text.find("N7,") == std::string::npos);  // below N7 + 1
}
