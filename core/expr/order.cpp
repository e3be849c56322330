#include "core/expr/order.h"

#include <algorithm>

#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc::detail {

namespace {

// The corners at which single symbols are at the other end are tried for this many symbols.
constexpr size_t kMostCorners = 8;
constexpr size_t kFarBits = 36;
constexpr size_t kMostSums = 64;
constexpr Wide kUnbounded = Wide{1} << 80;
constexpr size_t kSearched = 3;  // terms of a difference that is worth a search

// max(a, b) + c is the larger of a + c and b + c. Too many maxima stay.
void collect_sums(const Expr& e, std::vector<Expr>& sums) {
  for (const Product& p : products(e)) {
    if (p.coefficient != 1 || p.monomial->factors.size() != 1) continue;
    const Atom a = p.monomial->factors[0];
    if (a.kind() != AtomKind::max) continue;
    const Expr rest = e - of_product(p);
    for (const Expr& larger : a.args()) collect_sums(rest + larger, sums);
    return;
  }
  if (sums.size() <= kMostSums) sums.push_back(e);
}

}  // namespace

Order::Order(const Ranges& symbols) : symbols_(symbols) {
  // Far enough that the larger of two sizes shows, and near enough that no product of all symbols overflows.
  const int64_t far = int64_t{1} << (symbols.empty() ? 0 : std::max<size_t>(4, kFarBits / symbols.size()));
  Point high, low;
  for (const auto& [name, range] : symbols) {
    const int64_t by = range.divisible_by;
    const int64_t lo = range.bounds.lo == Interval::kNegInf ? by : dlc::ceil_div(range.bounds.lo, by) * by;
    low.emplace(name, lo);
    high.emplace(name, std::max(lo, std::min(range.bounds.hi, far) / by * by));
  }
  points_ = {high, low};
  if (symbols.size() < 2) return;
  for (const auto& [name, value] : low) {
    if (points_.size() >= 2 + 2 * kMostCorners) break;
    Point one_low = high, one_high = low;
    one_low[name] = low[name];
    one_high[name] = high[name];
    points_.push_back(std::move(one_low));
    points_.push_back(std::move(one_high));
  }
}

std::vector<std::optional<int64_t>> Order::values(const Expr& e) const {
  std::vector<std::optional<int64_t>> at;
  for (const Point& p : points_) at.push_back(evaluate(e, p));
  return at;
}

Order::Address Order::address(const Expr& e) const {
  Address a{e, {}, values(e)};
  if (e.valid()) collect_sums(e, a.sums);
  if (a.sums.empty() || a.sums.size() > kMostSums) a.sums = {e};
  return a;
}

bool Order::may_be_le(const Address& a, const Address& b) {
  for (size_t k = 0; k < a.at.size(); ++k)
    if (a.at[k] && b.at[k] && *a.at[k] > *b.at[k]) return false;
  return true;
}

bool Order::provably_le(const Address& a, const Address& b) {
  return may_be_le(a, b) && std::ranges::all_of(a.sums, [&](const Expr& x) {
           return std::ranges::any_of(b.sums, [&](const Expr& y) { return provably_le(x, y); });
         });
}

bool Order::provably_le(const Expr& a, const Expr& b) {
  const Expr difference = without_common_factor(b - a);
  if (!difference.valid()) return false;
  if (const auto c = difference.constant()) return *c >= 0;
  if (const auto it = known_.find(difference); it != known_.end()) return it->second;
  bool yes = std::ranges::none_of(values(difference), [](const auto& v) { return v && *v < 0; });
  yes = yes && (bounds(difference, symbols_).lo >= 0 || by_linear_bounds(difference, symbols_) ||
                by_partners(difference) || by_search(difference));
  known_.emplace(difference, yes);
  return yes;
}

