// Exact formulas of ROM contents: + - * / **, floor(), parentheses, integers and the index i, in rationals of 128 bits.
#pragma once

#include <cstdint>
#include <string_view>

#include "dlc/base/diag.h"

namespace dlc {

// The formula at i. The value must be an integer: floor(x + 1/2) rounds.
Result<int64_t> evaluate_formula(std::string_view text, int64_t i, const Loc& where);

}  // namespace dlc
