// Values as the matcher sees them: what range a value has, and a canonical form in which conversions and clamps that
// change nothing are gone, so that a kernel and an instruction say the same thing in the same way.
//
//   cast(s32, cast(s32, B[o] + acc[o]))      ->  cast(s32, B[o] + acc[o])
//   min(max(X[i], -128), 127), X: s8         ->  X[i]
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc::map {

// Closed interval of a value; the whole of s64 where nothing is known.
Interval value_range(const Val& v, const Kernel& k, const Ranges& symbols);
bool fits(const Interval& range, DType t);

Val canonical(const Val& v, const Kernel& k, const Ranges& symbols);

// Reads nothing: a number once the symbols are known.
bool is_scalar(const Val& v);

}  // namespace dlc::map
