#include "tests/fuzz/bounded.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/interp/scalar.h"
#include "dlc/base/float_format.h"

namespace dlc::fuzz {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Of the mantissa, with the leading one.
int digits(DType t) { return t == kF64 ? 53 : t == kF32 ? 24 : float_format(t).mantissa + 1; }
// Half a unit in the last place, relative. In f64 the value here is rounded too, hence the double of it.
double unit(DType t) { return std::ldexp(1, t == kF64 ? -52 : -digits(t)); }
// Where a type ends.
double highest(DType t) {
  return t == kF64 ? 1.7e308 : t == kF32 ? 3.38e38 : double{from_bits(t, float_format(t).largest())};
}
// Half of its smallest number.
double smallest(DType t) {
  if (t == kF64 || t == kF32) return t == kF64 ? 0x1p-1074 : 0x1p-150;
  return std::ldexp(1, -float_format(t).bias - float_format(t).mantissa);
}

// Functions are within 2 units in the last place (plugins/cpu/codegen/README.md; the C library's are better).
constexpr double kFunction = 4;

bool holds(DType t, double x) {
  if (t == kF64) return true;
  const auto f = static_cast<float>(x);
  if (static_cast<double>(f) != x) return false;
  if (t == kF32) return true;
  return rounded_to(t, f) == f;
}

// v, that `error` may be off before it is rounded to t. `exact`: v is no rounded number itself.
Number finish(DType t, double v, double error, bool exact, double units = 1) {
  if (std::isnan(error)) return Number::unknown();
  if (std::isnan(v) || std::isinf(v)) return error == 0 ? Number::real(v) : Number::unknown();
  if (error == 0 && exact && holds(t, v)) return Number::real(v);
  error += units * unit(t) * (std::abs(v) + error) + smallest(t);
  return std::abs(v) + error > highest(t) ? Number::unknown() : Number::real(v, error);
}

// Infinities and NaN are right only if no error of the arguments changes them.
template <class F>
Number special(const F& f, const Number& a, const Number& b) {
  const double v = f(a.v, b.v);
  for (const double x : {a.v - a.error, a.v + a.error})
    for (const double y : {b.v - b.error, b.v + b.error}) {
      const double w = f(x, y);
      if (w != v && !(std::isnan(w) && std::isnan(v))) return Number::unknown();
    }
  return Number::real(v);
}

bool has_special(const Number& a, const Number& b) { return !std::isfinite(a.v) || !std::isfinite(b.v); }

Number add(DType t, const Number& a, const Number& b) {
  const double v = a.v + b.v;
  const double part = v - a.v;
  const double rest = (a.v - (v - part)) + (b.v - part);
  return finish(t, v, a.error + b.error, rest == 0);
}
Number multiply(DType t, const Number& a, const Number& b) {
  const double v = a.v * b.v;
  const double error = std::abs(a.v) * b.error + std::abs(b.v) * a.error + a.error * b.error;
  return finish(t, v, error, std::fma(a.v, b.v, -v) == 0);
}
// Numbers here have no signed zeros, since max(-0, 0) leaves open which it is: nor has an infinity at a pole a sign.
template <class F>
bool depends_on_sign_of_zero(const F& f, const Number& a) {
  return a.v == 0 && f(0.0) != f(-0.0) && !(std::isnan(f(0.0)) && std::isnan(f(-0.0)));
}

Number divide(DType t, const Number& a, const Number& b) {
  if (depends_on_sign_of_zero([&](double y) { return a.v / y; }, b)) return Number::unknown();
  if (std::abs(b.v) <= b.error) return b.error == 0 ? special(meaning::Div::f<double>, a, b) : Number::unknown();
  const double v = a.v / b.v;
  const double error = (a.error + std::abs(v) * b.error) / (std::abs(b.v) - b.error);
  return finish(t, v, error, std::fma(v, b.v, -a.v) == 0);
}

// A step function is where it was, or anywhere that the error reaches.
Number step(double v, double lo, double hi) {
  if (std::isnan(v) || std::isnan(lo) || std::isnan(hi)) return Number::unknown();
  return Number::real(v, std::max(v - lo, hi - v));
}

// Of a function that has no extremum inside a's error but, perhaps, at `turn`.
Number smooth(Fn fn, DType t, const Number& a, double turn = kInf) {
  const auto f = [&](double x) { return meaning::unary_fn(fn, x); };
  if (depends_on_sign_of_zero(f, a)) return Number::unknown();
  const double v = f(a.v);
  double error = a.exact() ? 0 : std::max(std::abs(f(a.v - a.error) - v), std::abs(f(a.v + a.error) - v));
  if (std::abs(a.v - turn) < a.error) error = std::max(error, std::abs(f(turn) - v));
  if (std::isnan(f(a.v - a.error)) || std::isnan(f(a.v + a.error))) error = std::isnan(v) && a.exact() ? 0 : kInf;
  if (std::isinf(error)) return Number::unknown();
  const bool root = fn == Fn::sqrt || fn == Fn::rsqrt;
  const bool exact = fn == Fn::sqrt    ? v * v == a.v
                     : fn == Fn::rsqrt ? v * v * a.v == 1 && holds(t, std::sqrt(a.v))
                                       : false;
  return finish(t, v, error, exact, fn == Fn::sqrt ? 1 : root ? 2 : kFunction);
}

Number float_unary(Fn fn, DType t, const Number& a) {
  const auto f = [&](double x) { return meaning::unary_fn(fn, x); };
  if (!std::isfinite(a.v)) return special([&](double x, double) { return f(x); }, a, Number::real(0));
  switch (fn) {
    case Fn::abs:
      return Number::real(std::abs(a.v), a.error);
    case Fn::sign:
    case Fn::floor:
    case Fn::ceil:
    case Fn::round:
    case Fn::trunc:
      return step(f(a.v), f(a.v - a.error), f(a.v + a.error));
    case Fn::sin:
    case Fn::cos:  // the slope is at most 1
      return finish(t, f(a.v), a.error, false, kFunction);
    case Fn::tan:
      if (std::floor((a.v - a.error) / M_PI + 0.5) != std::floor((a.v + a.error) / M_PI + 0.5))
        return Number::unknown();
      return smooth(fn, t, a);
    case Fn::cosh:
      return smooth(fn, t, a, 0);
    default:
      return smooth(fn, t, a);
  }
}

Number power(DType t, const Number& a, const Number& b) {
  if (depends_on_sign_of_zero([&](double x) { return std::pow(x, b.v); }, a)) return Number::unknown();
  const auto f = meaning::Pow::f<double>;
  const double v = f(a.v, b.v);
  if (!std::isfinite(v) || has_special(a, b)) return special(f, a, b);
  const bool crosses = std::abs(a.v) <= a.error && a.error > 0;
  const bool whole = b.exact() && b.v == std::round(b.v);
  if ((crosses && !(whole && b.v >= 0)) || (a.v < 0 && !whole)) return Number::unknown();
  double error = crosses ? std::abs(v - f(0, b.v)) : 0;
  for (const double x : {a.v - a.error, a.v + a.error})
    for (const double y : {b.v - b.error, b.v + b.error}) error = std::max(error, std::abs(f(x, y) - v));
  return finish(t, v, error, false, kFunction);
}

// a - b * n where n, the quotient made whole, is certain.
template <class Whole>
Number remainder(DType t, double v, const Number& a, const Number& b, const Whole& whole) {
  const double n = whole(a.v / b.v);
  if (a.exact() && b.exact()) return finish(t, v, 0, true);
  const Number q = divide(t, a, b);
  if (!q.known || whole(q.v - q.error) != n || whole(q.v + q.error) != n) return Number::unknown();
  return finish(t, v, a.error + std::abs(n) * b.error, true);
}

Number compare(BinaryOp op, const Number& a, const Number& b) {
  const auto truth = [&](double x, double y) {
    switch (op) {
      case BinaryOp::eq:
        return x == y;
      case BinaryOp::ne:
        return x != y;
      case BinaryOp::lt:
        return x < y;
      case BinaryOp::le:
        return x <= y;
      case BinaryOp::gt:
        return x > y;
      default:
        return x >= y;
    }
  };
  const bool apart = std::abs(a.v - b.v) > a.error + b.error;
  if (!(a.exact() && b.exact()) && !apart) return Number::unknown();
  return Number::integer(truth(a.v, b.v));
}

Number float_binary(BinaryOp op, DType t, const Number& a, const Number& b) {
  if (op >= BinaryOp::eq && op <= BinaryOp::ge) return compare(op, a, b);
  const auto plain = [&](double x, double y) {
    bool undefined = false;
    switch (op) {
      case BinaryOp::add:
        return x + y;
      case BinaryOp::sub:
        return x - y;
      case BinaryOp::mul:
        return x * y;
      case BinaryOp::div:
        return x / y;
      case BinaryOp::mod:
        return meaning::FloorMod::f(x, y, undefined);
      default:
        return meaning::FloorDiv::f(x, y, undefined);
    }
  };
  const bool divides = op == BinaryOp::floor_div || op == BinaryOp::mod;
  if (divides && std::abs(b.v) <= b.error) return b.exact() ? Number::undef() : Number::unknown();
  if (has_special(a, b)) return special(plain, a, b);
  switch (op) {
    case BinaryOp::add:
      return add(t, a, b);
    case BinaryOp::sub:
      return add(t, a, Number::real(-b.v, b.error));
    case BinaryOp::mul:
      return multiply(t, a, b);
    case BinaryOp::div:
      return divide(t, a, b);
    case BinaryOp::mod:
      return remainder(t, plain(a.v, b.v), a, b, [](double q) { return std::floor(q); });
    default: {
      const Number q = divide(t, a, b);
      return q.known ? step(std::floor(q.v), std::floor(q.v - q.error), std::floor(q.v + q.error)) : q;
    }
  }
}

template <class T>
Number integer_binary(BinaryOp op, T x, T y) {
  using namespace meaning;  // NOLINT(google-build-using-namespace)
  bool undefined = false;
  const auto done = [&](T v) { return undefined ? Number::undef() : Number::integer(static_cast<int64_t>(v)); };
  switch (op) {
    case BinaryOp::add:
      return done(Add::f(x, y));
    case BinaryOp::sub:
      return done(Sub::f(x, y));
    case BinaryOp::mul:
      return done(Mul::f(x, y));
    case BinaryOp::floor_div:
      return done(FloorDiv::f(x, y, undefined));
    case BinaryOp::mod:
      return done(FloorMod::f(x, y, undefined));
    case BinaryOp::shl:
      return done(ShiftLeft::f(x, y, undefined));
    case BinaryOp::shr:
      return done(ShiftRight::f(x, y, undefined));
    case BinaryOp::bit_and:
      return done(x & y);
    case BinaryOp::bit_or:
      return done(x | y);
    case BinaryOp::bit_xor:
      return done(x ^ y);
    case BinaryOp::eq:
      return done(x == y);
    case BinaryOp::ne:
      return done(x != y);
    case BinaryOp::lt:
      return done(x < y);
    case BinaryOp::le:
      return done(x <= y);
    case BinaryOp::gt:
      return done(x > y);
    default:
      return done(x >= y);
  }
}

template <class T>
Number integer_call(Fn fn, T x, T y) {
  using namespace meaning;  // NOLINT(google-build-using-namespace)
  bool undefined = false;
  const auto done = [&](T v) { return undefined ? Number::undef() : Number::integer(static_cast<int64_t>(v)); };
  switch (fn) {
    case Fn::min:
      return done(Min::f(x, y));
    case Fn::max:
      return done(Max::f(x, y));
    case Fn::pow:
      return done(Pow::f(x, y));
    case Fn::fmod:
      return done(TruncMod::f(x, y, undefined));
    case Fn::tdiv:
      return done(TruncDiv::f(x, y, undefined));
    case Fn::is_nan:
    case Fn::is_inf:
      return Number::integer(0);
    default:
      return done(unary_fn(fn, x));
  }
}

}  // namespace

