// Conditions over indices as inequalities: `y + kh >= 1 and y + kh < 15` is min(y + kh - 1, 14 - y - kh) >= 0.
#pragma once

#include <optional>

#include "dlc/kernel/kernel.h"

namespace dlc {

// c such that c >= 0 exactly where the condition holds; nullopt when it reads data.
std::optional<Expr> nonnegative_form(const Val& condition);
// Of the comparison `a op b`; nullopt when op is none.
std::optional<Expr> nonnegative_form(BinaryOp op, const Expr& a, const Expr& b);

}  // namespace dlc
