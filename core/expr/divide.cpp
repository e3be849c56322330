// a // b and a % b. Every rule is an identity of floor division for all b that are not 0; where one needs a sign or a
// range it asks bounds() with the ranges it was given (none when an Expr is built, the caller's in simplify()).
#include <algorithm>
#include <numeric>

#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc::detail {
namespace {

// a = quotient * b + remainder.
struct Split {
  Expr quotient, remainder;
};

// Coefficients are divided toward 0, so -1 stays -1; the constant term ends up in [0, c).
Split split_by_constant(const Expr& a, int64_t c) {
  Sum quotient, remainder;
  for (const Product& p : products(a)) {
    const bool constant = p.monomial->factors.empty();
    quotient.add(constant ? floor_div(p.coefficient, c) : p.coefficient / c, p.monomial);
    remainder.add(constant ? floor_mod(p.coefficient, c) : p.coefficient % c, p.monomial);
  }
  return {quotient.finish(), remainder.finish()};
}

// Polynomial division by the leading term of b. What does not divide, stays. Against a sum, a quotient that leaves as
// many terms as there were is no gain: x*n by n + 1 would be x, remainder -x.
Split split_by_polynomial(const Expr& a, const Expr& b) {
  const Product lead = products(b)[0];
  if (lead.coefficient < 0) return {0, a};  // only where common_content could not negate
  Expr quotient = 0, rest = a;
  for (int step = 0; step < 64; ++step) {
    const Product* next = nullptr;
    const MonomialNode* factor = nullptr;
    for (const Product& p : products(rest)) {
      if (p.coefficient % lead.coefficient != 0) continue;
      factor = divide_exactly(p.monomial, lead.monomial);
      if (!factor) continue;
      next = &p;
      break;
    }
    if (!next) break;
    const Expr q = of_product({next->coefficient / lead.coefficient, factor});
    const Expr reduced = rest - q * b;
    if (!reduced.valid()) break;
    quotient += q;
    rest = reduced;
  }
  if (products(b).size() > 1 && products(rest).size() >= products(a).size()) return {0, a};
  return {quotient, rest};
}

// The largest single product that divides every term of a and of b, with the sign that makes b's leading term
// positive. Coefficient 1 and no factors when there is none.
Product common_content(const Expr& a, const Expr& b) {
  int64_t g = 0;
  std::vector<Atom> shared = products(b)[0].monomial->factors;
  for (const Expr* e : {&a, &b}) {
    for (const Product& p : products(*e)) {
      if (p.coefficient == INT64_MIN) return {1, one()};
      g = std::gcd(g, p.coefficient);
      std::vector<Atom> both;
      std::set_intersection(shared.begin(), shared.end(), p.monomial->factors.begin(), p.monomial->factors.end(),
                            std::back_inserter(both), [](Atom x, Atom y) { return compare(x, y) < 0; });
      shared = std::move(both);
    }
  }
  return {products(b)[0].coefficient < 0 ? -g : g, intern_monomial(shared)};
}

Expr divide_by_content(const Expr& e, const Product& content) {
  Sum sum;
  for (const Product& p : products(e)) {
    sum.add(p.coefficient / content.coefficient, divide_exactly(p.monomial, content.monomial));
  }
  return sum.finish();
}

// The common divisor of all coefficients except the constant's, with c.
int64_t coefficient_gcd(const Expr& e, int64_t c) {
  for (const Product& p : products(e)) {
    if (!p.monomial->factors.empty() && p.coefficient != INT64_MIN) c = std::gcd(c, p.coefficient);
  }
  return c;
}

// e = high + low with g dividing every value of high, and 0 <= low < g. Then e // c = high // c and
// e % c = high % c + low for every c that g divides.
struct Low {
  Expr high, low;
};
std::optional<Low> split_low(const Expr& e, int64_t c, const Ranges& ranges) {
  std::vector<int64_t> candidates;
  for (const Product& p : products(e)) {
    if (p.monomial->factors.empty()) continue;
    const int64_t g = std::gcd(known_divisor(p, ranges), c);
    if (g > 1) candidates.push_back(g);
  }
  std::sort(candidates.rbegin(), candidates.rend());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (int64_t g : candidates) {
    Sum high, low;
    for (const Product& p : products(e)) {
      if (p.monomial->factors.empty()) {
        low.add(floor_mod(p.coefficient, g), p.monomial);
        high.add(p.coefficient - floor_mod(p.coefficient, g), p.monomial);
      } else {
        (known_divisor(p, ranges) % g == 0 ? high : low).add(p.coefficient, p.monomial);
      }
    }
    const Low parts{high.finish(), low.finish()};
    if (parts.low.is(0)) continue;
    const Interval i = bounds(parts.low, ranges);
    if (i.lo >= 0 && i.hi < g) return parts;
  }
  return std::nullopt;
}

// The same for a divisor b that is not constant: b = g * b' with b' >= 1, low provably in [0, g).
struct SymbolicLow {
  Expr high, low;  // e = g * high + low
  Product g;
  Expr b;  // b'
};
std::optional<SymbolicLow> split_low(const Expr& e, const Expr& b, const Ranges& ranges) {
  std::vector<Product> tried;
  for (const Product& p : products(e)) {
    const Product g = common_content(of_product(p), b);
    if (g.coefficient < 1 || g == Product{1, one()} || std::find(tried.begin(), tried.end(), g) != tried.end())
      continue;
    tried.push_back(g);
    Sum high, low;
    for (const Product& q : products(e)) {
      const MonomialNode* m = q.coefficient % g.coefficient == 0 ? divide_exactly(q.monomial, g.monomial) : nullptr;
      if (m) {
        high.add(q.coefficient / g.coefficient, m);
      } else {
        low.add(q.coefficient, q.monomial);
      }
    }
    const SymbolicLow parts{high.finish(), low.finish(), g, divide_by_content(b, g)};
    if (parts.low.is(0) || parts.high.is(0)) continue;
    if (provably_nonneg(parts.low, ranges) && provably_nonneg(of_product(g) - parts.low - 1, ranges) &&
        provably_nonneg(parts.b - 1, ranges)) {
      return parts;
    }
  }
  return std::nullopt;
}

// e = exact + rest where every value of exact is a multiple of c although its coefficients are not.
std::optional<Split> split_divisible(const Expr& e, int64_t c, const Ranges& ranges) {
  Sum exact, rest;
  for (const Product& p : products(e))
    (known_divisor(p, ranges) % c == 0 ? exact : rest).add(p.coefficient, p.monomial);
  const Split s{exact.finish(), rest.finish()};
  if (s.quotient.is(0)) return std::nullopt;
  return s;
}

// The one value of e // c over all of e's values.
std::optional<int64_t> constant_quotient(const Expr& e, int64_t c, const Ranges& ranges) {
  const Interval i = bounds(e, ranges);
  if (i.lo == Interval::kNegInf || i.hi == Interval::kPosInf) return std::nullopt;
  const int64_t q = floor_div(i.lo, c);
  if (q != floor_div(i.hi, c)) return std::nullopt;
  return q;
}

// c * k * (x % m) may become c * k * x below % c where c divides k * m: the difference is a multiple of c.
Expr drop_inner_mods(const Expr& a, int64_t c) {
  if (!a.node()->has_mod) return a;
  Sum sum;
  for (const Product& p : products(a)) {
    bool dropped = false;
    for (size_t i = 0; i < p.monomial->factors.size() && !dropped; ++i) {
      const Atom f = p.monomial->factors[i];
      if (f.kind() != AtomKind::mod) continue;
      const auto m = f.args()[1].constant();
      const auto stride = m ? checked_mul(*m, p.coefficient) : std::nullopt;
      if (!stride || *stride % c != 0) continue;
      sum.add(of_product({p.coefficient, without(p.monomial, i)}) * f.args()[0]);
      dropped = true;
    }
    if (!dropped) sum.add(p.coefficient, p.monomial);
  }
  const Expr e = sum.finish();
  return e.valid() ? e : a;
}

Expr divide_by_constant(const Expr& a, int64_t c, const Ranges& ranges) {
  const auto [q, r] = split_by_constant(a, c);
  if (r.constant()) return q;  // in [0, c)
  if (const auto k = constant_quotient(r, c, ranges)) return q + Expr(*k);
  if (const auto s = split_low(r, c, ranges)) return q + divide(s->high, c, ranges);
  if (const int64_t g = coefficient_gcd(r, c); g > 1) return q + divide(divide_exactly(r, g), c / g, ranges);
  if (const auto s = split_divisible(r, c, ranges); s && !s->remainder.is(0)) {
    return q + divide(s->quotient, c, ranges) + divide(s->remainder, c, ranges);
  }
  // A numerator with only negative terms is a division rounded up: -x // c = -((x + c - 1) // c).
  const auto& terms = products(r);
  if (std::all_of(terms.begin(), terms.end(),
                  [](const Product& p) { return p.coefficient < 0 || p.monomial->factors.empty(); })) {
    const Expr positive = Expr(c - 1) - r;
    if (positive.valid()) return q - divide(positive, c, ranges);
  }
  int64_t offset = 0;
  if (const AtomNode* atom = single_atom(r, &offset)) {
    if (atom->kind == AtomKind::floor_div) {  // (x // y + k) // c = (x + k * y) // (y * c)
      const Expr y = atom->args[1];
      const Expr numerator = atom->args[0] + Expr(offset) * y, denominator = y * Expr(c);
      if (numerator.valid() && denominator.valid()) return q + divide(numerator, denominator, ranges);
    }
    if (atom->kind == AtomKind::mod && offset == 0) {  // (x % m) // c = (x // c) % (m // c)
      const auto m = atom->args[1].constant();
      if (m && *m % c == 0) return q + modulo(divide(atom->args[0], c, ranges), *m / c, ranges);
    }
  }
  return q + make_atom(AtomKind::floor_div, {r, c});
}

Expr modulo_by_constant(const Expr& a, int64_t c, const Ranges& ranges) {
  const Expr r = split_by_constant(a, c).remainder;
  if (r.constant()) return r;
  if (const Expr plain = drop_inner_mods(r, c); plain != r) return modulo(plain, c, ranges);
  if (const auto k = constant_quotient(r, c, ranges)) {
    const Expr e = r - Expr(*k) * Expr(c);
    if (e.valid()) return e;
  }
  if (const auto s = split_low(r, c, ranges)) return modulo(s->high, c, ranges) + s->low;
  if (const int64_t g = coefficient_gcd(r, c); g > 1) return Expr(g) * modulo(divide_exactly(r, g), c / g, ranges);
  if (const auto s = split_divisible(r, c, ranges)) return modulo(s->remainder, c, ranges);
  return make_atom(AtomKind::mod, {r, c});
}

}  // namespace

