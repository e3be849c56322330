// Remainders that meet their quotient again. Within a sum, times any common factor,
//
//   b * (a // b)       + a % b  =  a
//   b * ((a // b) % m) + a % b  =  a % (b * m)
//   a - b * (a // b)            =  a % b
//
// The coefficients must match exactly: 64 * (c // 16) + c % 16, an address in a blocked layout, stays as it is.
#include <algorithm>
#include <atomic>

#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc::detail {
namespace {

constexpr size_t kMaxRecombine = 64;  // longer sums are left as they are: the search is quadratic
constexpr int kMaxModTries = 256;     // pairs of remainders compared for one step

bool contains(const std::vector<Product>& sum, const std::vector<Product>& part) {
  return std::all_of(part.begin(), part.end(), [&](const Product& p) {
    const auto it = std::lower_bound(sum.begin(), sum.end(), p, [](const Product& x, const Product& y) {
      return compare(x.monomial, y.monomial) < 0;
    });
    return it != sum.end() && *it == p;
  });
}

// Whether the sum has a term that may be a * b times what is left of p without `removed` factors, which has coefficient
// `scale`. No term of a product cancels its leading one, so where this says no, the product is not in the sum; it makes
// no monomial, and sums have many remainders.
bool may_contain(const std::vector<Product>& sum, const Product& a, const Product& b, const Product& p, size_t removed,
                 int64_t scale) {
  const auto ab = checked_mul(a.coefficient, b.coefficient);
  const auto coefficient = ab ? checked_mul(*ab, scale) : std::nullopt;
  if (!coefficient) return false;
  const size_t degree = a.monomial->factors.size() + b.monomial->factors.size() + p.monomial->factors.size() - removed;
  const uint64_t symbols = a.monomial->symbols | b.monomial->symbols;
  return std::ranges::any_of(sum, [&](const Product& q) {
    return q.coefficient == *coefficient && q.monomial->factors.size() == degree &&
           (symbols & ~q.monomial->symbols) == 0;
  });
}

// a // b of the remainder a % b, found once: the rules ask for it wherever the remainder is in a sum.
Expr quotient_of(const AtomNode* mod) {
  const ExprNode* known = mod->quotient.load(std::memory_order_acquire);
  if (!known) {
    known = floor_div(mod->args[0], mod->args[1]).node();
    mod->quotient.store(known, std::memory_order_release);
  }
  return Expr(known);
}

}  // namespace

// The sums here are collected, never finished: a finished one would be recombined on the way and not match.
bool Sum::recombine() {
  size_t mods = 0, divs = 0;
  for (const Product& p : products_) {
    mods += p.monomial->has_mod;
    divs += p.monomial->has_div;
  }
  if (products_.size() < 2 || products_.size() > kMaxRecombine) return false;
  return (mods > 0 && mods + divs > 1 && recombine_mod()) || (divs > 0 && recombine_difference());
}

// Replaces `part`, terms of this sum, by factor * whole.
bool Sum::replace(const std::vector<Product>& part, const Expr& whole, const Product& factor) {
  Sum next = *this;
  std::erase_if(next.products_, [&](const Product& p) { return contains(part, {p}); });
  next.add_product(whole, 1, factor);
  if (!next.collect()) return false;
  *this = std::move(next);
  return true;
}

bool Sum::recombine_mod() {
  int tries = kMaxModTries;
  for (const Product& p : products_) {
    if (!p.monomial->has_mod) continue;
    for (size_t i = 0; i < p.monomial->factors.size(); ++i) {
      const Atom low = p.monomial->factors[i];
      if (low.kind() != AtomKind::mod) continue;
      const Expr a = low.args()[0], b = low.args()[1], quotient = quotient_of(low.node());
      if (!quotient.valid() || quotient.is(0)) continue;
      if (may_contain(products_, products(b)[0], products(quotient)[0], p, 1, p.coefficient)) {
        const Product factor{p.coefficient, without(p.monomial, i)};
        Sum high;
        high.add_product(b, quotient, factor);
        if (high.collect() && contains(products_, high.products_)) {
          high.products_.push_back(p);
          return high.collect() && replace(high.products_, a, factor);
        }
      }
      const auto step = b.constant() ? checked_mul(*b.constant(), p.coefficient) : std::nullopt;
      if (!step) continue;
      for (const Product& q : products_) {
        if (!q.monomial->has_mod || q.coefficient % *step != 0) continue;
        for (Atom other : q.monomial->factors) {
          if (other.kind() != AtomKind::mod || other == low || !other.args()[1].constant()) continue;
          if (--tries < 0) return false;
          const Product factor{p.coefficient, without(p.monomial, i)};
          Sum high_mod;
          high_mod.add_product(b, mod(quotient, other.args()[1]), factor);
          if (!high_mod.collect() || high_mod.products_ != std::vector<Product>{q}) continue;
          high_mod.products_.push_back(p);
          return high_mod.collect() && replace(high_mod.products_, mod(a, b * other.args()[1]), factor);
        }
      }
    }
  }
  return false;
}

// The constant term of a need not match: x - 4 * ((x + 3) // 4) = (x + 3) % 4 - 3.
bool Sum::recombine_difference() {
  for (const Product& p : products_) {
    if (!p.monomial->has_div || p.coefficient == INT64_MIN) continue;
    for (size_t i = 0; i < p.monomial->factors.size(); ++i) {
      const Atom div = p.monomial->factors[i];
      if (div.kind() != AtomKind::floor_div || products(div.args()[1]).size() != 1) continue;
      const Expr a = div.args()[0], b = div.args()[1];
      const Product divisor = products(b)[0];
      if (p.coefficient % divisor.coefficient != 0) continue;
      const int64_t scale = -p.coefficient / divisor.coefficient;
      const size_t removed = 1 + divisor.monomial->factors.size();
      if (removed > p.monomial->factors.size()) continue;
      if (!a.constant() && !may_contain(products_, products(a)[0], {1, one()}, p, removed, scale)) continue;
      const MonomialNode* rest = divide_exactly(without(p.monomial, i), divisor.monomial);
      if (!rest) continue;
      const Product factor{scale, rest};
      const Expr offset = constant_term(a), variable = a - offset;
      Sum part;
      part.add_product(variable, 1, factor);
      if (!variable.valid() || !part.collect() || !contains(products_, part.products_)) continue;
      part.products_.push_back(p);
      return part.collect() && replace(part.products_, mod(a, b) - offset, factor);
    }
  }
  return false;
}

}  // namespace dlc::detail
