// Properties of random formulas, each checked at every point of small ranges against plain integer arithmetic.
#include "dlc_test/catch.h"
#include "tests/unit/expr/random_expr.h"

using namespace dlc;
using namespace dlc_test;

namespace {

// Every point of x, y in ranges of their own; j below a symbolic extent n.
struct Space {
  Ranges ranges;
  std::vector<Point> points;

  explicit Space(Generator& g) {
    std::map<std::string, std::pair<int64_t, int64_t>> limits;
    for (const char* s : {"x", "y", "n"}) {
      const int64_t lo = *s == 'n' ? g.between(1, 3) : g.between(-8, 8);
      limits[s] = {lo, lo + g.between(0, *s == 'n' ? 4 : 9)};
      ranges[s] = Range(limits[s].first, limits[s].second);
    }
    // Half of the time the proofs must do without the numbers of n, or know a divisor of y.
    if (g.between(0, 1)) ranges["n"].bounds.hi = Interval::kPosInf;
    const int64_t step = g.between(0, 1) ? g.between(2, 4) : 1;
    ranges["y"].divisible_by = step;
    ranges["j"] = Range(0, Expr::symbol("n") - 1);
    for (int64_t x = limits["x"].first; x <= limits["x"].second; ++x) {
      for (int64_t y = limits["y"].first; y <= limits["y"].second; ++y) {
        if (y % step != 0) continue;
        for (int64_t n = limits["n"].first; n <= limits["n"].second; ++n) {
          for (int64_t j = 0; j < n; ++j) points.push_back({{"x", x}, {"y", y}, {"n", n}, {"j", j}});
        }
      }
    }
  }
};

std::string at(const Point& p) {
  std::string s;
  for (const auto& [name, v] : p) s += name + "=" + std::to_string(v) + " ";
  return s;
}

const std::vector<std::string> kSymbols = {"x", "y", "n", "j"};

}  // namespace

TEST_CASE("what the operators build has the formula's value") {
  Generator g(1, kSymbols);
  for (int i = 0; i < 20000; ++i) {
    const FormulaPtr f = g.formula(static_cast<int>(g.between(1, 5)));
    const Expr e = build(*f);
    if (!e.valid()) continue;  // divides by the constant 0
    for (int k = 0; k < 8; ++k) {
      const Point p = {
          {"x", g.between(-50, 50)}, {"y", g.between(-9, 9)}, {"n", g.between(-5, 20)}, {"j", g.between(0, 7)}};
      const auto expected = value_of(*f, p);
      if (!expected) continue;
      const auto actual = evaluate(e, p);
      INFO(text_of(*f) << " -> " << to_string(e) << " at " << at(p));
      REQUIRE(actual == expected);
    }
  }
}

TEST_CASE("text round-trips to the same node") {
  Generator g(2, kSymbols);
  for (int i = 0; i < 20000; ++i) {
    const Expr e = build(*g.formula(static_cast<int>(g.between(1, 5))));
    if (!e.valid()) continue;
    const std::string text = to_string(e);
    INFO(text);
    REQUIRE_OK(const Expr back, parse_expr(text));
    INFO(to_string(back));
    REQUIRE(back == e);
  }
}

TEST_CASE("simplify and bounds hold at every point") {
  Generator g(3, kSymbols);
  int smaller = 0;
  for (int i = 0; i < 3000; ++i) {
    const Space space(g);
    const FormulaPtr f = g.formula(static_cast<int>(g.between(1, 4)));
    const Expr e = build(*f);
    if (!e.valid()) continue;
    const Expr s = simplify(e, space.ranges);
    const Interval b = bounds(e, space.ranges), bs = bounds(s, space.ranges);
    smaller += s != e;
    INFO(text_of(*f) << " -> " << to_string(e) << " -> " << to_string(s));
    for (const Point& p : space.points) {
      const auto expected = value_of(*f, p);
      if (!expected) continue;
      INFO(at(p) << " in [" << b.lo << ", " << b.hi << "]");
      REQUIRE(evaluate(s, p) == expected);
      REQUIRE((b.lo <= *expected && *expected <= b.hi));
      REQUIRE((bs.lo <= *expected && *expected <= bs.hi));
    }
    REQUIRE_OK(const Expr back, parse_expr(to_string(s)));
    INFO(to_string(back));
    REQUIRE(back == s);
  }
  CHECK(smaller > 500);
}

