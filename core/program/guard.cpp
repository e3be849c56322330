#include "dlc/program/guard.h"

#include <algorithm>

namespace dlc {

namespace {

// The same fact with the first term positive: "N == 4", not "0 == 4 - N".
Expr with_positive_start(const Expr& e) { return !e.terms().empty() && e.terms().front().coefficient < 0 ? -e : e; }

bool same(const Guard& a, const Guard& b) { return a.is_equality == b.is_equality && a.excess == b.excess; }

void add(std::vector<Guard>& guards, Guard g) {
  if (const auto it = std::ranges::find_if(guards, [&](const Guard& o) { return same(o, g); }); it != guards.end()) {
    for (std::string& l : g.locations)
      if (std::ranges::find(it->locations, l) == it->locations.end()) it->locations.push_back(std::move(l));
    return;
  }
  guards.push_back(std::move(g));
}

// s <= upper; s <= min(a, b) is two facts.
void add_upper(std::vector<Guard>& guards, const Expr& upper, const Expr& s) {
  for (const Term& t : upper.terms()) {
    if (t.coefficient <= 0 || t.factors.size() != 1 || t.factors[0].kind() != AtomKind::min) continue;
    const Expr rest = upper - t.coefficient * min(t.factors[0].args()[0], t.factors[0].args()[1]);
    for (const Expr& e : t.factors[0].args()) add_upper(guards, rest + t.coefficient * e, s);
    return;
  }
  guards.push_back({upper - s, false, {}});
}

}  // namespace

std::string to_string(const Guard& g) {
  // The constant stands on the right, and what starts with a minus on the other side: "N <= 3", not "3 - N >= 0".
  Expr constant(0);
  for (const Term& t : g.excess.terms())
    if (t.factors.empty()) constant = Expr(t.coefficient);
  const Expr left = g.excess - constant, positive = with_positive_start(left);
  const bool turned = positive != left;
  return to_string(positive) +
         (g.is_equality ? " == "
          : turned      ? " <= "
                        : " >= ") +
         to_string(turned ? constant : -constant);
}

bool implies_nonnegative(std::span<const Guard> guards, const Ranges& symbols, const Expr& e) {
  const Expr x = simplify(e, symbols);
  return provably_le(0, x, symbols) || std::ranges::any_of(guards, [&](const Guard& g) {
           return g.excess == x || (g.is_equality && -g.excess == x);
         });
}

void add_guards(std::vector<Guard>& guards, const Ranges& symbols, std::span<const Expr> assumptions,
                const std::vector<std::string>& locations) {
  std::vector<Expr> open;  // not decided by the ranges
  for (const Expr& e : assumptions)
    if (const Expr x = simplify(e, symbols); !provably_le(0, x, symbols)) open.push_back(x);
  for (const Expr& x : open) {
    const bool is_equality = std::ranges::find(open, -x) != open.end();
    add(guards, {is_equality ? with_positive_start(x) : x, is_equality, locations});
  }
}

std::vector<Guard> guards_of(const Ranges::value_type& symbol) {
  const auto& [name, r] = symbol;
  const Expr s = Expr::symbol(name);
  std::vector<Guard> guards;
  if (r.bounds.lo != Interval::kNegInf) guards.push_back({s - r.bounds.lo, false, {}});
  if (r.bounds.hi != Interval::kPosInf) guards.push_back({r.bounds.hi - s, false, {}});
  if (r.upper != nullptr) add_upper(guards, Expr(r.upper), s);
  if (r.divisible_by != 1) guards.push_back({mod(s, r.divisible_by), true, {}});
  return guards;
}

}  // namespace dlc