int64_t known_divisor(const Product& p, const Ranges& ranges) {
  int64_t d = p.coefficient;
  if (ranges.empty()) return d;
  for (Atom a : p.monomial->factors) {
    if (a.kind() != AtomKind::symbol) continue;
    const auto it = ranges.find(a.name());
    if (it == ranges.end() || it->second.divisible_by <= 1) continue;
    const auto next = checked_mul(d, it->second.divisible_by);
    if (!next || *next == INT64_MIN) break;  // a smaller divisor is still one
    d = *next;
  }
  return d;
}

Expr divide(const Expr& a, const Expr& b, const Ranges& ranges) {
  if (!a.valid() || !b.valid() || b.is(0)) return Expr::invalid();
  if (b.is(1)) return a;
  if (a.is(0)) return 0;
  if (a == b) return 1;
  if (const auto c = b.constant()) {
    return *c > 0 ? divide_by_constant(a, *c, ranges) : divide(-a, -b, ranges);
  }
  const Product content = common_content(a, b);
  if (content != Product{1, one()}) {
    return divide(divide_by_content(a, content), divide_by_content(b, content), ranges);
  }
  const auto [q, r] = split_by_polynomial(a, b);
  if (r.is(0)) return q;
  if (!q.is(0)) return q + divide(r, b, ranges);
  if (!ranges.empty()) {
    if (provably_nonneg(r, ranges) && provably_nonneg(b - r - 1, ranges)) return 0;
    if (const auto s = split_low(r, b, ranges)) return divide(s->high, s->b, ranges);
    int64_t offset = 0;
    const AtomNode* atom = single_atom(r, &offset);
    if (atom && atom->kind == AtomKind::floor_div && provably_nonneg(b - 1, ranges)) {
      const Expr y = atom->args[1], numerator = atom->args[0] + Expr(offset) * y, denominator = y * b;
      if (numerator.valid() && denominator.valid()) return divide(numerator, denominator, ranges);
    }
  }
  const Expr e = make_atom(AtomKind::floor_div, {r, b});
  const Interval i = bounds(e, ranges);
  return i.lo == i.hi ? Expr(i.lo) : e;
}

