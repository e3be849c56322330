// Remainders that meet their quotient again. Within a sum, times any common factor,
//
//   b * (a // b)       + a % b  =  a
//   b * ((a // b) % m) + a % b  =  a % (b * m)
//
// The coefficients must match exactly: 64 * (c // 16) + c % 16, an address in a blocked layout, stays as it is.
#include <algorithm>

#include "core/expr/node.h"

namespace dlc::detail {
namespace {

constexpr size_t kMaxRecombine = 64;  // longer sums are left as they are: the search is quadratic

bool contains(const std::vector<Product>& sum, const std::vector<Product>& part) {
  return std::all_of(part.begin(), part.end(), [&](const Product& p) {
    const auto it = std::lower_bound(sum.begin(), sum.end(), p, [](const Product& x, const Product& y) {
      return compare(x.monomial, y.monomial) < 0;
    });
    return it != sum.end() && *it == p;
  });
}

}  // namespace

// The sums here are collected, never finished: a finished one would be recombined on the way and not match.
bool Sum::recombine() {
  size_t mods = 0, divs = 0;
  for (const Product& p : products_) {
    mods += p.monomial->has_mod;
    divs += p.monomial->has_div;
  }
  if (mods == 0 || mods + divs < 2 || products_.size() > kMaxRecombine) return false;

  // Replaces low + high by factor * whole.
  auto replace = [&](const Product& low, const Sum& high, const Expr& whole, const Product& factor) {
    Sum next = *this;
    std::erase_if(next.products_, [&](const Product& p) { return p == low || contains(high.products_, {p}); });
    next.add_product(whole, 1, factor);
    if (!next.collect()) return false;
    *this = std::move(next);
    return true;
  };
  for (const Product& p : products_) {
    if (!p.monomial->has_mod) continue;
    for (size_t i = 0; i < p.monomial->factors.size(); ++i) {
      const Atom low = p.monomial->factors[i];
      if (low.kind() != AtomKind::mod) continue;
      const Expr a = low.args()[0], b = low.args()[1], quotient = floor_div(a, b);
      const Product factor{p.coefficient, without(p.monomial, i)};
      Sum high;
      high.add_product(b, quotient, factor);
      if (high.collect() && contains(products_, high.products_)) return replace(p, high, a, factor);
      if (!b.constant()) continue;
      for (const Product& q : products_) {
        for (Atom other : q.monomial->factors) {
          if (other.kind() != AtomKind::mod || other == low || !other.args()[1].constant()) continue;
          Sum high_mod;
          high_mod.add_product(b, mod(quotient, other.args()[1]), factor);
          if (!high_mod.collect() || high_mod.products_ != std::vector<Product>{q}) continue;
          return replace(p, high_mod, mod(a, b * other.args()[1]), factor);
        }
      }
    }
  }
  return false;
}

}  // namespace dlc::detail
