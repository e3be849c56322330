// Numbers with the error that a right implementation may have made on the way to them: running error analysis
// (Wilkinson). A number is what exact arithmetic gives (in f64) and a bound of how far from it rounding may lead,
// derived operator by operator from the types the record computes in.
//
//   x, y exact in f32:  x * y  is  {v = x * y, error = 0 if f32 holds x * y, else 2^-24 |x * y|}
//   then            exp(x * y)  is  {v = exp(x * y), error = what exp does to that error + 2 ulp}
//
// error == 0 means: every right implementation has just this number, so that steps and ties at it are compared. Where
// an error may decide a step (a comparison, a cast to an integer) the result is not `known`.
#pragma once

#include <cstdint>
#include <limits>

#include "dlc/kernel/kernel.h"

namespace dlc::fuzz {

struct Number {
  double v = 0;      // floats
  double error = 0;  // of floats
  int64_t i = 0;     // integers (u64: its bits), bool
  bool known = true;
  bool undefined = false;

  static Number undef() { return {.undefined = true}; }
  static Number unknown() { return {.known = false}; }
  static Number integer(int64_t i) { return {.i = i}; }
  static Number real(double v, double error = 0) { return {.v = v, .error = error}; }

  bool is_usable() const { return known && !undefined; }
  bool exact() const { return error == 0; }
};

// x as elements of type t hold it; integers wrap or saturate where `from` has others.
Number rounded(DType t, const Number& x);
Number cast(DType from, DType to, bool saturate, const Number& x);

// Operators on values of one compute type, both usable.
Number unary(UnaryOp op, DType t, const Number& a);
Number binary(BinaryOp op, DType t, const Number& a, const Number& b);
Number call(Fn fn, DType t, const Number& a, const Number* b);  // min, max: of two

// Sums and products in any order.
class Fold {
 public:
  Fold(ReduceOp op, DType to) : op_(op), to_(to) {}
  void add(const Number& x, DType t, int64_t position);
  Number result() const;

 private:
  void add_float(const Number& x, int64_t position);
  void add_integer(const Number& x, DType t, int64_t position);

  ReduceOp op_;
  DType to_;
  int64_t count_ = 0, position_ = -1, integer_ = 0;
  double value_ = 0, error_ = 0, magnitude_ = 0, quantum_ = std::numeric_limits<double>::infinity();
  double partial_ = 1;                                           // prod: no product of some of the factors is larger
  double runner_up_ = -std::numeric_limits<double>::infinity();  // argmax: the highest that another may be
  bool all_exact_ = true, known_ = true, sure_ = false, undefined_ = false, special_ = false;
};

}  // namespace dlc::fuzz
