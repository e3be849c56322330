// Proofs of e >= 0. Intervals alone lose what symbolic bounds know: with x <= M - 1 and j <= n - 1 the index x*n + j is
// below M*n whatever M and n are. The proof replaces one atom after the other by a bound of it, in the direction that
// makes e smaller, until an interval decides:
//
//   M*n - 1 - x*n - j   --x by M - 1-->   n - 1 - j   --j by n - 1-->   0
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/expr/effort.h"
#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc::detail {
namespace {

// Work before the proof is given up: replacements tried, each as many times as its sum has pairs of terms, since that
// is what it costs. Sums of up to 16 terms have 48 tries.
constexpr int64_t kBudget = 48 * 16 * 16;
constexpr int64_t kLeastWork = 16 * 16;
// What replacements cost in all that only an interval may decide, since there is no work left for more: their sizes.
constexpr int64_t kTail = 1 << 17;

}  // namespace

bool by_linear_bounds(const Expr& e, const Ranges& ranges) {
  constexpr int64_t kMostScale = int64_t{1} << 20;
  const auto quotient = [](const Product& p) -> const AtomNode* {
    if (p.monomial->factors.size() != 1) return nullptr;
    const AtomNode* a = p.monomial->factors[0].node();
    return a->kind == AtomKind::floor_div && a->args[1].constant().value_or(0) > 0 ? a : nullptr;
  };
  int64_t scale = 1;
  for (const Product& p : products(e))
    if (const AtomNode* a = quotient(p)) {
      const int64_t d = *a->args[1].constant();
      if (d > kMostScale) return false;
      scale = std::lcm(scale, d);
      if (scale > kMostScale) return false;
    }
  if (scale == 1) return false;
  Sum scaled;
  for (const Product& p : products(e)) {
    const AtomNode* a = quotient(p);
    const int64_t d = a ? *a->args[1].constant() : 1;
    int64_t c = 0;
    if (__builtin_mul_overflow(p.coefficient, scale / d, &c)) return false;
    if (!a)
      scaled.add(c, p.monomial);
    else
      scaled.add(p.coefficient > 0 ? a->args[0] - d + 1 : a->args[0], c);
  }
  scaled.add(scale - 1, one());  // scale * e > -scale is enough: e is an integer
  const Expr least = scaled.finish();
  return least.valid() && bounds(least, ranges).lo >= 0;
}

namespace {

class Prover {
 public:
  explicit Prover(const Ranges& ranges) : ranges_(ranges) {}

  bool nonneg(const Expr& e) {
    if (!e.valid()) return false;
    if (bounds(e, ranges_).lo >= 0) return true;
    const auto terms = static_cast<int64_t>(products(e).size());
    if (budget_ <= 0 || !Effort::left()) {
      tail_ -= e.node()->size;
      Effort::spend(e.node()->size);
      return false;
    }
    const int64_t work = std::max(kLeastWork, terms * terms);
    budget_ -= work;
    Effort::spend(std::min(work, kBudget));
    std::vector<Linear> atoms = linear_atoms(e);
    for (const Linear& l : atoms) {
      if (tail_ > 0 && by_symbolic_bound(l)) return true;
    }
    for (const Linear& l : atoms) {
      if (tail_ > 0 && by_interval(l)) return true;
    }
    return false;
  }

 private:
  // whole = factor * atom + rest, and the sign of factor is known.
  struct Linear {
    Expr whole;
    Atom atom;
    Expr factor;
    bool positive;

    // Only where there is a bound to try: sums of thousands of symbols have a rest for each.
    Expr rest() const {
      Sum sum;
      for (const Product& p : products(whole)) {
        if (std::ranges::find(p.monomial->factors, atom) == p.monomial->factors.end())
          sum.add(p.coefficient, p.monomial);
      }
      return sum.finish_part();
    }
  };

  std::vector<Linear> linear_atoms(const Expr& e) const {
    std::vector<Atom> atoms;
    std::vector<Sum> factors;
    std::unordered_map<const AtomNode*, size_t> known;
    for (const Product& p : products(e)) {
      const auto& in = p.monomial->factors;
      for (size_t i = 0; i < in.size(); ++i) {
        if (i > 0 && in[i] == in[i - 1]) continue;
        const auto [it, is_new] = known.emplace(in[i].node(), atoms.size());
        if (is_new) {
          atoms.push_back(in[i]);
          factors.emplace_back();
        }
        factors[it->second].add(p.coefficient, without(p.monomial, i));
      }
    }
    std::vector<Linear> result;
    for (size_t k = 0; k < atoms.size(); ++k) {
      const Expr f = factors[k].finish_part();
      const Interval sign = bounds(f, ranges_);
      if (sign.lo >= 0 || sign.hi <= 0) result.push_back({e, atoms[k], f, sign.lo >= 0});
    }
    return result;
  }

