// Scale ratios as integer multipliers and a shift.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dlc/base/dtype.h"

namespace dlc::numerics {

// Whether a scale, or a ratio of scales, can be committed: order is kept only by a positive one, and 0, infinity and
// NaN stand for nothing.
bool usable_scale(double scale);

// ratio[i] = m[i] / 2^s.
struct Multipliers {
  std::vector<int64_t> m;
  int64_t s = 0;
};

// The nearest for ratios > 0 with m[i] in [0, max of types[i]] and s in [0, max_shift]; the largest ratio decides s.
// nullopt: a ratio is 0, not finite, or too large for s = 0.
std::optional<Multipliers> choose_multipliers(std::span<const double> ratios, std::span<const DType> types,
                                              int64_t max_shift);

}  // namespace dlc::numerics
