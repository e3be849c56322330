#include "fold.h"

#include <algorithm>
#include <cmath>

#include "core/kernel/meaning.h"
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
      return meaning::Eq::f(a, b);
    case BinaryOp::ne:
      return meaning::Ne::f(a, b);
    case BinaryOp::lt:
      return meaning::Lt::f(a, b);
    case BinaryOp::le:
      return meaning::Le::f(a, b);
    case BinaryOp::gt:
      return meaning::Lt::f(b, a);
    default:
      return meaning::Le::f(b, a);
  }
}

// Operators that integers and floats have; nullopt where the result is undefined.
template <class T>
std::optional<T> arithmetic(BinaryOp op, T a, T b) {
  bool undefined = false;
  T r{};
  switch (op) {
    case BinaryOp::add:
      return meaning::Add::f(a, b);
    case BinaryOp::sub:
      return meaning::Sub::f(a, b);
    case BinaryOp::mul:
      return meaning::Mul::f(a, b);
    case BinaryOp::floor_div:
      r = meaning::FloorDiv::f(a, b, undefined);
      break;
    default:
      r = meaning::FloorMod::f(a, b, undefined);
      break;
  }
  return undefined ? std::nullopt : std::optional(r);
}

template <class T>
std::optional<T> integer_op(BinaryOp op, T a, T b) {
  bool undefined = false;
  T r{};
  switch (op) {
    case BinaryOp::shl:
      r = meaning::ShiftLeft::f(a, b, undefined);
      break;
    case BinaryOp::shr:
      r = meaning::ShiftRight::f(a, b, undefined);
      break;
    case BinaryOp::bit_and:
      return meaning::BitAnd::f(a, b);
    case BinaryOp::bit_or:
      return meaning::BitOr::f(a, b);
    case BinaryOp::bit_xor:
      return meaning::BitXor::f(a, b);
    default:
      return arithmetic(op, a, b);
  }
  return undefined ? std::nullopt : std::optional(r);
}

// fmod, tdiv and pow.
template <class T>
std::optional<T> binary_call(Fn fn, T a, T b) {
  bool undefined = false;
  const T r = fn == Fn::pow    ? meaning::Pow::f(a, b)
              : fn == Fn::tdiv ? meaning::TruncDiv::f(a, b, undefined)
                               : meaning::TruncMod::f(a, b, undefined);
  return undefined ? std::nullopt : std::optional(r);
}

// f of the operands in the type they are computed in; undef where it has no result.
template <class F>
Val computed(DType t, const Val& a, const Val& b, F&& f) {
  const auto integer = [&](auto r) { return r ? val::integer(static_cast<int64_t>(*r), t) : val::undef(t); };
  if (t.is_float()) {
    const auto r = f(a->real, b->real);
    return r ? val::real(*r, t) : val::undef(t);
  }
  if (t == kU64) return integer(f(static_cast<uint64_t>(a->integer), static_cast<uint64_t>(b->integer)));
  return integer(f(a->integer, b->integer));
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
    if (op == BinaryOp::div) return val::real(meaning::Div::f(a->real, b->real), t);
    return computed(t, a, b, [&](auto x, auto y) { return arithmetic(op, x, y); });
  }
  if (op == BinaryOp::div) return nullptr;
  if (typing::is_comparison(op)) {
    if (t == kU64)
      return val::boolean(compare(op, static_cast<uint64_t>(a->integer), static_cast<uint64_t>(b->integer)));
    return val::boolean(compare(op, a->integer, b->integer));
  }
  if (t == kU64) {
    const auto r = integer_op(op, static_cast<uint64_t>(a->integer), static_cast<uint64_t>(b->integer));
    return r ? val::integer(static_cast<int64_t>(*r), t) : val::undef(t);
  }
  const auto r = integer_op(op, a->integer, b->integer);
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
    if (args.size() != 2 || (fn == Fn::tdiv && t.is_float())) return nullptr;
    return computed(t, args[0], args[1], [&](auto x, auto y) { return binary_call(fn, x, y); });
  }
  if (args.size() != 1) return nullptr;
  if (t.is_int()) {
    if (fn != Fn::abs && fn != Fn::sign) return nullptr;
    if (t == kU64)
      return val::integer(static_cast<int64_t>(meaning::unary_fn(fn, static_cast<uint64_t>(args[0]->integer))), t);
    return val::integer(meaning::unary_fn(fn, args[0]->integer), t);
  }
  if (fn == Fn::is_nan) return val::boolean(std::isnan(args[0]->real));
  if (fn == Fn::is_inf) return val::boolean(std::isinf(args[0]->real));
  return val::real(meaning::unary_fn(fn, args[0]->real), t);
}

Val cast_literal(DType to, const Val& a, bool saturate) {
  if (!is_literal(a)) return nullptr;
  if (to.is_bool()) return val::boolean(as_double(a) != 0);
  if (to.is_float()) {
    const double v = as_double(a);
    const auto rounded = [&]() -> double {
      if (to.bits == 64) return v;
      return to.is_narrow_float() ? rounded_to(to, static_cast<float>(v)) : static_cast<float>(v);
    };
    return val::real(rounded(), compute_type(to));
  }
  const int64_t v = a->type.is_float() ? meaning::cast_to<int64_t>(to, saturate, a->real)
                    : a->type == kU64  ? meaning::cast_to<int64_t>(to, saturate, static_cast<uint64_t>(a->integer))
                                       : meaning::cast_to<int64_t>(to, saturate, a->integer);
  return val::integer(v, compute_type(to));
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

// A sum with 0.0 is not its other side when that is -0.0; one with -0.0 is.
Val identities(BinaryOp op, const Val& a, const Val& b) {
  const auto neutral = [](const Val& v) { return is_zero(v) && (v->type.is_int() || std::signbit(v->real)); };
  switch (op) {
    case BinaryOp::add:
      return neutral(b) ? a : neutral(a) ? b : nullptr;
    case BinaryOp::sub:
      return is_zero(b) && !(b->type.is_float() && std::signbit(b->real)) ? a : nullptr;
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
