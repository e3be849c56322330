// Expr: integer expressions over symbols, used for shapes, indices, predicates, YAML constraints and costs.
//
// An Expr is a hash-consed, immutable, canonical sum of products: sum of coefficient * product of atoms, where an atom
// is a symbol or one of  a // b   a % b   min(a, b)   max(a, b)   select(d >= 0, a, b).  Division rounds toward minus
// infinity. Two Exprs that are equal as polynomials over the same atoms are the same node: == is a pointer comparison.
// Building applies every rule that holds without ranges (b*(a//b) + a%b = a, (a//b)//c = a//(b*c), common factors ...);
// simplify() applies those that need ranges.
//
// Arithmetic is checked: an overflow of int64 gives the invalid Expr, which is sticky; test with valid() at the
// boundary.
//
//   Expr n = Expr::symbol("N"), e = floor_div(n * 4 + 3, 4);   // N + (3 // 4) = N
//   simplify(x % 16, {{"x", {0, 15}}})                          // x
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"

namespace dlc {

namespace detail {
struct ExprNode;
struct AtomNode;
}  // namespace detail

class Expr;

// Closed interval; kNegInf and kPosInf are "unbounded".
struct Interval {
  static constexpr int64_t kNegInf = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();
  int64_t lo = kNegInf;
  int64_t hi = kPosInf;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Ranges of symbols. A symbolic bound (an index below a symbolic extent) is given by upper: hi is then the Expr itself.
struct Range {
  Interval bounds;
  // Inclusive symbolic upper bound, e.g. N - 1 for a loop over N; used when bounds.hi is unbounded.
  const detail::ExprNode* upper = nullptr;
  int64_t divisible_by = 1;

  Range() = default;
  Range(int64_t lo, int64_t hi) : bounds{lo, hi} {}
  Range(int64_t lo, const Expr& inclusive_upper);
};
using Ranges = std::map<std::string, Range, std::less<>>;

enum class AtomKind : uint8_t { symbol, floor_div, mod, min, max, select };

// One factor of a term. symbol: name; the others: args (2, or 3 for select: condition d >= 0, then, else).
class Atom {
 public:
  AtomKind kind() const;
  std::string_view name() const;
  std::span<const Expr> args() const;
  friend bool operator==(Atom a, Atom b) { return a.node_ == b.node_; }
  explicit Atom(const detail::AtomNode* n) : node_(n) {}
  const detail::AtomNode* node() const { return node_; }

 private:
  const detail::AtomNode* node_;
};

struct Term {
  int64_t coefficient = 0;
  std::vector<Atom> factors;  // empty: the constant term
};

class Expr {
 public:
  Expr() : Expr(int64_t{0}) {}
  Expr(int64_t c);                                // NOLINT(google-explicit-constructor): 2 * n reads as it should
  Expr(int c) : Expr(static_cast<int64_t>(c)) {}  // NOLINT(google-explicit-constructor)
  static Expr symbol(std::string_view name);
  static Expr invalid();

  bool valid() const;
  std::optional<int64_t> constant() const;
  bool is(int64_t c) const { return constant() == c; }
  // The name when this is one symbol with coefficient 1.
  std::optional<std::string_view> as_symbol() const;
  std::span<const Term> terms() const;       // canonical order; deterministic across runs
  std::vector<std::string> symbols() const;  // sorted, unique, also inside atoms
  bool mentions(std::string_view symbol) const;

  friend bool operator==(const Expr& a, const Expr& b) { return a.node_ == b.node_; }
  const detail::ExprNode* node() const { return node_; }
  explicit Expr(const detail::ExprNode* n) : node_(n) {}

 private:
  const detail::ExprNode* node_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
inline Expr& operator+=(Expr& a, const Expr& b) { return a = a + b; }
Expr floor_div(const Expr& a, const Expr& b);  // by constant 0: invalid
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, const Expr& b);
// `then` where d >= 0, otherwise `otherwise`.
Expr select_nonneg(const Expr& d, const Expr& then, const Expr& otherwise);

Interval bounds(const Expr& e, const Ranges& ranges);
// Provably a < b, a <= b, also with symbolic upper bounds.
bool provably_lt(const Expr& a, const Expr& b, const Ranges& ranges);
bool provably_le(const Expr& a, const Expr& b, const Ranges& ranges);
bool provably_eq(const Expr& a, const Expr& b, const Ranges& ranges);
Expr simplify(const Expr& e, const Ranges& ranges);
Expr substitute(const Expr& e, const std::map<std::string, Expr, std::less<>>& values);
// nullopt: a symbol without a value, division by zero or overflow.
std::optional<int64_t> evaluate(const Expr& e, const std::map<std::string, int64_t, std::less<>>& values);

// e = base + sum coefficients[i] * vars[i], coefficients and base free of vars; nullopt if e is not affine in them.
struct Affine {
  Expr base;
  std::vector<Expr> coefficients;
};
std::optional<Affine> affine(const Expr& e, std::span<const std::string> vars);

// Text round-trips: parse_expr(to_string(e)) == e. Grammar: integers, names (letters, digits, _, .), + - * // %,
// min(a, b), max(a, b), select(d, a, b), parentheses.
std::string to_string(const Expr& e);
Result<Expr> parse_expr(std::string_view text, const Loc& where = {});

// Total structural order, the same in every run; for sorting.
bool structurally_less(const Expr& a, const Expr& b);

}  // namespace dlc

template <>
struct std::hash<dlc::Expr> {
  size_t operator()(const dlc::Expr& e) const noexcept { return std::hash<const void*>()(e.node()); }
};