  bool with(const Linear& l, const Expr& bound) { return nonneg(l.factor * bound + l.rest()); }

  // The condition is known in each branch: e >= 0 also follows from e - condition >= 0.
  bool with_known(const Linear& l, const Expr& value, const Expr& known) {
    const Expr e = l.factor * value + l.rest();
    return nonneg(e) || nonneg(e - known);
  }

  // The atom being a // d.
  bool over(const Linear& l, const Expr& a, const Expr& d) {
    const Expr scaled = l.positive ? a - d + 1 : a;
    return nonneg(l.factor * scaled + l.rest() * d + d - 1);
  }

  // a // d = (a // k) // (d / k): no remainder of k is given away where e has a // k too, as a size of (N + 2) // 4
  // rows has that is rounded up to 8 of them, 8 * ((N + 30) // 32).
  bool over_quotient(const Linear& l, const Expr& a, const Expr& d) {
    const auto whole = d.constant();
    if (!whole) return false;
    for (const Linear& other : linear_atoms(l.rest())) {
      if (other.atom.kind() != AtomKind::floor_div) continue;
      const auto k = other.atom.args()[1].constant();
      if (k && *k > 1 && *k < *whole && *whole % *k == 0 && over(l, floor_div(a, *k), *whole / *k)) return true;
    }
    return false;
  }

  bool by_symbolic_bound(const Linear& l) {
    const auto args = l.atom.args();
    switch (l.atom.kind()) {
      case AtomKind::symbol: {
        if (l.positive) return false;
        const auto it = ranges_.find(l.atom.name());
        return it != ranges_.end() && it->second.upper && with(l, Expr(it->second.upper));
      }
      case AtomKind::floor_div: {
        // d * (a // d) lies in [a - d + 1, a]; e >= 0 follows from d * e >= 1 - d since e is an integer.
        const Expr &a = args[0], &d = args[1];
        if (bounds(d, ranges_).lo < 1) return false;
        return over(l, a, d) || over_quotient(l, a, d);
      }
      case AtomKind::mod:
        if (l.positive || bounds(args[1], ranges_).lo < 1) return false;
        if (!args[1].constant() && with(l, args[1] - 1)) return true;
        return bounds(args[0], ranges_).lo >= 0 && with(l, args[0]);
      case AtomKind::min:
        return l.positive ? with(l, args[0]) && with(l, args[1]) : with(l, args[0]) || with(l, args[1]);
      case AtomKind::max:
        return l.positive ? with(l, args[0]) || with(l, args[1]) : with(l, args[0]) && with(l, args[1]);
      case AtomKind::select:
        return with_known(l, args[1], args[0]) && with_known(l, args[2], Expr(-1) - args[0]);
    }
    return false;
  }

  // A constant bound helps where the factor is not constant; otherwise the interval of e has used it already.
  bool by_interval(const Linear& l) {
    if (l.factor.constant()) return false;
    const Interval i = bounds(Expr(l.atom.node()->expr), ranges_);
    if (l.positive) return i.lo != Interval::kNegInf && with(l, i.lo);
    return i.hi != Interval::kPosInf && with(l, i.hi);
  }

  const Ranges& ranges_;
  int64_t budget_ = kBudget, tail_ = kTail;
};

}  // namespace

bool provably_nonneg(const Expr& e, const Ranges& ranges) {
  const Effort effort;
  return (e.valid() && by_linear_bounds(e, ranges)) || Prover(ranges).nonneg(e);
}

}  // namespace dlc::detail

namespace dlc {

bool provably_le(const Expr& a, const Expr& b, const Ranges& ranges) {
  const Expr d = b - a;
  if (!d.valid()) return false;
  const detail::Effort effort;
  return detail::provably_nonneg(d, ranges) || detail::provably_nonneg(simplify(d, ranges), ranges);
}

bool provably_lt(const Expr& a, const Expr& b, const Ranges& ranges) { return provably_le(a + 1, b, ranges); }

bool provably_eq(const Expr& a, const Expr& b, const Ranges& ranges) {
  if (!a.valid() || !b.valid()) return false;
  if (a == b) return true;
  const detail::Effort effort;
  if (simplify(a - b, ranges).is(0)) return true;
  return provably_le(a, b, ranges) && provably_le(b, a, ranges);
}

}  // namespace dlc
