#include "fold.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dlc/base/checked.h"
#include "dlc/kernel/names.h"
#include "typing.h"

namespace dlc::fold {

using typing::as_double;
using typing::is_int_literal;
using typing::is_literal;

namespace {

template <class T>
bool compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    default:
      return a >= b;
  }
}

// Integers in 64 bits, wrapping; nullopt where the result is undefined.
std::optional<int64_t> integer_op(BinaryOp op, DType type, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool is_unsigned = type == kU64;
  switch (op) {
    case BinaryOp::add:
      return static_cast<int64_t>(ua + ub);
    case BinaryOp::sub:
      return static_cast<int64_t>(ua - ub);
    case BinaryOp::mul:
      return static_cast<int64_t>(ua * ub);
    case BinaryOp::floor_div:
      if (b == 0) return std::nullopt;
      return is_unsigned ? static_cast<int64_t>(ua / ub) : floor_div(a, b);
    case BinaryOp::mod:
      if (b == 0) return std::nullopt;
      return is_unsigned ? static_cast<int64_t>(ua % ub) : floor_mod(a, b);
    case BinaryOp::shl:
      if (ub > 63) return std::nullopt;
      return static_cast<int64_t>(ua << ub);
    case BinaryOp::shr:
      if (ub > 63) return std::nullopt;
      return is_unsigned ? static_cast<int64_t>(ua >> ub) : a >> b;
    case BinaryOp::bit_and:
      return a & b;
    case BinaryOp::bit_or:
      return a | b;
    default:
      return a ^ b;
  }
}

double real_op(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::floor_div:
      return std::floor(a / b);
    default: {  // mod has the divisor's sign
      const double r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
}

bool divides(BinaryOp op) { return op == BinaryOp::floor_div || op == BinaryOp::mod; }
bool is_zero(const Val& v) { return is_literal(v) && as_double(v) == 0; }
bool is_one(const Val& v) { return is_literal(v) && as_double(v) == 1; }

}  // namespace

Val binary_literals(BinaryOp op, const Val& a, const Val& b) {
  const bool shifts = op == BinaryOp::shl || op == BinaryOp::shr;
  if (divides(op) && is_zero(b)) return val::undef(a->type);  // whatever a is
  if (shifts && is_int_literal(b) && static_cast<uint64_t>(b->integer) > 63) return val::undef(a->type);
  if (!is_literal(a) || !is_literal(b)) return nullptr;
  const DType t = a->type;
  if (t.is_bool()) {
    const bool x = a->integer != 0, y = b->integer != 0;
    return val::boolean(op == BinaryOp::logical_and ? x && y : x || y);
  }
  if (t.is_float()) {
    if (typing::is_integer_only(op)) return nullptr;
    if (typing::is_comparison(op)) return val::boolean(compare(op, a->real, b->real));
    return val::real(real_op(op, a->real, b->real), t);
  }
  if (op == BinaryOp::div) return nullptr;
  if (typing::is_comparison(op)) {
    if (t == kU64)
      return val::boolean(compare(op, static_cast<uint64_t>(a->integer), static_cast<uint64_t>(b->integer)));
    return val::boolean(compare(op, a->integer, b->integer));
  }
  const auto r = integer_op(op, t, a->integer, b->integer);
  return r ? val::integer(*r, t) : val::undef(t);
}

Val unary_literal(UnaryOp op, const Val& a) {
  if (!is_literal(a)) return nullptr;
  if (op == UnaryOp::logical_not) return a->type.is_bool() ? val::boolean(a->integer == 0) : nullptr;
  if (op == UnaryOp::neg && a->type.is_float()) return val::real(-a->real, a->type);
  if (a->type.is_float()) return nullptr;
  const auto u = static_cast<uint64_t>(a->integer);
  return val::integer(static_cast<int64_t>(op == UnaryOp::neg ? 0 - u : ~u), a->type);
}

