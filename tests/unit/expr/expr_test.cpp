// The named rules, one line each.
#include "dlc/expr/expr.h"

#include <thread>

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
  CHECK(provably_lt(parse("x*n + j"), parse("M*n"), r));
  CHECK_FALSE(provably_lt(parse("x*n + j"), parse("M*n - 1"), r));
  CHECK(provably_le(parse("min(x, 7)"), parse("M - 1"), r));
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
