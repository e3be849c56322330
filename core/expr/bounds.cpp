// Interval analysis. Each Expr's interval is computed in 128 bits, where +-kInfinity is "unbounded", and clamped to
// 64 bits on the way out: a lower bound is never kPosInf and an upper one never kNegInf.
#include <algorithm>
#include <unordered_map>

#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc::detail {
namespace {

constexpr Wide kInfinity = Wide{1} << 64;

struct WideInterval {
  Wide lo = -kInfinity, hi = kInfinity;
};

WideInterval widen(Interval i) {
  return {i.lo == Interval::kNegInf ? -kInfinity : Wide{i.lo}, i.hi == Interval::kPosInf ? kInfinity : Wide{i.hi}};
}

Interval narrow(WideInterval i) {
  return {static_cast<int64_t>(std::clamp<Wide>(i.lo, Interval::kNegInf, Interval::kPosInf - 1)),
          static_cast<int64_t>(std::clamp<Wide>(i.hi, Interval::kNegInf + 1, Interval::kPosInf))};
}

Wide clamp(Wide v) { return std::clamp(v, -kInfinity, kInfinity); }

Wide multiply_bounds(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  if (a == kInfinity || a == -kInfinity || b == kInfinity || b == -kInfinity) {
    return (a > 0) == (b > 0) ? kInfinity : -kInfinity;
  }
  return clamp(a * b);
}

WideInterval operator*(WideInterval a, WideInterval b) {
  const auto [lo, hi] = std::minmax({multiply_bounds(a.lo, b.lo), multiply_bounds(a.lo, b.hi),
                                     multiply_bounds(a.hi, b.lo), multiply_bounds(a.hi, b.hi)});
  return {lo, hi};
}

WideInterval operator+(WideInterval a, WideInterval b) {
  return {a.lo == -kInfinity || b.lo == -kInfinity ? -kInfinity : clamp(a.lo + b.lo),
          a.hi == kInfinity || b.hi == kInfinity ? kInfinity : clamp(a.hi + b.hi)};
}

Wide divide_bounds(Wide a, Wide d) {
  if (d == kInfinity || d == -kInfinity) return a == 0 || (a > 0) == (d > 0) ? 0 : -1;
  if (a == kInfinity || a == -kInfinity) return (a > 0) == (d > 0) ? kInfinity : -kInfinity;
  const Wide q = a / d;
  return q - ((a % d != 0) && ((a < 0) != (d < 0)));
}

// Over each sign of the divisor the quotient is monotone, so the corners bound it. Divisor 0 has no value.
WideInterval divide(WideInterval a, WideInterval d) {
  WideInterval r{kInfinity, -kInfinity};
  auto corners = [&](Wide lo, Wide hi) {
    if (lo > hi) return;
    for (Wide x : {a.lo, a.hi}) {
      for (Wide y : {lo, hi}) {
        const Wide q = divide_bounds(x, y);
        r = {std::min(r.lo, q), std::max(r.hi, q)};
      }
    }
  };
  corners(std::max<Wide>(d.lo, 1), d.hi);
  corners(d.lo, std::min<Wide>(d.hi, -1));
  return r.lo <= r.hi ? r : WideInterval{};
}

WideInterval modulo(WideInterval a, WideInterval d) {
  const bool finite = a.lo > -kInfinity && a.hi < kInfinity;
  if (finite && d.lo == d.hi && d.lo > 0 && divide_bounds(a.lo, d.lo) == divide_bounds(a.hi, d.lo)) {
    const Wide base = divide_bounds(a.lo, d.lo) * d.lo;
    return {a.lo - base, a.hi - base};
  }
  WideInterval r{std::min<Wide>(d.lo == -kInfinity ? d.lo : d.lo + 1, 0),
                 std::max<Wide>(d.hi == kInfinity ? d.hi : d.hi - 1, 0)};
  if (d.lo > 0 && a.lo >= 0) r.hi = std::min(r.hi, a.hi);
  return r;
}

constexpr int kMaxUpperDepth = 4;  // symbolic upper bounds that mention symbols with symbolic upper bounds ...

class Bounder {
 public:
  explicit Bounder(const Ranges& ranges) : ranges_(ranges) {}

  Interval of(const ExprNode* e) {
    if (!e->valid) return {};
    if (e->size <= kMemoSize) return compute(e);
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    const Interval i = compute(e);
    memo_.emplace(e, i);
    return i;
  }

 private:
  Interval compute(const ExprNode* e) {
    WideInterval sum{0, 0};
    for (const Product& p : e->products) {
      WideInterval product{p.coefficient, p.coefficient};
      for (Atom a : p.monomial->factors) product = product * widen(of_atom(a));
      sum = sum + product;
      if (sum.lo == -kInfinity && sum.hi == kInfinity) break;
    }
    return narrow(sum);
  }

  Interval of_symbol(std::string_view name) {
    if (ranges_.empty()) return {};
    const auto it = ranges_.find(name);
    if (it == ranges_.end()) return {};
    const Range& r = it->second;
    Interval i = r.bounds;
    if (i.hi == Interval::kPosInf && r.upper && upper_depth_ < kMaxUpperDepth) {
      ++upper_depth_;
      i.hi = compute(r.upper).hi;
      --upper_depth_;
    }
    if (const int64_t d = r.divisible_by; d > 1) {
      if (i.lo != Interval::kNegInf) i.lo = checked_add(i.lo, floor_mod(-(i.lo % d), d)).value_or(i.lo);
      if (i.hi != Interval::kPosInf) i.hi = checked_add(i.hi, -floor_mod(i.hi, d)).value_or(i.hi);
    }
    return i;
  }

  Interval of_atom(Atom a) {
    if (a.kind() == AtomKind::symbol) return of_symbol(a.name());
    const Interval x = of(a.args()[0].node());
    if (a.kind() == AtomKind::select && x.lo >= 0) return of(a.args()[1].node());
    if (a.kind() == AtomKind::select && x.hi < 0) return of(a.args()[2].node());
    const Interval y = of(a.args()[1].node());
    switch (a.kind()) {
      case AtomKind::floor_div:
        return narrow(divide(widen(x), widen(y)));
      case AtomKind::mod:
        return narrow(modulo(widen(x), widen(y)));
      case AtomKind::min:
        return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
      case AtomKind::max:
        return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
      default: {
        const Interval z = of(a.args()[2].node());
        return {std::min(y.lo, z.lo), std::max(y.hi, z.hi)};
      }
    }
  }

  const Ranges& ranges_;
  std::unordered_map<const ExprNode*, Interval> memo_;
  int upper_depth_ = 0;
};

}  // namespace
}  // namespace dlc::detail

namespace dlc {

Interval bounds(const Expr& e, const Ranges& ranges) { return detail::Bounder(ranges).of(e.node()); }

}  // namespace dlc
