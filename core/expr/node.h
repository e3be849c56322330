// The interned data behind Expr: three levels of nodes, each unique by content and alive for the whole process.
//
//   AtomNode      a symbol, or // % min max select of Exprs
//   MonomialNode  a sorted product of atoms; the empty product is 1
//   ExprNode      a sorted sum of coefficient * monomial
//
// Uniqueness makes equality a pointer comparison at every level. Nodes are never changed after they are published, so
// reading them needs no lock; only the pools lock. The order of terms and factors is structural (compare), so it does
// not depend on addresses or on which thread came first.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "dlc/expr/expr.h"

namespace dlc::detail {

// Every walk over an Expr recurses at most kMaxDepth deep, and no Expr is larger than the other limits. What would be
// larger is the invalid Expr, like an overflow. A text nests at most twice per level of atoms: see parse_expr.
inline constexpr uint32_t kMaxDepth = 96;
inline constexpr uint32_t kMaxTerms = 4096;
inline constexpr uint32_t kMaxDegree = 64;
inline constexpr uint32_t kMaxSize = 1u << 18;  // atoms, counted as often as the text would show them
inline constexpr uint32_t kMemoSize = 64;       // walks remember the results of larger Exprs, which may share parts

__extension__ typedef __int128 Wide;  // where int64 results are checked only at the end

struct MonomialNode;

struct AtomNode {
  AtomKind kind = AtomKind::symbol;
  std::string name;
  std::vector<Expr> args;
  uint64_t hash = 0;
  uint32_t depth = 0;  // symbols 0, otherwise 1 + the deepest argument
  uint32_t size = 1;
  uint64_t symbols = 0;  // a bit per symbol name modulo 64: a quick "does not mention"
  const MonomialNode* monomial = nullptr;
  const ExprNode* expr = nullptr;
  mutable std::atomic<const ExprNode*> quotient = nullptr;  // of a remainder, once it was asked for: see recombine.cpp
};

struct MonomialNode {
  std::vector<Atom> factors;
  uint64_t hash = 0;
  uint32_t depth = 0;
  uint32_t size = 0;
  uint64_t symbols = 0;
  bool has_div = false;
  bool has_mod = false;
};

struct Product {
  int64_t coefficient = 0;
  const MonomialNode* monomial = nullptr;
  friend bool operator==(const Product&, const Product&) = default;
};

struct ExprNode {
  std::vector<Product> products;
  std::vector<Term> terms;  // the same, for Expr::terms()
  uint64_t hash = 0;
  uint32_t depth = 0;
  uint32_t size = 0;
  uint64_t symbols = 0;
  bool valid = true;
  bool has_div = false;
  bool has_mod = false;
};

// Interning. The factors must be sorted; the products sorted, unique and without zero coefficients.
const ExprNode* intern_expr(const std::vector<Product>& products);
const MonomialNode* intern_monomial(const std::vector<Atom>& factors);
const MonomialNode* one();
// The Expr of one atom as it is, without any rule; invalid when it would be too large.
Expr make_atom(AtomKind kind, std::initializer_list<Expr> args);
uint64_t symbol_bit(std::string_view name);

// Structural order, -1, 0 or 1: higher degree first, then factor by factor; symbols before other atoms.
int compare(Atom a, Atom b);
int compare(const MonomialNode* a, const MonomialNode* b);
int compare(const ExprNode* a, const ExprNode* b);

const MonomialNode* multiply(const MonomialNode* a, const MonomialNode* b);
// a / b when every factor of b is one of a; nullptr otherwise.
const MonomialNode* divide_exactly(const MonomialNode* a, const MonomialNode* b);
const MonomialNode* without(const MonomialNode* m, size_t factor);

// Collects products in any order and makes the canonical Expr of their sum.
class Sum {
 public:
  void add(int64_t coefficient, const MonomialNode* monomial) {
    if (coefficient != 0) products_.push_back({coefficient, monomial});
  }
  void add(const Expr& e, int64_t scale = 1);
  // scale * a * b
  void add_product(const Expr& a, const Expr& b, const Product& scale);
  Expr finish();
  // Of some terms of an Expr, or of what they are times a common atom: finish() had nothing left to recombine there.
  Expr finish_part();

 private:
  bool collect();    // sorts and merges; false on overflow or too many terms
  bool recombine();  // one step of the rules in recombine.cpp; false when none applies
  bool recombine_mod();
  bool recombine_difference();
  bool replace(const std::vector<Product>& part, const Expr& whole, const Product& factor);

  std::vector<Product> products_;
  bool failed_ = false;
};

inline const std::vector<Product>& products(const Expr& e) { return e.node()->products; }
Expr of_product(const Product& p);
// The constant term, 0 when there is none.
int64_t constant_term(const Expr& e);
// The single factor when e is 1 * that factor (+ a constant, returned through offset when it is given).
const AtomNode* single_atom(const Expr& e, int64_t* offset = nullptr);
// e / c; every coefficient must be a multiple of c.
Expr divide_exactly(const Expr& e, int64_t c);

// The constructors of the public header with the ranges that may be used; the public ones pass none.
Expr divide(const Expr& a, const Expr& b, const Ranges& ranges);
Expr modulo(const Expr& a, const Expr& b, const Ranges& ranges);
Expr minimum(const Expr& a, const Expr& b, const Ranges& ranges);
Expr maximum(const Expr& a, const Expr& b, const Ranges& ranges);
Expr choose(const Expr& d, const Expr& then, const Expr& otherwise, const Ranges& ranges);
const Ranges& no_ranges();

// A known divisor of every value of the product: its coefficient times the divisibility of its symbols. 0 on overflow.
int64_t known_divisor(const Product& p, const Ranges& ranges);
// What is at least 0 where d is: g * s + k >= 0 exactly where s + k // g >= 0.
Expr without_common_factor(const Expr& d);
// Quotients of a sum by constants, each by its own linear bound: a - d < d * (a // d) <= a. It decides sums of many
// sizes rounded up, as the offsets of a memory plan are, where replacing one after the other is hopeless.
bool by_linear_bounds(const Expr& e, const Ranges& ranges);
// Provably e >= 0.
bool provably_nonneg(const Expr& e, const Ranges& ranges);

}  // namespace dlc::detail
