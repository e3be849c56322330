// Ranges of integer values: what decides whether 32-bit registers hold them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dlc/base/dtype.h"
#include "dlc/expr/expr.h"
#include "dlc/kernel/kernel.h"

namespace dlc::interp {

inline constexpr Interval kUnknown;

inline bool fits_s32(const Interval& r) { return r.lo >= INT32_MIN && r.hi <= INT32_MAX && r.lo <= r.hi; }

__extension__ typedef __int128 Wide;

inline Interval interval_of(Wide lo, Wide hi) {
  if (lo < INT64_MIN || hi > INT64_MAX) return kUnknown;
  return {static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

inline bool known(const Interval& r) { return r.lo != Interval::kNegInf && r.hi != Interval::kPosInf; }

inline Interval combine(BinaryOp op, const Interval& a, const Interval& b) {
  if (!known(a) || !known(b)) return kUnknown;
  using W = Wide;
  switch (op) {
    case BinaryOp::add:
      return interval_of(W{a.lo} + b.lo, W{a.hi} + b.hi);
    case BinaryOp::sub:
      return interval_of(W{a.lo} - b.hi, W{a.hi} - b.lo);
    case BinaryOp::mul: {
      const W p[] = {W{a.lo} * b.lo, W{a.lo} * b.hi, W{a.hi} * b.lo, W{a.hi} * b.hi};
      return interval_of(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
    }
    case BinaryOp::floor_div: {  // no larger in magnitude than a
      const W m = std::max(W{a.hi}, -W{a.lo});
      return interval_of(-m, m);
    }
    case BinaryOp::mod:
      return {std::min<int64_t>(0, b.lo), std::max<int64_t>(0, b.hi)};
    default:
      return kUnknown;
  }
}

inline Interval type_range(DType t) { return t == kU64 ? kUnknown : Interval{t.min_value(), t.max_value()}; }

}  // namespace dlc::interp
