#include "core/numerics/multiplier.h"

#include <algorithm>
#include <cmath>

namespace dlc::numerics {

namespace {

int64_t scaled(double ratio, int64_t shift) { return std::llrint(std::ldexp(ratio, static_cast<int>(shift))); }

}  // namespace

bool usable_scale(double scale) { return std::isfinite(scale) && scale > 0; }

std::optional<Multiplier> choose_multiplier(double ratio, DType type, DType shift, int64_t max_shift) {
  if (!usable_scale(ratio)) return std::nullopt;
  for (int64_t s = std::min(max_shift, shift.max_value()); s >= 0; --s) {
    if (std::ldexp(ratio, static_cast<int>(s)) > static_cast<double>(type.max_value()) + 0.5) continue;
    const int64_t m = scaled(ratio, s);
    if (m <= type.max_value()) return Multiplier{m, s};
  }
  return std::nullopt;
}

std::optional<MultiplierPair> choose_multipliers(double a, double b, DType a_type, DType b_type, DType shift,
                                                 int64_t max_shift) {
  if (!usable_scale(a) || !usable_scale(b)) return std::nullopt;
  for (int64_t s = std::min(max_shift, shift.max_value()); s >= 0; --s) {
    if (std::ldexp(a, static_cast<int>(s)) > static_cast<double>(a_type.max_value()) + 0.5) continue;
    if (std::ldexp(b, static_cast<int>(s)) > static_cast<double>(b_type.max_value()) + 0.5) continue;
    const MultiplierPair p{scaled(a, s), scaled(b, s), s};
    if (p.a <= a_type.max_value() && p.b <= b_type.max_value()) return p;
  }
  return std::nullopt;
}

}  // namespace dlc::numerics