namespace {

double real_call(Fn fn, double x) {
  switch (fn) {
    case Fn::exp:
      return std::exp(x);
    case Fn::log:
      return std::log(x);
    case Fn::sin:
      return std::sin(x);
    case Fn::cos:
      return std::cos(x);
    case Fn::tan:
      return std::tan(x);
    case Fn::asin:
      return std::asin(x);
    case Fn::acos:
      return std::acos(x);
    case Fn::atan:
      return std::atan(x);
    case Fn::sinh:
      return std::sinh(x);
    case Fn::cosh:
      return std::cosh(x);
    case Fn::tanh:
      return std::tanh(x);
    case Fn::asinh:
      return std::asinh(x);
    case Fn::acosh:
      return std::acosh(x);
    case Fn::atanh:
      return std::atanh(x);
    case Fn::erf:
      return std::erf(x);
    case Fn::sqrt:
      return std::sqrt(x);
    case Fn::rsqrt:
      return 1 / std::sqrt(x);
    case Fn::abs:
      return std::fabs(x);
    case Fn::sign:
      return x > 0 ? 1 : x < 0 ? -1 : x;  // NaN and zero are themselves
    case Fn::floor:
      return std::floor(x);
    case Fn::ceil:
      return std::ceil(x);
    case Fn::round:
      return std::nearbyint(x);  // half to even in the default rounding mode
    default:
      return std::trunc(x);
  }
}

Val extreme(Fn fn, const std::vector<Val>& args) {
  Val best = args[0];
  for (const auto& v : args) {
    if (v->type.is_float() && std::isnan(v->real)) return v;
    const Val better = binary_literals(fn == Fn::min ? BinaryOp::lt : BinaryOp::gt, v, best);
    if (better->integer != 0) best = v;
  }
  return best;
}

}  // namespace

Val call_literals(Fn fn, const std::vector<Val>& args) {
  const DType t = args[0]->type;
  if (fn == Fn::tdiv && args.size() == 2 && is_zero(args[1])) return val::undef(t);
  if (fn == Fn::fmod && args.size() == 2 && is_zero(args[1]) && t.is_int()) return val::undef(t);
  for (const auto& a : args)
    if (!is_literal(a) || a->type != t || t.is_bool()) return nullptr;
  if (fn == Fn::min || fn == Fn::max) return extreme(fn, args);
  if (fn == Fn::fmod || fn == Fn::tdiv || fn == Fn::pow) {
    if (args.size() != 2) return nullptr;
    if (t.is_float()) {
      if (fn == Fn::tdiv) return nullptr;
      const double x = args[0]->real, y = args[1]->real;
      return val::real(fn == Fn::pow ? std::pow(x, y) : std::fmod(x, y), t);
    }
    const int64_t x = args[0]->integer, y = args[1]->integer;
    if (t == kU64) {
      const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
      return val::integer(static_cast<int64_t>(fn == Fn::tdiv ? ux / uy : ux % uy), t);
    }
    if (y == -1) return val::integer(fn == Fn::tdiv ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : 0, t);
    return val::integer(fn == Fn::tdiv ? x / y : x % y, t);
  }
  if (args.size() != 1) return nullptr;
  if (t.is_int()) {
    const int64_t x = args[0]->integer;
    if (fn == Fn::abs) return t == kU64 || x >= 0 ? args[0] : unary_literal(UnaryOp::neg, args[0]);
    if (fn == Fn::sign) return val::integer(x == 0 ? 0 : t == kS64 && x < 0 ? -1 : 1, t);
    return nullptr;
  }
  if (fn == Fn::is_nan) return val::boolean(std::isnan(args[0]->real));
  if (fn == Fn::is_inf) return val::boolean(std::isinf(args[0]->real));
  return val::real(real_call(fn, args[0]->real), t);
}

