// Walks that rebuild or evaluate an Expr bottom-up: simplify, substitute, evaluate; and affine, which takes one apart.
#include <algorithm>
#include <unordered_map>

#include "core/expr/effort.h"
#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc {
namespace {

using detail::ExprNode;
using detail::Product;
using detail::products;
using detail::Wide;

Expr build(AtomKind kind, std::span<const Expr> args, const Ranges& ranges) {
  switch (kind) {
    case AtomKind::floor_div:
      return detail::divide(args[0], args[1], ranges);
    case AtomKind::mod:
      return detail::modulo(args[0], args[1], ranges);
    case AtomKind::min:
      return detail::minimum(args[0], args[1], ranges);
    case AtomKind::max:
      return detail::maximum(args[0], args[1], ranges);
    default:
      return detail::choose(args[0], args[1], args[2], ranges);
  }
}

// Rebuilds an Expr with its symbols replaced; parts without changes stay the nodes they are.
template <class SymbolFn>
class Rebuilder {
 public:
  // `symbols`: bits of the symbols that may change; parts that mention none of them are skipped unless `all`.
  Rebuilder(const Ranges& ranges, uint64_t symbols, bool all, SymbolFn symbol)
      : ranges_(ranges), symbols_(symbols), all_(all), symbol_(std::move(symbol)) {}

  Expr operator()(const Expr& e) {
    const ExprNode* n = e.node();
    if (!n->valid || (!all_ && !(n->symbols & symbols_)) || (n->depth == 0 && !(n->symbols & symbols_))) return e;
    if (n->size <= detail::kMemoSize) return rebuild(e);
    if (auto it = memo_.find(n); it != memo_.end()) return it->second;
    const Expr r = rebuild(e);
    memo_.emplace(n, r);
    return r;
  }

 private:
  Expr rebuild(const Expr& e) {
    detail::Sum sum;
    for (const Product& p : products(e)) {
      Expr value = p.coefficient;
      bool changed = false;
      const auto& factors = p.monomial->factors;
      for (size_t i = 0; i < factors.size(); ++i) {
        const Expr old(factors[i].node()->expr);
        const Expr now = atom(factors[i]);
        if (now != old && !changed) {
          changed = true;
          for (size_t j = 0; j < i; ++j) value = value * Expr(factors[j].node()->expr);
        }
        if (changed) value = value * now;
      }
      changed ? sum.add(value) : sum.add(p.coefficient, p.monomial);
    }
    return sum.finish();
  }

  Expr atom(Atom a) {
    const Expr same(a.node()->expr);
    if (a.kind() == AtomKind::symbol) return a.node()->symbols & symbols_ ? symbol_(a) : same;
    if (!all_ && !(a.node()->symbols & symbols_)) return same;
    std::vector<Expr> args(a.args().begin(), a.args().end());
    args[0] = (*this)(args[0]);
    if (a.kind() == AtomKind::select) {  // the branch not taken need not have a value
      if (const auto c = args[0].constant()) return (*this)(*c >= 0 ? args[1] : args[2]);
    }
    for (size_t i = 1; i < args.size(); ++i) args[i] = (*this)(args[i]);
    if (!all_ && std::equal(args.begin(), args.end(), a.args().begin())) return same;
    return build(a.kind(), args, ranges_);
  }

  const Ranges& ranges_;
  uint64_t symbols_;
  bool all_;
  SymbolFn symbol_;
  std::unordered_map<const ExprNode*, Expr> memo_;
};

// k * (a // c) is k / c * a where c divides every value of a.
Expr exact_divisions(const Expr& e, const Ranges& ranges) {
  detail::Sum sum;
  for (const Product& p : products(e)) {
    Expr value = detail::of_product(p);
    for (size_t i = 0; i < p.monomial->factors.size(); ++i) {
      const Atom f = p.monomial->factors[i];
      const auto c = f.kind() == AtomKind::floor_div ? f.args()[1].constant() : std::nullopt;
      if (!c || p.coefficient % *c != 0) continue;
      const auto& numerator = products(f.args()[0]);
      if (!std::all_of(numerator.begin(), numerator.end(),
                       [&](const Product& q) { return detail::known_divisor(q, ranges) % *c == 0; })) {
        continue;
      }
      value = detail::of_product({p.coefficient / *c, detail::without(p.monomial, i)}) * f.args()[0];
      break;
    }
    sum.add(value);
  }
  return sum.finish();
}

}  // namespace