Number rounded(DType t, const Number& x) {
  if (!x.is_usable()) return x;
  if (!std::isfinite(x.v) || x.v == 0) {
    // What the type has not is something else in it, but not where f64 stands for it.
    const float f = static_cast<float>(x.v), kept = t.is_narrow_float() ? rounded_to(t, f) : f;
    const bool same = std::isnan(f) ? std::isnan(kept) : f == kept && std::signbit(f) == std::signbit(kept);
    if (!same) return Number::unknown();
  }
  return std::isfinite(x.v) ? finish(t, x.v, x.error, true) : x;
}

Number cast(DType from, DType to, bool saturate, const Number& x) {
  if (!x.is_usable()) return x;
  if (from.is_float() && to.is_float()) return rounded(to, x);
  if (to.is_float()) {
    const double v = from == kU64 ? static_cast<double>(static_cast<uint64_t>(x.i)) : static_cast<double>(x.i);
    const bool fits = from == kU64 ? v < 0x1p64 && static_cast<uint64_t>(v) == static_cast<uint64_t>(x.i)
                                   : v < 0x1p63 && static_cast<int64_t>(v) == x.i;
    return finish(to, v, 0, fits);
  }
  if (to.is_bool()) {
    if (!from.is_float()) return Number::integer(x.i != 0);
    return !x.exact() && std::abs(x.v) <= x.error ? Number::unknown() : Number::integer(x.v != 0);
  }
  const auto of = [&](auto v) { return meaning::cast_to<int64_t>(to, saturate, v); };
  if (!from.is_float()) return Number::integer(from == kU64 ? of(static_cast<uint64_t>(x.i)) : of(x.i));
  // Outside of 64 bits f32 and f64 stop at different numbers.
  const int64_t lo = of(x.v - x.error), hi = of(x.v + x.error);
  return lo == hi && lo == of(x.v) && (std::abs(x.v) < 0x1p62 || std::isnan(x.v)) ? Number::integer(lo)
                                                                                  : Number::unknown();
}