namespace {

// Truncated toward zero; out of range saturates at 64 bits, NaN is 0. As in Tensor.
int64_t truncate(double v, bool to_u64) {
  if (std::isnan(v)) return 0;
  if (to_u64 && v >= 0x1p63) return v >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(v));
  if (v >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (v < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(v);
}

// A double rounded to a float type, as a store of that type does.
double rounded(DType to, double v) {
  if (to == kF16) return f16_to_f32(f32_to_f16(static_cast<float>(v)));
  if (to == kBF16) return bf16_to_f32(f32_to_bf16(static_cast<float>(v)));
  return v;  // f32 literals are rounded where they are used
}

}  // namespace

Val cast_literal(DType to, const Val& a, bool saturate) {
  if (!is_literal(a)) return nullptr;
  if (to.is_bool()) return val::boolean(as_double(a) != 0);
  if (to.is_float()) return val::real(rounded(to, as_double(a)), compute_type(to));
  const bool from_u64 = a->type == kU64;
  int64_t v = a->type.is_float() ? truncate(a->real, to == kU64) : a->integer;
  if (saturate) {
    if (from_u64 && v < 0) {  // above every signed value
      if (to != kU64) v = to.max_value();
    } else if (to == kU64) {
      if (v < 0 && !(a->type.is_float() && a->real > 0)) v = 0;
    } else {
      v = std::min(std::max(v, to.min_value()), to.max_value());
    }
  }
  return val::integer(wrap_to(to, v), compute_type(to));
}

Val binary_index(BinaryOp op, const Val& a, const Val& b) {
  const auto x = val::as_expr(a), y = val::as_expr(b);
  if (!x || !y) return nullptr;
  Expr e;
  switch (op) {
    case BinaryOp::add:
      e = *x + *y;
      break;
    case BinaryOp::sub:
      e = *x - *y;
      break;
    case BinaryOp::mul:
      e = *x * *y;
      break;
    case BinaryOp::floor_div:
      e = floor_div(*x, *y);
      break;
    case BinaryOp::mod:
      e = mod(*x, *y);
      break;
    default:
      return nullptr;
  }
  return e.valid() ? val::index(e) : nullptr;  // an overflow stays a 64-bit operation
}

std::optional<bool> compare_index(BinaryOp op, const Expr& a, const Expr& b) {
  const Expr d = a - b;
  if (!d.valid()) return std::nullopt;
  const Interval i = bounds(d, {});
  const bool below = i.hi < 0, above = i.lo > 0, zero = i.lo == 0 && i.hi == 0;
  const bool at_most = i.hi <= 0, at_least = i.lo >= 0;
  const auto answer = [](bool yes, bool no) {
    return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt;
  };
  switch (op) {
    case BinaryOp::eq:
      return answer(zero, below || above);
    case BinaryOp::ne:
      return answer(below || above, zero);
    case BinaryOp::lt:
      return answer(below, at_least);
    case BinaryOp::le:
      return answer(at_most, above);
    case BinaryOp::gt:
      return answer(above, at_most);
    case BinaryOp::ge:
      return answer(at_least, below);
    default:
      return std::nullopt;
  }
}

std::optional<Expr> select_index(const Val& condition, const Expr& a, const Expr& b) {
  if (condition->kind == ValKind::unary && condition->unary_op() == UnaryOp::logical_not)
    return select_index(condition->args[0], b, a);
  if (condition->kind != ValKind::binary) return std::nullopt;
  const BinaryOp op = condition->binary_op();
  const Val &left = condition->args[0], &right = condition->args[1];
  if (op == BinaryOp::logical_and) {
    const auto inner = select_index(right, a, b);
    return inner ? select_index(left, *inner, b) : std::nullopt;
  }
  if (op == BinaryOp::logical_or) {
    const auto inner = select_index(right, a, b);
    return inner ? select_index(left, a, *inner) : std::nullopt;
  }
  if (!typing::is_comparison(op)) return std::nullopt;
  const auto x = val::as_expr(left), y = val::as_expr(right);
  if (!x || !y) return std::nullopt;
  const Expr d = *x - *y, minus_d = *y - *x;
  Expr e;
  switch (op) {
    case BinaryOp::ge:
      e = select_nonneg(d, a, b);
      break;
    case BinaryOp::gt:
      e = select_nonneg(d - 1, a, b);
      break;
    case BinaryOp::le:
      e = select_nonneg(minus_d, a, b);
      break;
    case BinaryOp::lt:
      e = select_nonneg(minus_d - 1, a, b);
      break;
    case BinaryOp::eq:
      e = select_nonneg(d, select_nonneg(minus_d, a, b), b);
      break;
    default:
      e = select_nonneg(d, select_nonneg(minus_d, b, a), a);
      break;
  }
  return e.valid() ? std::optional(e) : std::nullopt;
}

// The sign of a zero is not part of a value's meaning, so x + 0 is x for floats too.
Val identities(BinaryOp op, const Val& a, const Val& b) {
  switch (op) {
    case BinaryOp::add:
      return is_zero(b) ? a : is_zero(a) ? b : nullptr;
    case BinaryOp::sub:
    case BinaryOp::shl:
    case BinaryOp::shr:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
      return is_zero(b) ? a : nullptr;
    case BinaryOp::mul:
      if (is_one(b)) return a;
      if (is_one(a)) return b;
      if (a->type.is_int() && is_zero(a) && !may_be_undefined(b)) return a;
      if (a->type.is_int() && is_zero(b) && !may_be_undefined(a)) return b;
      return nullptr;
    case BinaryOp::div:
      return is_one(b) ? a : nullptr;
    case BinaryOp::floor_div:
      return is_one(b) && a->type.is_int() ? a : nullptr;
    case BinaryOp::logical_and:  // lazy on the right: a constant left decides
      if (is_int_literal(a)) return a->integer ? b : a;
      if (is_int_literal(b) && (b->integer || !may_be_undefined(a))) return b->integer ? a : b;
      return nullptr;
    case BinaryOp::logical_or:
      if (is_int_literal(a)) return a->integer ? a : b;
      if (is_int_literal(b) && (!b->integer || !may_be_undefined(a))) return b->integer ? b : a;
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace dlc::fold