Expr simplify(const Expr& e, const Ranges& ranges) {
  uint64_t fixed = 0;
  for (const auto& [name, r] : ranges) {
    if (r.bounds.lo == r.bounds.hi) fixed |= detail::symbol_bit(name);
  }
  const detail::Effort effort;
  Expr result = e;
  constexpr int kRounds = 4;  // what one rule leaves may be another's start; nearly always the second changes nothing
  for (int round = 0; round < kRounds; ++round) {
    Rebuilder rebuild(ranges, fixed, true, [&](Atom a) {
      const auto it = ranges.find(a.name());
      const bool known = it != ranges.end() && it->second.bounds.lo == it->second.bounds.hi;
      return known ? Expr(it->second.bounds.lo) : Expr(a.node()->expr);
    });
    const Expr rebuilt = rebuild(result);
    const Expr next = rebuilt.valid() ? exact_divisions(rebuilt, ranges) : rebuilt;
    if (next == result || !next.valid()) break;  // an overflow on the way: the last form is still right
    result = next;
  }
  return result;
}

Expr substitute(const Expr& e, const std::map<std::string, Expr, std::less<>>& values) {
  uint64_t symbols = 0;
  for (const auto& [name, value] : values) symbols |= detail::symbol_bit(name);
  Rebuilder rebuild(detail::no_ranges(), symbols, false, [&](Atom a) {
    const auto it = values.find(a.name());
    return it == values.end() ? Expr(a.node()->expr) : it->second;
  });
  return rebuild(e);
}

namespace {

class Evaluator {
 public:
  explicit Evaluator(const std::map<std::string, int64_t, std::less<>>& values) : values_(values) {}

  std::optional<int64_t> operator()(const ExprNode* e) {
    if (!e->valid) return std::nullopt;
    if (e->size <= detail::kMemoSize) return compute(e);
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    const auto v = compute(e);
    memo_.emplace(e, v);
    return v;
  }

 private:
  // Terms may cancel, so the sum is in 128 bits; every atom and the result must fit in 64.
  std::optional<int64_t> compute(const ExprNode* e) {
    Wide sum = 0;
    for (const Product& p : e->products) {
      Wide product = p.coefficient;
      for (Atom a : p.monomial->factors) {
        const auto v = atom(a);
        if (!v || __builtin_mul_overflow(product, Wide{*v}, &product)) return std::nullopt;
      }
      if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    }
    if (sum < INT64_MIN || sum > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(sum);
  }

  std::optional<int64_t> atom(Atom a) {
    if (a.kind() == AtomKind::symbol) {
      const auto it = values_.find(a.name());
      return it == values_.end() ? std::nullopt : std::optional(it->second);
    }
    const auto args = a.args();
    const auto x = (*this)(args[0].node());
    if (!x) return std::nullopt;
    if (a.kind() == AtomKind::select) return (*this)(args[*x >= 0 ? 1 : 2].node());
    const auto y = (*this)(args[1].node());
    if (!y) return std::nullopt;
    switch (a.kind()) {
      case AtomKind::floor_div:
        if (*y == 0 || (*x == INT64_MIN && *y == -1)) return std::nullopt;
        return floor_div(*x, *y);
      case AtomKind::mod:
        if (*y == 0) return std::nullopt;
        return floor_mod(*x, *y);
      case AtomKind::min:
        return std::min(*x, *y);
      default:
        return std::max(*x, *y);
    }
  }

  const std::map<std::string, int64_t, std::less<>>& values_;
  std::unordered_map<const ExprNode*, std::optional<int64_t>> memo_;
};

}  // namespace

std::optional<int64_t> evaluate(const Expr& e, const std::map<std::string, int64_t, std::less<>>& values) {
  if (const auto c = e.constant()) return c;
  return Evaluator(values)(e.node());
}

std::optional<Affine> affine(const Expr& e, std::span<const std::string> vars) {
  if (!e.valid()) return std::nullopt;
  std::vector<detail::Sum> sums(vars.size() + 1);
  for (const Product& p : products(e)) {
    size_t target = vars.size();
    const detail::MonomialNode* rest = p.monomial;
    for (size_t i = 0; i < p.monomial->factors.size() && target == vars.size(); ++i) {
      const Atom a = p.monomial->factors[i];
      if (a.kind() != AtomKind::symbol) continue;
      target = static_cast<size_t>(std::find(vars.begin(), vars.end(), a.name()) - vars.begin());
      if (target != vars.size()) rest = detail::without(p.monomial, i);
    }
    const Expr coefficient = detail::of_product({p.coefficient, rest});
    if (std::any_of(vars.begin(), vars.end(), [&](const std::string& v) { return coefficient.mentions(v); })) {
      return std::nullopt;
    }
    sums[target].add(p.coefficient, rest);
  }
  Affine result;
  for (detail::Sum& s : sums) result.coefficients.push_back(s.finish());
  result.base = result.coefficients.back();
  result.coefficients.pop_back();
  return result;
}

}  // namespace dlc