Number unary(UnaryOp op, DType t, const Number& a) {
  if (op == UnaryOp::logical_not) return Number::integer(a.i == 0);
  if (t.is_float()) return Number::real(-a.v, a.error);
  return Number::integer(op == UnaryOp::neg ? meaning::Sub::f(int64_t{0}, a.i) : ~a.i);
}

Number binary(BinaryOp op, DType t, const Number& a, const Number& b) {
  if (t.is_float()) return float_binary(op, t, a, b);
  return t == kU64 ? integer_binary(op, static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i))
                   : integer_binary(op, a.i, b.i);
}

Number call(Fn fn, DType t, const Number& a, const Number* b) {
  const Number& c = b ? *b : a;
  if (!t.is_float())
    return t == kU64 ? integer_call(fn, static_cast<uint64_t>(a.i), static_cast<uint64_t>(c.i))
                     : integer_call(fn, a.i, c.i);
  switch (fn) {
    case Fn::is_nan:
      return Number::integer(std::isnan(a.v));
    case Fn::is_inf:
      return Number::integer(std::isinf(a.v));
    case Fn::min:
    case Fn::max: {  // as far off as the farther of those that it may be
      if (std::isnan(a.v) || std::isnan(c.v)) return Number::real(std::nan(""));
      const Number& winner = (fn == Fn::min) == (a.v < c.v) ? a : c;
      const bool apart = std::abs(a.v - c.v) > a.error + c.error;
      return apart ? winner : Number::real(winner.v, std::max(a.error, c.error));
    }
    case Fn::pow:
      return power(t, a, c);
    case Fn::fmod: {
      bool undefined = false;
      const double v = meaning::TruncMod::f(a.v, c.v, undefined);
      if (has_special(a, c) || c.v == 0)
        return special([&](double x, double y) { return meaning::TruncMod::f(x, y, undefined); }, a, c);
      return remainder(t, v, a, c, [](double q) { return std::trunc(q); });
    }
    default:
      return float_unary(fn, t, a);
  }
}