TEST_CASE("what is proven is true at every point") {
  Generator g(4, kSymbols);
  int lt = 0, le = 0, eq = 0, missed = 0;
  for (int i = 0; i < 4000; ++i) {
    const Space space(g);
    const FormulaPtr fa = g.formula(static_cast<int>(g.between(1, 3))),
                     fb = g.formula(static_cast<int>(g.between(0, 3)));
    const Expr a = build(*fa), b = build(*fb);
    if (!a.valid() || !b.valid()) continue;
    const bool is_lt = provably_lt(a, b, space.ranges), is_le = provably_le(a, b, space.ranges),
               is_eq = provably_eq(a, b, space.ranges);
    lt += is_lt;
    le += is_le;
    eq += is_eq;
    bool all_le = true;
    for (const Point& p : space.points) {
      const auto va = value_of(*fa, p), vb = value_of(*fb, p);
      if (!va || !vb) continue;
      INFO(text_of(*fa) << " against " << text_of(*fb) << " at " << at(p));
      if (is_lt) REQUIRE(*va < *vb);
      if (is_le) REQUIRE(*va <= *vb);
      if (is_eq) REQUIRE(*va == *vb);
      all_le &= *va <= *vb;
    }
    missed += all_le && !is_le && space.ranges.at("n").bounds.hi != Interval::kPosInf;
  }
  INFO("lt " << lt << " le " << le << " eq " << eq << " true but not proven " << missed);
  CHECK(lt > 200);
  CHECK(le > lt);
  CHECK(eq > 0);
  CHECK(missed < le);
}

TEST_CASE("substitution commutes with evaluation") {
  Generator g(5, kSymbols);
  for (int i = 0; i < 10000; ++i) {
    const FormulaPtr f = g.formula(static_cast<int>(g.between(1, 4)));
    const FormulaPtr fx = g.formula(static_cast<int>(g.between(0, 2))),
                     fy = g.formula(static_cast<int>(g.between(0, 2)));
    const Expr e = build(*f), x = build(*fx), y = build(*fy);
    if (!e.valid() || !x.valid() || !y.valid()) continue;
    const Expr s = substitute(e, {{"x", x}, {"y", y}});
    if (!s.valid()) continue;  // a divisor became 0
    for (int k = 0; k < 6; ++k) {
      const Point p = {
          {"x", g.between(-9, 9)}, {"y", g.between(-9, 9)}, {"n", g.between(1, 9)}, {"j", g.between(0, 7)}};
      const auto vx = value_of(*fx, p), vy = value_of(*fy, p);
      if (!vx || !vy) continue;
      Point q = p;
      q["x"] = *vx;
      q["y"] = *vy;
      const auto expected = value_of(*f, q);
      if (!expected) continue;
      INFO(text_of(*f) << " with x=" << text_of(*fx) << " y=" << text_of(*fy) << " -> " << to_string(s) << " at "
                       << at(p));
      REQUIRE(evaluate(s, p) == expected);
    }
  }
}

TEST_CASE("affine parts add up to the whole") {
  Generator g(6, kSymbols);
  const std::vector<std::string> vars = {"x", "j"};
  int found = 0;
  for (int i = 0; i < 5000; ++i) {
    const Expr e = build(*g.formula(static_cast<int>(g.between(1, 4))));
    if (!e.valid()) continue;
    const auto a = affine(e, vars);
    if (!a) continue;
    ++found;
    REQUIRE(a->coefficients.size() == 2);
    for (const Expr& part : {a->base, a->coefficients[0], a->coefficients[1]}) {
      REQUIRE_FALSE(part.mentions("x"));
      REQUIRE_FALSE(part.mentions("j"));
    }
    REQUIRE(a->base + a->coefficients[0] * Expr::symbol("x") + a->coefficients[1] * Expr::symbol("j") == e);
  }
  CHECK(found > 1000);
}

TEST_CASE("damaged text is refused or means what it says") {
  Generator g(9, kSymbols);
  const std::string_view alphabet = "xy01(),+-*/% minselect.$";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = text_of(*g.formula(3));
    for (int64_t k = g.between(1, 3); k > 0; --k) {
      const auto at = static_cast<size_t>(g.between(0, static_cast<int64_t>(text.size()) - 1));
      const char c = alphabet[static_cast<size_t>(g.between(0, static_cast<int64_t>(alphabet.size()) - 1))];
      if (g.between(0, 1)) {
        text[at] = c;
      } else {
        text.insert(at, 1, c);
      }
    }
    const auto e = parse_expr(text);
    if (!e) {
      REQUIRE_FALSE(e.error().message().empty());
      continue;
    }
    ++accepted;
    INFO(text);
    REQUIRE(e->valid());
    REQUIRE(parse_expr(to_string(*e)).value() == *e);
  }
  CHECK(accepted > 500);
  CHECK(accepted < 15000);
}
