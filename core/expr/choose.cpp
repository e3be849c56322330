// min, max and select. A min of several is kept as one sorted chain without duplicates, so it is the same node in
// whichever order it was built. Chains of more than kLongChain are chains of chains: nesting is limited, their number
// is not.
#include <algorithm>
#include <numeric>
#include <span>

#include "core/expr/effort.h"
#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc::detail {
namespace {

void collect(const Expr& e, AtomKind kind, std::vector<Expr>& leaves) {
  const AtomNode* a = single_atom(e);
  if (!a || a->kind != kind) {
    leaves.push_back(e);
    return;
  }
  for (const Expr& x : a->args) collect(x, kind, leaves);
}

// Provably a <= b.
bool le(const Expr& a, const Expr& b, const Ranges& ranges) {
  const Expr d = b - a;
  if (!d.valid()) return false;
  return ranges.empty() ? bounds(d, ranges).lo >= 0 : provably_nonneg(d, ranges);
}

constexpr size_t kLongChain = 64;
constexpr size_t kMaxPairs = 1 << 14;  // of leaves compared; of longer chains only equal ones leave
constexpr int64_t kPairWork = 16;      // of the effort that a pair takes where ranges are asked

// Of at least one.
Expr chain(AtomKind kind, std::vector<Expr> leaves) {
  const auto of = [&](std::span<const Expr> part) {
    Expr e = part.back();
    for (size_t i = part.size() - 1; i-- > 0;) e = make_atom(kind, {part[i], e});
    return e;
  };
  const std::span<const Expr> all = leaves;
  if (all.size() <= kLongChain) return of(all);
  constexpr size_t kLink = 16;
  std::vector<Expr> links;
  for (size_t i = 0; i < all.size(); i += kLink) links.push_back(of(all.subspan(i, std::min(kLink, all.size() - i))));
  return chain(kind, std::move(links));
}

struct Leaf {
  Expr value;
  bool of_b;  // the second operand's
};

Expr extremum(AtomKind kind, const Expr& a, const Expr& b, const Ranges& ranges) {
  if (!a.valid() || !b.valid()) return Expr::invalid();
  std::vector<Expr> leaves, of_b;
  collect(a, kind, leaves);
  collect(b, kind, of_b);
  std::vector<Leaf> sorted;
  for (const Expr& x : leaves) sorted.push_back({x, false});
  for (const Expr& x : of_b) sorted.push_back({x, true});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Leaf& x, const Leaf& y) { return structurally_less(x.value, y.value); });
  // A leaf leaves when another is always at least as extreme. Of two equal ones the first stays. Leaves of one chain
  // were compared when it was built, which only ranges can change.
  const bool too_many = leaves.size() * of_b.size() > kMaxPairs;
  const auto beats = [&](const Leaf& p, const Leaf& q) {
    if (p.value == q.value) return true;
    if (ranges.empty() ? too_many || p.of_b == q.of_b : !Effort::left()) return false;
    if (!ranges.empty()) Effort::spend(kPairWork);
    return kind == AtomKind::min ? le(p.value, q.value, ranges) : le(q.value, p.value, ranges);
  };
  std::vector<Leaf> kept;
  for (const Leaf& x : sorted) {
    if (std::any_of(kept.begin(), kept.end(), [&](const Leaf& k) { return beats(k, x); })) continue;
    std::erase_if(kept, [&](const Leaf& k) { return beats(x, k); });
    kept.push_back(x);
  }
  std::vector<Expr> values;
  for (const Leaf& k : kept) values.push_back(k.value);
  return chain(kind, std::move(values));
}

}  // namespace

Expr without_common_factor(const Expr& d) {
  int64_t g = 0;
  for (const Product& p : products(d)) {
    if (p.coefficient == INT64_MIN) return d;
    if (!p.monomial->factors.empty()) g = std::gcd(g, p.coefficient);
  }
  if (g <= 1) return d;
  Sum sum;
  for (const Product& p : products(d)) sum.add(floor_div(p.coefficient, g), p.monomial);
  return sum.finish();
}

Expr minimum(const Expr& a, const Expr& b, const Ranges& ranges) { return extremum(AtomKind::min, a, b, ranges); }
Expr maximum(const Expr& a, const Expr& b, const Ranges& ranges) { return extremum(AtomKind::max, a, b, ranges); }

Expr choose(const Expr& d, const Expr& then, const Expr& otherwise, const Ranges& ranges) {
  if (!d.valid() || !then.valid() || !otherwise.valid()) return Expr::invalid();
  if (then == otherwise) return then;
  if (const auto c = d.constant()) return *c >= 0 ? then : otherwise;
  const Interval i = bounds(d, ranges);
  if (i.lo >= 0) return then;
  if (i.hi < 0) return otherwise;
  if (!ranges.empty()) {
    if (provably_nonneg(d, ranges)) return then;
    if (provably_nonneg(Expr(-1) - d, ranges)) return otherwise;
  }
  // d >= 0 and -d - 1 >= 0 are opposites: keep the one whose leading term is positive.
  const Expr condition = without_common_factor(d), opposite = Expr(-1) - condition;
  if (products(condition)[0].coefficient < 0 && opposite.valid()) return choose(opposite, otherwise, then, ranges);
  // t > o or t >= o picks the larger, t < o or t <= o the smaller of the two.
  const Expr difference = then - otherwise;
  if (condition == difference || condition == difference - 1) return maximum(then, otherwise, ranges);
  if (condition == -difference || condition == -difference - 1) return minimum(then, otherwise, ranges);
  // A branch that asks the same again knows the answer.
  auto known = [&](const Expr& e, size_t branch) {
    const AtomNode* a = single_atom(e);
    return a && a->kind == AtomKind::select && a->args[0] == condition ? a->args[branch] : e;
  };
  const Expr yes = known(then, 1), no = known(otherwise, 2);
  if (yes != then || no != otherwise) return choose(condition, yes, no, ranges);
  return make_atom(AtomKind::select, {condition, then, otherwise});
}

}  // namespace dlc::detail

namespace dlc {

Expr min(const Expr& a, const Expr& b) { return detail::minimum(a, b, detail::no_ranges()); }
Expr max(const Expr& a, const Expr& b) { return detail::maximum(a, b, detail::no_ranges()); }
Expr select_nonneg(const Expr& d, const Expr& then, const Expr& otherwise) {
  return detail::choose(d, then, otherwise, detail::no_ranges());
}

}  // namespace dlc