// ---- reductions --------------------------------------------------------------------------------------------------

void Fold::add(const Number& x, DType t, int64_t position) {
  if (x.undefined) undefined_ = true;
  if (undefined_) return;
  ++count_;
  if (op_ == ReduceOp::any || op_ == ReduceOp::all) {
    const bool decides = x.known && (x.i != 0) == (op_ == ReduceOp::any);
    sure_ = sure_ || decides;
    known_ = known_ && x.known;
    return;
  }
  known_ = known_ && x.known;
  if (known_) t.is_float() ? add_float(x, position) : add_integer(x, t, position);
}

void Fold::add_float(const Number& x, int64_t position) {
  all_exact_ = all_exact_ && x.exact();
  special_ = special_ || !std::isfinite(x.v);
  const bool first = count_ == 1;
  switch (op_) {
    case ReduceOp::sum: {
      value_ += x.v;
      error_ += x.error;
      magnitude_ += std::abs(x.v) + x.error;
      int exponent = 0;
      // The place of the last bit that is set.
      if (x.v != 0 && std::isfinite(x.v)) {
        auto bits = static_cast<int64_t>(std::ldexp(std::abs(std::frexp(x.v, &exponent)), 53));
        quantum_ = std::min(quantum_, std::ldexp(static_cast<double>(bits & -bits), exponent - 53));
      }
      break;
    }
    case ReduceOp::prod:
      value_ = first ? x.v : value_ * x.v;
      magnitude_ = (first ? 1 : magnitude_) * (std::abs(x.v) + x.error);
      partial_ *= std::max(1.0, std::abs(x.v) + x.error);
      break;
    case ReduceOp::max:
    case ReduceOp::min: {
      const Number so_far = Number::real(value_, error_);
      const Number now = first ? x : call(op_ == ReduceOp::max ? Fn::max : Fn::min, kF64, so_far, &x);
      value_ = now.v;
      error_ = now.error;
      break;
    }
    default: {  // argmax, and argmin as the argmax of the negative
      const double y = op_ == ReduceOp::argmax ? x.v : -x.v;
      if (first || y > value_) {
        if (!first) runner_up_ = std::max(runner_up_, value_ + error_);
        value_ = y;
        error_ = x.error;
        position_ = position;
      } else {
        runner_up_ = std::max(runner_up_, y + x.error);
      }
      break;
    }
  }
}

