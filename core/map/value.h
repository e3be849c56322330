// Values as the matcher sees them: what range a value has, and a canonical form in which conversions and clamps that
// change nothing are gone, so that a kernel and an instruction say the same thing in the same way.
//
//   cast(s32, cast(s32, B[o] + acc[o]))      ->  cast(s32, B[o] + acc[o])
//   min(max(X[i], -128), 127), X: s8         ->  X[i]
#pragma once

#include <unordered_map>

#include "dlc/kernel/kernel.h"

namespace dlc::map {

// Closed interval of a value; the whole of s64 where nothing is known.
Interval value_range(const Val& v, const Kernel& k, const Ranges& symbols);
bool fits(const Interval& range, DType t);

// value_range() of many values that have parts in common. Kernel and ranges must outlive it.
class ValueRanges {
 public:
  ValueRanges(const Kernel& k, const Ranges& symbols) : k_(k), symbols_(symbols) {}
  const Interval& of(const Val& v);

 private:
  Interval compute(const Val& v);

  const Kernel& k_;
  const Ranges& symbols_;
  std::unordered_map<Val, Interval> known_;
};

Val canonical(const Val& v, ValueRanges& ranges);
Val canonical(const Val& v, const Kernel& k, const Ranges& symbols);

// The same value with equal parts as one node: what is found out about a part then need not be found out again.
Val shared(const Val& v);

// For messages: clipped.
std::string short_text(const Val& v, const Kernel& k);

// Reads nothing: a number once the symbols are known.
bool is_scalar(const Val& v);

}  // namespace dlc::map
