// Arithmetic on literals and on index expressions: what the constructors do before they make a node.
// Every function returns nullptr (or nullopt) when it has nothing to say.
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc::fold {

// Operands have one numeric type (bool for and/or), as after typing.
Val binary_literals(BinaryOp op, const Val& a, const Val& b);
Val unary_literal(UnaryOp op, const Val& a);
Val call_literals(Fn fn, const std::vector<Val>& args);
Val cast_literal(DType to, const Val& a, bool saturate);

// a op b as one Expr, both s64 and both index expressions.
Val binary_index(BinaryOp op, const Val& a, const Val& b);
// A comparison of index expressions that has the same answer everywhere.
std::optional<bool> compare_index(BinaryOp op, const Expr& a, const Expr& b);
// `if condition then a else b` as one Expr, when condition is built of comparisons of index expressions.
std::optional<Expr> select_index(const Val& condition, const Expr& a, const Expr& b);

// x op neutral, x op absorbing: the operand that remains.
Val identities(BinaryOp op, const Val& a, const Val& b);

}  // namespace dlc::fold
