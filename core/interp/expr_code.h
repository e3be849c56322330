// Index expressions compiled to a small stack code over slots: symbols (loop variables, dims, fields) are numbered
// once, so evaluating an Expr at a point is a handful of array reads and no map lookup.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dlc/expr/expr.h"

namespace dlc::interp {

// Numbers symbols in order of first use.
class Slots {
 public:
  int of(std::string_view name);
  std::optional<int> find(std::string_view name) const;
  int size() const { return static_cast<int>(names_.size()); }
  const std::string& name(int slot) const { return names_[static_cast<size_t>(slot)]; }

 private:
  std::map<std::string, int, std::less<>> slots_;
  std::vector<std::string> names_;
};

class ExprCode {
 public:
  ExprCode() : ExprCode(int64_t{0}) {}
  explicit ExprCode(int64_t constant) : constant_(constant) {}
  ExprCode(const Expr& e, Slots& slots);        // numbers new symbols
  ExprCode(const Expr& e, const Slots& slots);  // every symbol has a slot

  bool is_constant() const { return ops_.empty(); }
  const std::vector<int>& slots() const { return used_; }  // sorted, unique

  // nullopt: division by zero or overflow.
  std::optional<int64_t> evaluate(const int64_t* env) const;

  struct Op {
    enum class Kind : uint8_t { constant, slot, add, mul, floor_div, mod, min, max, select };
    Kind kind;
    int64_t value = 0;  // the constant or the slot
  };
  const std::vector<Op>& ops() const { return ops_; }
  int64_t constant() const { return constant_; }

 private:
  void emit(const Expr& e, const Slots& slots);
  void emit(const Atom& a, const Slots& slots);
  void push(Op::Kind kind, int64_t value = 0);

  int64_t constant_ = 0;  // the value when ops_ is empty
  std::vector<Op> ops_;
  std::vector<int> used_;
};

inline constexpr int kMaxExprDepth = 64;

}  // namespace dlc::interp
