// Overflow, size limits and threads.
#include <thread>

#include "core/expr/effort.h"
#include "dlc_test/catch.h"
#include "tests/unit/expr/random_expr.h"

using namespace dlc;
using namespace dlc_test;

namespace {

__extension__ typedef __int128 Wide;
constexpr Wide kTooLarge = Wide{1} << 100;

// Like value_of, in 128 bits; nullopt beyond 2^100, where the check says nothing.
std::optional<Wide> wide_value(const Formula& f, const Point& p) {
  if (f.op == 'c') return f.value;
  if (f.op == 's') return p.at(f.name);
  const auto a = wide_value(*f.args[0], p);
  if (!a) return {};
  if (f.op == '?') return wide_value(*f.args[*a >= 0 ? 1 : 2], p);
  const auto b = wide_value(*f.args[1], p);
  if (!b) return {};
  Wide r = 0;
  switch (f.op) {
    case '+':
      r = *a + *b;
      break;
    case '-':
      r = *a - *b;
      break;
    case '*':
      if (__builtin_mul_overflow(*a, *b, &r)) return {};
      break;
    case '<':
      return std::min(*a, *b);
    case '>':
      return std::max(*a, *b);
    default: {
      if (*b == 0) return {};
      const Wide q = *a / *b - ((*a % *b != 0) && ((*a < 0) != (*b < 0)));
      r = f.op == '/' ? q : *a - q * *b;
    }
  }
  if (r > kTooLarge || r < -kTooLarge) return {};
  return r;
}

// Constants at the edges of int64.
void enlarge(Formula& f, Generator& g) {
  static constexpr int64_t kEdges[] = {INT64_MAX,        INT64_MIN,        INT64_MAX - 1,       INT64_MIN + 1,
                                       int64_t{1} << 62, int64_t{1} << 32, -(int64_t{1} << 31), 3037000500};
  if (f.op == 'c' && g.between(0, 1)) f.value = kEdges[g.between(0, 7)];
  for (const FormulaPtr& a : f.args) enlarge(*a, g);
}

}  // namespace

TEST_CASE("an Expr near the limits of int64 is exact or has no value") {
  Generator g(7, {"x", "y"});
  int valid = 0, invalid = 0, checked = 0;
  for (int i = 0; i < 20000; ++i) {
    const FormulaPtr f = g.formula(static_cast<int>(g.between(1, 4)));
    enlarge(*f, g);
    const Expr e = build(*f);
    ++(e.valid() ? valid : invalid);
    if (!e.valid()) continue;
    INFO(text_of(*f) << " -> " << to_string(e));
    REQUIRE_OK(const Expr back, parse_expr(to_string(e)));
    REQUIRE(back == e);
    const Ranges ranges = {{"x", {-9, INT64_MAX - 5}}, {"y", {INT64_MIN + 7, 9}}};
    const Interval b = bounds(e, ranges);
    const Expr s = simplify(e, ranges);
    for (const Point& p :
         {Point{{"x", 3}, {"y", -4}}, Point{{"x", INT64_MAX - 5}, {"y", 9}}, Point{{"x", -9}, {"y", INT64_MIN + 7}}}) {
      const auto expected = wide_value(*f, p);
      if (!expected) continue;
      for (const auto& v : {evaluate(e, p), evaluate(s, p)}) {
        if (!v) continue;
        ++checked;
        INFO(to_string(s) << " x=" << p.at("x") << " y=" << p.at("y"));
        REQUIRE(Wide{*v} == *expected);
        REQUIRE((b.lo <= *v && *v <= b.hi));
      }
    }
  }
  CHECK(valid > 5000);
  CHECK(invalid > 1000);
  CHECK(checked > 5000);
}

TEST_CASE("what would be too large is invalid") {
  Expr sum = 0;
  for (int i = 0; i < 70; ++i) sum += Expr::symbol("s" + std::to_string(i));
  CHECK((sum * 2).valid());
  CHECK_FALSE((sum * sum).valid());  // 4,900 products
  const Expr x = Expr::symbol("x");
  Expr power = x, nested = x;
  for (int i = 0; i < 63; ++i) power = power * x;
  CHECK(power.valid());
  CHECK_FALSE((power * x).valid());
  for (int i = 0; i < 96; ++i) nested = min(floor_div(nested, x) * 2, x * (i + 1));
  CHECK_FALSE(nested.valid());
  // A tree that doubles at every level, though its nodes are shared.
  Expr doubling = x;
  for (int i = 0; i < 40; ++i) doubling = floor_div(doubling * 3 + mod(doubling, x + 7), x + i);
  CHECK_FALSE(doubling.valid());
}

