#include "dlc/kernel/condition.h"

namespace dlc {

std::optional<Expr> nonnegative_form(const Val& c) {
  if (c->kind == ValKind::integer) return Expr(c->integer != 0 ? 0 : -1);
  if (c->kind == ValKind::unary && c->unary_op() == UnaryOp::logical_not) {
    const auto a = nonnegative_form(c->args[0]);
    return a ? std::optional(-1 - *a) : std::nullopt;
  }
  if (c->kind != ValKind::binary) return std::nullopt;
  const BinaryOp op = c->binary_op();
  if (op == BinaryOp::logical_and || op == BinaryOp::logical_or) {
    const auto a = nonnegative_form(c->args[0]), b = nonnegative_form(c->args[1]);
    if (!a || !b) return std::nullopt;
    return op == BinaryOp::logical_and ? min(*a, *b) : max(*a, *b);
  }
  const auto a = val::as_expr(c->args[0]), b = val::as_expr(c->args[1]);
  return a && b ? nonnegative_form(op, *a, *b) : std::nullopt;
}

std::optional<Expr> nonnegative_form(BinaryOp op, const Expr& a, const Expr& b) {
  switch (op) {
    case BinaryOp::eq:
      return min(a - b, b - a);
    case BinaryOp::ne:
      return max(a - b, b - a) - 1;
    case BinaryOp::lt:
      return b - a - 1;
    case BinaryOp::le:
      return b - a;
    case BinaryOp::gt:
      return a - b - 1;
    case BinaryOp::ge:
      return a - b;
    default:
      return std::nullopt;
  }
}

}  // namespace dlc
