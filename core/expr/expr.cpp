// Accessors, the structural order, and sums and products of Exprs.
#include <algorithm>
#include <set>

#include "core/expr/node.h"
#include "dlc/base/checked.h"

namespace dlc {

using detail::AtomNode;
using detail::ExprNode;
using detail::MonomialNode;
using detail::Product;

AtomKind Atom::kind() const { return node_->kind; }
std::string_view Atom::name() const { return node_->name; }
std::span<const Expr> Atom::args() const { return node_->args; }

bool Expr::valid() const { return node_->valid; }
std::span<const Term> Expr::terms() const { return node_->terms; }

std::optional<int64_t> Expr::constant() const {
  const auto& p = node_->products;
  if (p.empty()) return node_->valid ? std::optional<int64_t>(0) : std::nullopt;
  if (p.size() > 1 || !p[0].monomial->factors.empty()) return std::nullopt;
  return p[0].coefficient;
}

std::optional<std::string_view> Expr::as_symbol() const {
  const AtomNode* a = detail::single_atom(*this);
  if (!a || a->kind != AtomKind::symbol) return std::nullopt;
  return a->name;
}

namespace {

// Calls f for every symbol below e, each shared part once.
template <class F>
void each_symbol(const ExprNode* e, std::set<const ExprNode*>& seen, const F& f) {
  if (!e->symbols || !seen.insert(e).second) return;
  for (const Product& p : e->products) {
    for (Atom a : p.monomial->factors) {
      if (a.kind() == AtomKind::symbol) f(a.name());
      for (const Expr& x : a.args()) each_symbol(x.node(), seen, f);
    }
  }
}

bool mentions_symbol(const ExprNode* e, std::string_view name, uint64_t bit, std::set<const ExprNode*>& seen) {
  if (!(e->symbols & bit)) return false;
  if (e->size > detail::kMemoSize && !seen.insert(e).second) return false;
  for (const Product& p : e->products) {
    if (!(p.monomial->symbols & bit)) continue;
    for (Atom a : p.monomial->factors) {
      if (a.kind() == AtomKind::symbol && a.name() == name) return true;
      for (const Expr& x : a.args()) {
        if (mentions_symbol(x.node(), name, bit, seen)) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> Expr::symbols() const {
  std::set<std::string, std::less<>> names;
  std::set<const ExprNode*> seen;
  each_symbol(node_, seen, [&](std::string_view s) {
    if (!names.contains(s)) names.emplace(s);
  });
  return {names.begin(), names.end()};
}

bool Expr::mentions(std::string_view symbol) const {
  std::set<const ExprNode*> seen;
  return mentions_symbol(node_, symbol, detail::symbol_bit(symbol), seen);
}

bool structurally_less(const Expr& a, const Expr& b) { return detail::compare(a.node(), b.node()) < 0; }

namespace detail {

int compare(Atom a, Atom b) {
  if (a == b) return 0;
  if (a.kind() != b.kind()) return a.kind() < b.kind() ? -1 : 1;
  if (a.kind() == AtomKind::symbol) return a.name() < b.name() ? -1 : 1;
  for (size_t i = 0; i < a.args().size(); ++i) {
    if (int c = compare(a.args()[i].node(), b.args()[i].node())) return c;
  }
  return 0;
}

int compare(const MonomialNode* a, const MonomialNode* b) {
  if (a == b) return 0;
  if (a->factors.size() != b->factors.size()) return a->factors.size() > b->factors.size() ? -1 : 1;
  for (size_t i = 0; i < a->factors.size(); ++i) {
    if (int c = compare(a->factors[i], b->factors[i])) return c;
  }
  return 0;
}

int compare(const ExprNode* a, const ExprNode* b) {
  if (a == b) return 0;
  if (a->valid != b->valid) return a->valid ? -1 : 1;
  for (size_t i = 0; i < a->products.size() && i < b->products.size(); ++i) {
    const Product &p = a->products[i], &q = b->products[i];
    if (int c = compare(p.monomial, q.monomial)) return c;
    if (p.coefficient != q.coefficient) return p.coefficient < q.coefficient ? -1 : 1;
  }
  return a->products.size() < b->products.size() ? -1 : 1;
}

const MonomialNode* multiply(const MonomialNode* a, const MonomialNode* b) {
  if (a->factors.empty()) return b;
  if (b->factors.empty()) return a;
  std::vector<Atom> factors;
  factors.reserve(a->factors.size() + b->factors.size());
  std::merge(a->factors.begin(), a->factors.end(), b->factors.begin(), b->factors.end(), std::back_inserter(factors),
             [](Atom x, Atom y) { return compare(x, y) < 0; });
  return intern_monomial(factors);
}

const MonomialNode* divide_exactly(const MonomialNode* a, const MonomialNode* b) {
  if (b->factors.empty()) return a;
  if (a->factors.size() < b->factors.size()) return nullptr;
  std::vector<Atom> rest;
  size_t j = 0;
  for (Atom x : a->factors) {
    if (j < b->factors.size() && x == b->factors[j]) {
      ++j;
    } else {
      rest.push_back(x);
    }
  }
  return j == b->factors.size() ? intern_monomial(rest) : nullptr;
}

const MonomialNode* without(const MonomialNode* m, size_t factor) {
  if (m->factors.size() == 1) return one();
  std::vector<Atom> rest = m->factors;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(factor));
  return intern_monomial(rest);
}

Expr of_product(const Product& p) { return p.coefficient ? Expr(intern_expr({p})) : Expr(0); }

int64_t constant_term(const Expr& e) {
  if (products(e).empty() || !products(e).back().monomial->factors.empty()) return 0;
  return products(e).back().coefficient;
}

const AtomNode* single_atom(const Expr& e, int64_t* offset) {
  const auto& p = products(e);
  const size_t allowed = offset && p.size() == 2 && p[1].monomial->factors.empty() ? 2 : 1;
  if (p.size() != allowed || p[0].coefficient != 1 || p[0].monomial->factors.size() != 1) return nullptr;
  if (offset) *offset = constant_term(e);
  return p[0].monomial->factors[0].node();
}

Expr divide_exactly(const Expr& e, int64_t c) {
  Sum sum;
  for (const Product& p : products(e)) sum.add(p.coefficient / c, p.monomial);
  return sum.finish();
}

void Sum::add(const Expr& e, int64_t scale) {
  if (!e.valid()) failed_ = true;
  for (const Product& p : products(e)) {
    const auto c = checked_mul(p.coefficient, scale);
    if (!c) failed_ = true;
    add(c.value_or(0), p.monomial);
  }
}

void Sum::add_product(const Expr& a, const Expr& b, const Product& scale) {
  if (!a.valid() || !b.valid() || products(a).size() * products(b).size() > kMaxTerms) failed_ = true;
  if (failed_) return;
  for (const Product& p : products(a)) {
    for (const Product& q : products(b)) {
      const MonomialNode* m = p.monomial->factors.size() + q.monomial->factors.size() <= kMaxDegree
                                  ? multiply(multiply(p.monomial, q.monomial), scale.monomial)
                                  : nullptr;
      const auto pq = checked_mul(p.coefficient, q.coefficient);
      const auto c = pq ? checked_mul(*pq, scale.coefficient) : std::nullopt;
      if (!m || !c || m->factors.size() > kMaxDegree) {
        failed_ = true;
        return;
      }
      add(*c, m);
    }
  }
}

bool Sum::collect() {
  if (failed_) return false;
  auto before = [](const Product& a, const Product& b) { return compare(a.monomial, b.monomial) < 0; };
  if (!std::is_sorted(products_.begin(), products_.end(), before)) {
    std::sort(products_.begin(), products_.end(), before);
  }
  size_t n = 0;
  uint64_t size = 0;
  for (size_t i = 0; i < products_.size();) {
    const MonomialNode* m = products_[i].monomial;
    // Terms of one monomial may cancel on the way, so their sum is exact and only the result is checked.
    Wide exact = 0;
    for (; i < products_.size() && products_[i].monomial == m; ++i) exact += products_[i].coefficient;
    if (exact < INT64_MIN || exact > INT64_MAX) return false;
    if (exact == 0) continue;
    products_[n++] = {static_cast<int64_t>(exact), m};
    size += m->size;
  }
  products_.resize(n);
  return n <= kMaxTerms && size <= kMaxSize;
}

Expr Sum::finish() {
  if (!collect()) return Expr::invalid();
  constexpr int kMaxSteps = 64;
  for (int step = 0; step < kMaxSteps && recombine(); ++step) {
  }
  return Expr(intern_expr(products_));
}

Expr Sum::finish_part() { return collect() ? Expr(intern_expr(products_)) : Expr::invalid(); }

}  // namespace detail

Expr operator+(const Expr& a, const Expr& b) {
  if (a.valid() && b.valid()) {
    if (a.is(0)) return b;
    if (b.is(0)) return a;
  }
  detail::Sum sum;
  sum.add(a);
  sum.add(b);
  return sum.finish();
}

Expr operator-(const Expr& a, const Expr& b) {
  if (a == b && a.valid()) return 0;
  detail::Sum sum;
  sum.add(a);
  sum.add(b, -1);
  return sum.finish();
}

Expr operator-(const Expr& a) {
  detail::Sum sum;
  sum.add(a, -1);
  return sum.finish();
}

Expr operator*(const Expr& a, const Expr& b) {
  if (!a.valid() || !b.valid()) return Expr::invalid();
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  detail::Sum sum;
  sum.add_product(a, b, {1, detail::one()});
  return sum.finish();
}

Range::Range(int64_t lo, const Expr& inclusive_upper) : bounds{lo, Interval::kPosInf} {
  if (const auto c = inclusive_upper.constant()) {
    bounds.hi = *c;
  } else if (inclusive_upper.valid()) {
    upper = inclusive_upper.node();
  }
}

}  // namespace dlc