Expr modulo(const Expr& a, const Expr& b, const Ranges& ranges) {
  if (!a.valid() || !b.valid() || b.is(0)) return Expr::invalid();
  if (a.is(0) || a == b || b.is(1) || b.is(-1)) return 0;
  if (const auto c = b.constant()) {
    return *c > 0 ? modulo_by_constant(a, *c, ranges) : -modulo(-a, -b, ranges);
  }
  const Product content = common_content(a, b);
  if (content != Product{1, one()}) {
    return of_product(content) * modulo(divide_by_content(a, content), divide_by_content(b, content), ranges);
  }
  const auto [q, r] = split_by_polynomial(a, b);
  if (r.is(0)) return 0;
  if (!q.is(0)) return modulo(r, b, ranges);
  if (!ranges.empty()) {
    if (provably_nonneg(r, ranges) && provably_nonneg(b - r - 1, ranges)) return r;
    if (const auto s = split_low(r, b, ranges)) return of_product(s->g) * modulo(s->high, s->b, ranges) + s->low;
  }
  return make_atom(AtomKind::mod, {r, b});
}

const Ranges& no_ranges() {
  static const Ranges none;
  return none;
}

}  // namespace dlc::detail

namespace dlc {

Expr floor_div(const Expr& a, const Expr& b) { return detail::divide(a, b, detail::no_ranges()); }
Expr mod(const Expr& a, const Expr& b) { return detail::modulo(a, b, detail::no_ranges()); }

// By a positive constant a + b - 1 over b, which reads best; otherwise the form that holds for any sign.
Expr ceil_div(const Expr& a, const Expr& b) {
  if (const auto c = b.constant(); c && *c > 0) {
    const Expr numerator = a + Expr(*c - 1);
    if (numerator.valid()) return floor_div(numerator, b);
  }
  return -floor_div(-a, b);
}

}  // namespace dlc