// Every term that is subtracted has an added one of its own that is at least as large, and what is left is not
// negative. The smallest that will do is taken.
bool Order::by_partners(const Expr& difference) {
  struct Part {
    Expr size;
    int64_t large;
  };
  std::vector<Part> added, subtracted;
  for (const Product& p : products(difference)) {
    const Expr e = of_product(p);
    const Interval range = bounds(e, symbols_);
    if (range.lo < 0 && range.hi > 0) return false;
    const Expr size = range.lo >= 0 ? e : -e;
    (range.lo >= 0 ? added : subtracted).push_back({size, evaluate(size, points_[0]).value_or(Interval::kPosInf)});
  }
  if (added.size() + subtracted.size() < 3) return false;  // a pair: nothing is left to take apart
  std::ranges::stable_sort(added, {}, &Part::large);
  std::ranges::stable_sort(subtracted, std::greater<>(), &Part::large);
  for (const Part& s : subtracted) {
    const auto partner = std::ranges::find_if(added, [&](const Part& a) { return provably_le(s.size, a.size); });
    if (partner == added.end()) return false;
    added.erase(partner);
  }
  return true;
}

// The symbols of e and those that bound them.
std::set<std::string> Order::symbols_behind(const Expr& e) const {
  std::set<std::string> all;
  std::vector<Expr> open{e};
  while (!open.empty()) {
    const Expr next = open.back();
    open.pop_back();
    for (const std::string& s : next.symbols()) {
      if (!all.insert(s).second) continue;
      const auto it = symbols_.find(s);
      if (it != symbols_.end() && it->second.upper) open.emplace_back(it->second.upper);
    }
  }
  return all;
}

// e is their sum, and no two have a symbol in common.
std::vector<Expr> Order::independent_parts(const Expr& e) const {
  struct Part {
    Expr sum;
    std::set<std::string> symbols;
  };
  std::vector<Part> parts;
  for (const Product& p : products(e)) {
    Part joined{of_product(p), symbols_behind(of_product(p))};
    std::erase_if(parts, [&](const Part& other) {
      if (std::ranges::none_of(other.symbols, [&](const auto& s) { return joined.symbols.contains(s); })) return false;
      joined.sum = joined.sum + other.sum;
      joined.symbols.insert(other.symbols.begin(), other.symbols.end());
      return true;
    });
    parts.push_back(std::move(joined));
  }
  std::vector<Expr> sums;
  for (Part& p : parts) sums.push_back(std::move(p.sum));
  return sums;
}

// Nothing where the points say nothing.
Order::Reach* Order::reach_of(const Expr& part) {
  if (const auto it = reach_.find(part); it != reach_.end()) return &it->second;
  std::optional<int64_t> least;
  for (const auto& v : values(part))
    if (v && (!least || *v < *least)) least = v;
  if (!least) return nullptr;
  return &reach_.emplace(part, Reach{std::min(bounds(part, symbols_).lo, *least), *least}).first->second;
}

bool Order::search(const Expr& e) {
  ++searches_;
  return provably_nonneg(e, symbols_);
}

// The least values of parts that share no symbol add up, so each is narrowed down by itself, until the sum is decided.
// What was learnt of a part holds for the next difference that it is in.
bool Order::by_search(const Expr& difference) {
  if (products(difference).size() > kSearched) return false;
  const std::vector<Expr> parts = independent_parts(difference);
  std::vector<Reach*> reach;  // the map never moves its values
  for (const Expr& part : parts) reach.push_back(reach_of(part));
  if (parts.size() < 2 || std::ranges::count(reach, nullptr) > 0) return search(difference);
  for (;;) {
    Wide proven = 0, limit = 0;
    for (const Reach* r : reach) {
      proven += r->proven == Interval::kNegInf ? -kUnbounded : Wide{r->proven};
      limit += r->limit;
    }
    if (proven >= 0) return true;
    if (limit < 0) return false;
    const auto gap = [](const Reach* r) { return Wide{r->limit} - r->proven; };
    const auto k = static_cast<size_t>(std::ranges::max_element(reach, {}, gap) - reach.begin());
    // What it has to be at least with the others at their limits; once that much is proven, halfway to its limit.
    const Wide needed = Wide{reach[k]->limit} - limit;
    const auto tried = static_cast<int64_t>(
        needed > reach[k]->proven ? needed : reach[k]->limit - (Wide{reach[k]->limit} - reach[k]->proven) / 2);
    if (search(parts[k] - tried))
      reach[k]->proven = tried;
    else
      reach[k]->limit = tried - 1;
  }
}

}  // namespace dlc::detail
