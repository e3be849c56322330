// What every operator does to one value, written once: literals are folded with these functors, the interpreter's tree
// walk applies them to scalars, its strips to vectors.
//
// Integers wrap in two's complement. A functor with `bool& undefined` sets it where the result is undefined (division
// by zero, shift counts outside 0..63).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dlc/base/checked.h"
#include "dlc/base/dtype.h"
#include "dlc/kernel/kernel.h"

namespace dlc::meaning {

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T>;

// ---- conversions -------------------------------------------------------------------------------------------------

// Float to integer: truncated toward zero, saturated at the limits of 64 bits, NaN is 0 (as Tensor::cast).
template <class To, class From>
inline To convert(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<To, uint8_t>) {
    return v != From{0};
  } else if constexpr (is_real<From> && !is_real<To>) {
    using Wide = std::conditional_t<std::is_same_v<To, uint64_t>, uint64_t, int64_t>;
    constexpr From lo = static_cast<From>(std::numeric_limits<Wide>::min());
    constexpr From hi = std::is_same_v<Wide, uint64_t> ? From(0x1p64) : From(0x1p63);
    if (!(v >= lo)) return v != v ? To{0} : static_cast<To>(std::numeric_limits<Wide>::min());
    if (v >= hi) return static_cast<To>(std::numeric_limits<Wide>::max());
    return static_cast<To>(static_cast<Wide>(v));
  } else {
    return static_cast<To>(v);
  }
}

// Wraps an integer to `bits` bits, sign-extended or not.
inline int64_t wrap_bits(int64_t v, int bits, bool is_signed) {
  const auto u = static_cast<uint64_t>(v) << (64 - bits);
  return is_signed ? static_cast<int64_t>(u) >> (64 - bits) : static_cast<int64_t>(u >> (64 - bits));
}

// v clamped to the range of the integer type `to`, then held in 64 bits.
template <class From>
inline int64_t saturate_to(DType to, From v) {
  const int64_t lo = to.min_value(), hi = to.max_value();
  if constexpr (is_real<From>) {
    if (to == kU64) return static_cast<int64_t>(convert<uint64_t>(v));
    const int64_t i = convert<int64_t>(v);
    return i < lo ? lo : i > hi ? hi : i;
  } else if constexpr (std::is_same_v<From, uint64_t>) {
    return to == kU64 ? static_cast<int64_t>(v) : v > static_cast<uint64_t>(hi) ? hi : static_cast<int64_t>(v);
  } else {
    const auto i = static_cast<int64_t>(v);
    return i < lo ? lo : i > hi ? hi : i;
  }
}

// v converted to the element type `to` and widened again to compute type To.
template <class To, class From>
inline To cast_to(DType to, bool saturate, From v) {
  if (to.is_int()) {
    if (saturate) return convert<To>(saturate_to(to, v));
    if constexpr (is_real<From>) {
      const int64_t i = to == kU64 ? static_cast<int64_t>(convert<uint64_t>(v)) : convert<int64_t>(v);
      return convert<To>(wrap_bits(i, to.bits, to.is_signed()));
    } else {
      return convert<To>(wrap_bits(static_cast<int64_t>(v), to.bits, to.is_signed()));
    }
  }
  if constexpr (std::is_same_v<To, float>) {
    if (to.is_narrow_float()) return rounded_to(to, convert<float>(v));
  }
  return convert<To>(v);
}

// ---- binary operators --------------------------------------------------------------------------------------------

template <class T>
using Unsigned = std::make_unsigned_t<T>;

