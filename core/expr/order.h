// Comparisons of sums of sizes, as the offsets of a memory plan are, and of maxima of such sums.
//
// A proof is a search, and a plan asks thousands of questions, so most are answered without one: what already fails at
// a point of the symbols' ranges is not tried; a sum is below another when each of its sizes has a partner in the other
// that is at least as large; and nothing is asked twice. Parts of a difference that share no symbol are searched each
// for itself, so that n unrelated sizes need searches for n parts and not for n*n pairs.
//
//   64*((4*N*H + 63)//64)  <=  64*((8*N*H + 63)//64) + 64*((4*N + 63)//64)     the first is below its partner
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "dlc/expr/expr.h"

namespace dlc::detail {

class Order {
 public:
  struct Address {
    Expr value;
    std::vector<Expr> sums;                  // value is the largest of them
    std::vector<std::optional<int64_t>> at;  // value at the points; the first is where all symbols are large
  };

  explicit Order(const Ranges& symbols);

  Address address(const Expr& e) const;
  static bool may_be_le(const Address& a, const Address& b);
  bool provably_le(const Address& a, const Address& b);
  // The same of two sums without maxima.
  bool provably_le(const Expr& a, const Expr& b);

  int searches() const { return searches_; }  // proofs by search so far: what the time goes to

 private:
  // Of a part of a sum: it is at least `proven`, and that it is more than `limit` is wrong or cannot be proved.
  struct Reach {
    int64_t proven;
    int64_t limit;
  };
  using Point = std::map<std::string, int64_t, std::less<>>;

  std::vector<std::optional<int64_t>> values(const Expr& e) const;
  bool by_partners(const Expr& difference);
  bool by_search(const Expr& difference);
  bool search(const Expr& e);
  std::set<std::string> symbols_behind(const Expr& e) const;
  std::vector<Expr> independent_parts(const Expr& e) const;
  Reach* reach_of(const Expr& part);

  const Ranges& symbols_;
  std::vector<Point> points_;
  std::unordered_map<Expr, bool> known_;  // by difference: whether it is provably at least 0
  std::unordered_map<Expr, Reach> reach_;
  int searches_ = 0;
};

}  // namespace dlc::detail
