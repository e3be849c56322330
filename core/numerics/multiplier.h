// Scale ratios as integer multiplier and shift.
#pragma once

#include <cstdint>
#include <optional>

#include "dlc/base/dtype.h"

namespace dlc::numerics {

struct Multiplier {
  int64_t m = 0;
  int64_t s = 0;  // ratio = m / 2^s
};

// Whether a scale, or a ratio of scales, can be committed: order is kept only by a positive one, and 0, infinity and
// NaN stand for nothing.
bool usable_scale(double scale);

// The best (m, s) for ratio > 0 with m in [0, max of `type`] and s in [0, max of `shift`] and below `max_shift`.
// nullopt: the ratio is 0, not finite, or too large for s = 0.
std::optional<Multiplier> choose_multiplier(double ratio, DType type, DType shift, int64_t max_shift = 62);

// Two ratios over one shift: the larger one decides it.
struct MultiplierPair {
  int64_t a = 0;
  int64_t b = 0;
  int64_t s = 0;
};
std::optional<MultiplierPair> choose_multipliers(double a, double b, DType a_type, DType b_type, DType shift,
                                                 int64_t max_shift = 40);

}  // namespace dlc::numerics