struct Add {
  template <class T>
  static T f(T a, T b) {
    if constexpr (is_real<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct Sub {
  template <class T>
  static T f(T a, T b) {
    if constexpr (is_real<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct Mul {
  template <class T>
  static T f(T a, T b) {
    if constexpr (is_real<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  }
};
struct Div {
  template <class T>
  static T f(T a, T b) {
    return a / b;
  }
};
struct BitAnd {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Min {  // NaN if either is
  template <class T>
  static T f(T a, T b) {
    if constexpr (is_real<T>)
      return (a < b || a != a) ? a : b;
    else
      return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T f(T a, T b) {
    if constexpr (is_real<T>)
      return (a > b || a != a) ? a : b;
    else
      return a > b ? a : b;
  }
};
struct Pow {
  template <class T>
  static T f(T a, T b) {
    if constexpr (is_real<T>) {
      return std::pow(a, b);
    } else {  // wraps; a negative exponent truncates 1/a^|b| toward zero (and 0 to a negative power is 0)
      if (std::is_signed_v<T> && b < T{0}) {
        const bool odd = (b & T{1}) != T{0};
        return a == T{1} ? T{1} : a == static_cast<T>(-1) ? static_cast<T>(odd ? -1 : 1) : T{0};
      }
      Unsigned<T> r = 1, x = static_cast<Unsigned<T>>(a);
      for (auto n = static_cast<Unsigned<T>>(b); n != 0; n >>= 1, x *= x)
        if (n & 1) r *= x;
      return static_cast<T>(r);
    }
  }
};

struct FloorDiv {
  template <class T>
  static T f(T a, T b, bool& undefined) {
    if (b == T{0}) {
      undefined = true;
      return T{0};
    }
    if constexpr (is_real<T>)
      return std::floor(a / b);
    else if constexpr (std::is_same_v<T, uint64_t>)
      return a / b;
    else
      return static_cast<T>(dlc::floor_div(int64_t{a}, int64_t{b}));
  }
};
struct FloorMod {
  template <class T>
  static T f(T a, T b, bool& undefined) {
    if (b == T{0}) {
      undefined = true;
      return T{0};
    }
    if constexpr (is_real<T>) {
      const T r = std::fmod(a, b);
      return r != T{0} && ((r < T{0}) != (b < T{0})) ? r + b : r;
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return a % b;
    } else {
      return static_cast<T>(dlc::floor_mod(int64_t{a}, int64_t{b}));
    }
  }
};
struct TruncDiv {
  template <class T>
  static T f(T a, T b, bool& undefined) {
    if (b == T{0}) {
      undefined = true;
      return T{0};
    }
    if constexpr (is_real<T>)
      return std::trunc(a / b);
    else if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return Sub::f(T{0}, a);
    else
      return a / b;
  }
};
struct TruncMod {
  template <class T>
  static T f(T a, T b, bool& undefined) {
    if constexpr (is_real<T>) {
      return std::fmod(a, b);
    } else {
      if (b == T{0}) {
        undefined = true;
        return T{0};
      }
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
      return a % b;
    }
  }
};
struct ShiftLeft {
  template <class T>
  static T f(T a, T b, bool& undefined) {
    if (b < T{0} || b > T{63}) {
      undefined = true;
      return T{0};
    }
    return static_cast<T>(static_cast<uint64_t>(a) << b);
  }
};
struct ShiftRight {
  template <class T>
  static T f(T a, T b, bool& undefined) {
    if (b < T{0} || b > T{63}) {
      undefined = true;
      return T{0};
    }
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>(static_cast<Wide>(a) >> b);
  }
};

// Comparisons give b.
struct Eq {
  template <class T>
  static bool f(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static bool f(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static bool f(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static bool f(T a, T b) {
    return a <= b;
  }
};

// ---- unary functions ---------------------------------------------------------------------------------------------

template <class T>
inline T unary_fn(Fn fn, T x) {
  if constexpr (is_real<T>) {
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
        return T{1} / std::sqrt(x);
      case Fn::abs:
        return std::fabs(x);
      case Fn::sign:
        return x != x ? x : static_cast<T>((x > T{0}) - (x < T{0}));
      case Fn::floor:
        return std::floor(x);
      case Fn::ceil:
        return std::ceil(x);
      case Fn::round:
        return std::nearbyint(x);  // half to even in the default rounding mode
      case Fn::trunc:
        return std::trunc(x);
      default:
        return x;
    }
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (fn == Fn::abs) return x < T{0} ? Sub::f(T{0}, x) : x;
    }
    if (fn == Fn::sign) return static_cast<T>((x > T{0}) - (std::is_signed_v<T> && x < T{0}));
    return x;  // floor, ceil, round and trunc of an integer
  }
}

template <class T>
inline bool is_nan(T x) {
  return x != x;
}
template <class T>
inline bool is_inf(T x) {
  if constexpr (is_real<T>)
    return std::isinf(x);
  else
    return false;
}

}  // namespace dlc::meaning
