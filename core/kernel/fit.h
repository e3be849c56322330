// An index that is computed in another way than by integer arithmetic, as an Expr, where one says the same at every
// point of its loop:
//
//   clamp(cast(ceil((o + 0.5) / 2.0 - 1.0), s64), 0, 39)   over o < 80:   o // 2
//
// Nearest neighbours, whatever the coordinates and the rounding, are this.
#pragma once

#include <optional>

#include "dlc/kernel/kernel.h"

namespace dlc {

// Of a value over one loop at most, whose range is known; it reads nothing. What is an Expr already is that.
std::optional<Expr> fit_index(const Val& index, const Ranges& ranges);

}  // namespace dlc
