#include "core/numerics/multiplier.h"

#include <algorithm>
#include <cmath>

namespace dlc::numerics {

bool usable_scale(double scale) { return std::isfinite(scale) && scale > 0; }

std::optional<Multipliers> choose_multipliers(std::span<const double> ratios, std::span<const DType> types,
                                              int64_t max_shift) {
  if (!std::ranges::all_of(ratios, usable_scale)) return std::nullopt;
  for (int64_t s = max_shift; s >= 0; --s) {
    Multipliers k{{}, s};
    for (size_t i = 0; i < ratios.size(); ++i) {
      const double scaled = std::ldexp(ratios[i], static_cast<int>(s));
      if (scaled > static_cast<double>(types[i].max_value()) + 0.5 || scaled >= 0x1p63) break;
      k.m.push_back(std::llrint(scaled));
      if (k.m.back() > types[i].max_value()) break;
    }
    if (k.m.size() == ratios.size() && k.m.back() <= types[ratios.size() - 1].max_value()) return k;
  }
  return std::nullopt;
}

}  // namespace dlc::numerics
