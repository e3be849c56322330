// What code generation knows about one assignment before it emits anything: where each access lies in memory, which
// bounds checks remain, which loops each value depends on, and how wide its integers must be.
//
//   for n < 1, c < 64, y < 56, x < 56:  Y[n,c,y,x] = max(X[n,c,y,x], 0)
//   -> offsets of X and Y: n*802816 + c*12544 + y*224 + x*4, no checks; collapse_loops() makes it x < 200704.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "dlc/kernel/kernel.h"

namespace dlc::lower {

// How a value is held in a register. s64 values that provably fit are i32.
enum class Rep : uint8_t { b1, i8, i16, i32, i64, f32, f64 };
int bytes_of(Rep r);

struct Check {
  int dim = 0;
  bool dynamic = false;  // the index is a value, args[dim]
  Expr index;            // otherwise this
  Expr extent;
};

struct Access {
  int root = -1;                      // the tensor in whose buffer the element lies
  Expr offset;                        // bytes, of the indices that are Exprs
  std::vector<int> dynamic;           // dims whose index is a value
  std::vector<Expr> dynamic_strides;  // their strides in bytes
  std::vector<Check> checks;          // what could not be proved
};

// Variables as bits: the loops of one statement and the loops around it.
using VarSet = uint64_t;

class Lowered {
 public:
  // `around`: the seq loops the statement is in.
  static Result<Lowered> make(const Kernel& k, const Stmt& stmt, const std::vector<Loop>& around);

  const Kernel& kernel() const { return *kernel_; }
  const std::vector<Loop>& loops() const { return loops_; }
  const Val& value() const { return value_; }
  const Access& store() const { return store_; }
  const std::vector<Val>& store_indices() const { return store_indices_; }
  DType store_type() const;
  const Ranges& ranges() const { return ranges_; }

  const Access& access(const ValNode* read) const { return accesses_.at(read); }
  VarSet vars(const ValNode* v) const { return vars_.at(v); }
  VarSet vars(const Expr& e) const;
  VarSet bit(std::string_view var) const;  // 0: not a loop
  Rep rep(const ValNode* v) const { return reps_.at(v); }
  Interval range(const ValNode* v) const { return intervals_.at(v); }
  bool may_be_undefined(const ValNode* v) const { return undefined_.at(v); }
  bool computes(const ValNode* v) const { return computes_.at(v); }  // has a read, a call or a reduction in it
  bool reduces(const ValNode* v) const { return reduces_.at(v); }    // has a reduction in it

  // When the statement only moves elements of its own type (through `if` and `?:`): their storage, else nullopt.
  bool is_copy() const { return is_copy_; }

  // Bytes from one point of `var` to the next, when that is a constant.
  std::optional<int64_t> stride(const Access& a, std::string_view var) const;

  // Joins neighbouring loops that every access walks as one.
  void collapse_loops();

 private:
  void analyse(const Val& v);
  Interval interval_of(const ValNode& v) const;
  Result<Access> lower_access(int tensor, const std::vector<Val>& indices) const;
  bool try_collapse(size_t outer);
  bool copies_only(const Val& v) const;

  const Kernel* kernel_ = nullptr;
  int target_ = -1;
  std::vector<Loop> loops_;
  Val value_;
  std::vector<Val> store_indices_;
  Access store_;
  Ranges ranges_;
  bool is_copy_ = false;
  std::map<std::string, int, std::less<>> bits_;
  std::unordered_map<const ValNode*, Access> accesses_;
  std::unordered_map<const ValNode*, VarSet> vars_;
  std::unordered_map<const ValNode*, Rep> reps_;
  std::unordered_map<const ValNode*, Interval> intervals_;
  std::unordered_map<const ValNode*, bool> undefined_, computes_, reduces_;
  std::string error_;
};

}  // namespace dlc::lower
