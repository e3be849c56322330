// Meaning of every operator on one value, written once: the tree walk applies these functors to scalars, the strip
// primitives apply the same functors to vectors.
//
// Integers wrap in two's complement. A functor with `bool& undefined` sets it where the result is undefined (division
// by zero, shift counts outside 0..63).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "dlc/base/checked.h"
#include "dlc/base/dtype.h"
#include "dlc/kernel/kernel.h"

namespace dlc::interp {

// The types values are computed in. s32 stands for an s64 whose range provably fits; only strips use it.
enum class Ty : uint8_t { b, s32, s64, u64, f32, f64 };

template <class T>
struct Tag {
  using type = T;
};

// Calls f with the C++ type of t.
template <class F>
decltype(auto) with_type(Ty t, F&& f) {
  switch (t) {
    case Ty::b:
      return f(Tag<uint8_t>{});
    case Ty::s32:
      return f(Tag<int32_t>{});
    case Ty::s64:
      return f(Tag<int64_t>{});
    case Ty::u64:
      return f(Tag<uint64_t>{});
    case Ty::f32:
      return f(Tag<float>{});
    case Ty::f64:
      break;
  }
  return f(Tag<double>{});
}

inline bool is_float(Ty t) { return t == Ty::f32 || t == Ty::f64; }
inline int size_of(Ty t) { return t == Ty::b ? 1 : t == Ty::s32 || t == Ty::f32 ? 4 : 8; }

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

inline float round_to_16(DType to, float v) {
  return to == kBF16 ? bf16_to_f32(f32_to_bf16(v)) : f16_to_f32(f32_to_f16(v));
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
    if (to.bits == 16) return round_to_16(to, convert<float>(v));
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

// ---- reductions --------------------------------------------------------------------------------------------------

// How a reduction starts and goes on, for bodies of type T kept in element type `to`: the accumulator is wrapped or
// rounded to it at every step. any and all fold bool; argmax and argmin compare with better(), the first position wins.
template <class T>
struct Reducer {
  ReduceOp op;
  DType to;

  bool is_arg() const { return op == ReduceOp::argmax || op == ReduceOp::argmin; }

  T identity() const {
    switch (op) {
      case ReduceOp::prod:
      case ReduceOp::all:
        return T{1};
      case ReduceOp::max:
        if constexpr (is_real<T>) return -std::numeric_limits<T>::infinity();
        return to.is_int() ? static_cast<T>(to.min_value()) : T{0};
      case ReduceOp::min:
        if constexpr (is_real<T>) return std::numeric_limits<T>::infinity();
        if (to == kU64) return static_cast<T>(~uint64_t{0});
        return to.is_int() ? static_cast<T>(to.max_value()) : T{1};
      default:
        return T{0};
    }
  }

  // Integers: sums and products wrap; max and min saturate, so that the default -inf stays the lowest value.
  T narrow(T v) const {
    if constexpr (std::is_same_v<T, uint8_t>)
      return v;
    else
      return cast_to<T>(to, op == ReduceOp::max || op == ReduceOp::min, v);
  }

  T combine(T acc, T v) const {
    switch (op) {
      case ReduceOp::sum:
        return narrow(Add::f(acc, v));
      case ReduceOp::prod:
        return narrow(Mul::f(acc, v));
      case ReduceOp::max:
        return Max::f(acc, narrow(v));
      case ReduceOp::min:
        return Min::f(acc, narrow(v));
      case ReduceOp::any:
        return static_cast<T>(acc != T{0} || v != T{0});
      default:  // all
        return static_cast<T>(acc != T{0} && v != T{0});
    }
  }

  // v beats the best so far; a NaN beats all but an earlier NaN.
  bool better(T v, T best) const {
    if (best != best) return false;
    return v != v || (op == ReduceOp::argmax ? v > best : v < best);
  }
};

// ---- elements in memory ------------------------------------------------------------------------------------------

template <class T>
inline T load_raw(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store_raw(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

// How an element lies in memory. Integers of odd widths lie in the next container and are wrapped when loaded.
enum class Elem : uint8_t { b8, s8, u8, s16, u16, s32, u32, s64, u64, f16, bf16, f32, f64 };

inline Elem elem_of(DType t) {
  if (t.is_bool()) return Elem::b8;
  if (t.kind == DType::Kind::brain_float) return Elem::bf16;
  if (t.is_float()) return t.bits == 16 ? Elem::f16 : t.bits == 64 ? Elem::f64 : Elem::f32;
  const int log2 = std::countr_zero(static_cast<unsigned>(t.bytes()));
  return static_cast<Elem>(static_cast<int>(Elem::s8) + 2 * log2 + (t.is_signed() ? 0 : 1));
}
inline bool is_odd_width(DType t) { return t.is_int() && t.bits != 8 * t.bytes(); }

// Calls f(tag of the container, decode(container) -> value).
template <class F>
decltype(auto) with_elem(Elem e, F&& f) {
  const auto same = [](auto v) { return v; };
  switch (e) {
    case Elem::b8:
      return f(Tag<uint8_t>{}, [](uint8_t v) { return static_cast<uint8_t>(v != 0); });
    case Elem::s8:
      return f(Tag<int8_t>{}, [](int8_t v) { return int32_t{v}; });
    case Elem::u8:
      return f(Tag<uint8_t>{}, [](uint8_t v) { return int32_t{v}; });
    case Elem::s16:
      return f(Tag<int16_t>{}, [](int16_t v) { return int32_t{v}; });
    case Elem::u16:
      return f(Tag<uint16_t>{}, [](uint16_t v) { return int32_t{v}; });
    case Elem::s32:
      return f(Tag<int32_t>{}, same);
    case Elem::u32:
      return f(Tag<uint32_t>{}, [](uint32_t v) { return int64_t{v}; });
    case Elem::s64:
      return f(Tag<int64_t>{}, same);
    case Elem::u64:
      return f(Tag<uint64_t>{}, same);
    case Elem::f16:
      return f(Tag<uint16_t>{}, [](uint16_t v) { return f16_to_f32(v); });
    case Elem::bf16:
      return f(Tag<uint16_t>{}, [](uint16_t v) { return bf16_to_f32(v); });
    case Elem::f32:
      return f(Tag<float>{}, same);
    case Elem::f64:
      break;
  }
  return f(Tag<double>{}, same);
}

// Stores v, converted to the element type t, at p.
template <class From>
inline void store_element(DType t, Elem e, std::byte* p, From v) {
  switch (e) {
    case Elem::b8:
      return store_raw<uint8_t>(p, convert<uint8_t>(v));
    case Elem::f16:
      return store_raw<uint16_t>(p, f32_to_f16(convert<float>(v)));
    case Elem::bf16:
      return store_raw<uint16_t>(p, f32_to_bf16(convert<float>(v)));
    case Elem::f32:
      return store_raw<float>(p, convert<float>(v));
    case Elem::f64:
      return store_raw<double>(p, convert<double>(v));
    default:
      break;
  }
  const int64_t w = cast_to<int64_t>(t, false, v);
  switch (t.bytes()) {
    case 1:
      return store_raw<uint8_t>(p, static_cast<uint8_t>(w));
    case 2:
      return store_raw<uint16_t>(p, static_cast<uint16_t>(w));
    case 4:
      return store_raw<uint32_t>(p, static_cast<uint32_t>(w));
    default:
      return store_raw<int64_t>(p, w);
  }
}

}  // namespace dlc::interp