void Fold::add_integer(const Number& x, DType t, int64_t position) {
  const auto fold = [&](auto v) {
    using T = decltype(v);
    const interp::Reducer<T> reducer{op_, to_};
    if (count_ == 1) integer_ = static_cast<int64_t>(reducer.identity());
    const auto acc = static_cast<T>(integer_);
    if (!reducer.is_arg()) {
      integer_ = static_cast<int64_t>(reducer.combine(acc, v));
    } else if (count_ == 1 || reducer.better(v, acc)) {
      integer_ = static_cast<int64_t>(v);
      position_ = position;
    }
  };
  t == kU64 ? fold(static_cast<uint64_t>(x.i)) : fold(x.i);
}

Number Fold::result() const {
  const bool arg = op_ == ReduceOp::argmax || op_ == ReduceOp::argmin;
  if (undefined_ || (arg && count_ == 0)) return Number::undef();
  if (op_ == ReduceOp::any || op_ == ReduceOp::all) {
    if (!sure_ && !known_) return Number::unknown();
    return Number::integer(sure_ == (op_ == ReduceOp::any));
  }
  if (!known_) return Number::unknown();
  if (arg) {
    const bool certain = all_exact_ || value_ - error_ > runner_up_;
    return certain && !special_ ? Number::integer(position_) : Number::unknown();
  }
  if (!to_.is_float()) {
    if (count_ > 0) return Number::integer(integer_);
    return Number::integer(to_ == kU64 ? static_cast<int64_t>(interp::Reducer<uint64_t>{op_, to_}.identity())
                                       : interp::Reducer<int64_t>{op_, to_}.identity());
  }
  if (count_ == 0) return Number::real(interp::Reducer<double>{op_, to_}.identity());
  if (op_ == ReduceOp::max || op_ == ReduceOp::min) return rounded(to_, Number::real(value_, error_));
  if (special_) return all_exact_ ? Number::real(value_) : Number::unknown();
  // Each of n steps rounds a partial result, which is no larger than that of the magnitudes.
  const double n = static_cast<double>(count_);
  const double steps = n * unit(to_) / (1 - std::min(0.5, n * unit(to_)));
  if (op_ == ReduceOp::sum) {
    const double range = std::ldexp(1, digits(to_));
    if (all_exact_ && (magnitude_ == 0 || magnitude_ / quantum_ <= range)) return Number::real(value_);
    const double error = error_ + steps * magnitude_;
    return std::abs(value_) + error > highest(to_) ? Number::unknown() : Number::real(value_, error);
  }
  if (!(partial_ <= highest(to_))) return Number::unknown();  // infinity on the way: times a zero it is NaN
  if (all_exact_ && value_ == 0) return Number::real(0);
  const double error = magnitude_ - std::abs(value_) + steps * magnitude_ + n * smallest(to_);
  return magnitude_ + error > highest(to_) ? Number::unknown() : Number::real(value_, error);
}

}  // namespace dlc::fuzz