TEST_CASE("the deepest Expr still round-trips") {
  const Expr x = Expr::symbol("x"), y = Expr::symbol("y");
  Expr e = x;
  int depth = 0;
  for (Expr next = e; next.valid(); ++depth) {
    e = next;
    next = floor_div(2 * floor_div(e + y, x) + 3 * mod(x, y), x + y);
  }
  CHECK(depth > 10);
  Expr chain = x;
  for (Expr next = chain; next.valid(); next = -2 * floor_div(-2 * chain + y, x + 1)) chain = next;
  for (const Expr& deep : {e, chain}) {
    REQUIRE_OK(const Expr back, parse_expr(to_string(deep)));
    CHECK(back == deep);
  }
}

TEST_CASE("Exprs of several threads are the same nodes") {
  constexpr int kThreads = 4;
  std::vector<std::vector<Expr>> built(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&built, t] {
      Generator g(99, {"a", "b", "threads.only"});  // new symbols, so the threads compete to make them
      for (int i = 0; i < 3000; ++i) built[static_cast<size_t>(t)].push_back(build(*g.formula(4)));
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& other : built) CHECK(other == built[0]);
}

TEST_CASE("sums without remainders do not depend on the order they were added in") {
  Generator g(8, {"x", "y", "n"});
  for (int i = 0; i < 2000; ++i) {
    std::vector<Expr> parts;
    for (int k = 0; k < 5; ++k) {
      const Expr a = build(*g.formula(2)), b = build(*g.formula(1));
      const std::string text = to_string(a * b);
      if (text.find('%') == std::string::npos && text.find("//") == std::string::npos) parts.push_back(a * b);
    }
    Expr forward = 0, backward = 0;
    for (const Expr& p : parts) forward = forward + p;
    for (auto p = parts.rbegin(); p != parts.rend(); ++p) backward = *p + backward;
    REQUIRE(forward == backward);
  }
}

TEST_CASE("names that the text cannot show are no symbols") {
  for (const char* name : {"", "1x", "a b", "x+1", ".x", "x-y"}) CHECK_FALSE(Expr::symbol(name).valid());
  for (const char* name : {"x", "_x", "k.0", "min", "Batch_1"}) {
    CHECK(Expr::symbol(name).as_symbol() == name);
    CHECK(parse_expr(name).value() == Expr::symbol(name));
  }
}

namespace {

// The sum, or the smallest, of n symbols.
Expr of_symbols(int n, Expr (*join)(const Expr&, const Expr&)) {
  std::vector<Expr> parts;
  for (int i = 0; i < n; ++i) parts.push_back(Expr::symbol("s" + std::to_string(i)));
  while (parts.size() > 1) {  // balanced, which is quick to build
    std::vector<Expr> next;
    for (size_t i = 0; i < parts.size(); i += 2)
      next.push_back(i + 1 < parts.size() ? join(parts[i], parts[i + 1]) : parts[i]);
    parts = std::move(next);
  }
  return parts[0];
}

// The steps of a question.
template <class Question>
int64_t effort(const Question& question) {
  const detail::Effort counted;
  question();
  return detail::Effort::spent();
}

}  // namespace

// Comparing all symbols of a minimum with each other, at every link of its chain, would take a hundred times as much.
TEST_CASE("a question takes bounded effort, and what is left undecided stays as it is") {
  const Ranges ranges{{"N", Range(1, 8)}};
  const Expr least = of_symbols(300, dlc::min);
  CHECK(effort([&] { CHECK(simplify(least, ranges) == least); }) < 2 * detail::Effort::kMost);
  CHECK(effort([&] { CHECK_FALSE(provably_le(0, least, ranges)); }) < 2 * detail::Effort::kMost);

  const Expr total = of_symbols(4000, [](const Expr& a, const Expr& b) { return a + b; });
  CHECK(effort([&] { CHECK_FALSE(provably_le(0, total, ranges)); }) < detail::Effort::kMost / 4);
  Ranges known;
  for (const std::string& s : total.symbols()) known.emplace(s, Range(1, 8));
  CHECK(effort([&] { CHECK(provably_le(4000, total, known)); }) == 0);
}

TEST_CASE("an easy question is answered after a hard one") {
  const Ranges ranges{{"N", Range(1, 8)}};
  CHECK(simplify(of_symbols(300, dlc::max), ranges).valid());
  const Ranges index{{"x", Range(0, Expr::symbol("M") - 1)}, {"M", Range(1, 64)}};
  CHECK(provably_lt(Expr::symbol("x"), Expr::symbol("M"), index));
  CHECK(simplify(min(Expr::symbol("x"), Expr::symbol("M")), index) == Expr::symbol("x"));
}
