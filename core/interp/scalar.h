// What the tree walk and the strip primitives share: compute types, reductions and elements in memory. The operators
// are in core/kernel/meaning.h.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/kernel/meaning.h"
#include "dlc/base/float_format.h"
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

using namespace meaning;  // NOLINT(google-build-using-namespace): the interpreter is where these are applied

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
enum class Elem : uint8_t { b8, s8, u8, s16, u16, s32, u32, s64, u64, f8, f16, bf16, f32, f64 };

inline Elem elem_of(DType t) {
  if (t.is_bool()) return Elem::b8;
  if (t == kBF16) return Elem::bf16;
  if (t.is_float()) return t.bits <= 8 ? Elem::f8 : t.bits == 16 ? Elem::f16 : t.bits == 64 ? Elem::f64 : Elem::f32;
  const int log2 = std::countr_zero(static_cast<unsigned>(t.bytes()));
  return static_cast<Elem>(static_cast<int>(Elem::s8) + 2 * log2 + (t.is_signed() ? 0 : 1));
}
inline bool is_coded(Elem e) { return e == Elem::f8 || e == Elem::f16 || e == Elem::bf16; }
inline bool is_odd_width(DType t) { return t.is_int() && t.bits != 8 * t.bytes(); }

// In place, so that the compiler makes vectors of it.
inline float decoded(const FloatFormat& f, uint32_t bits) { return std::bit_cast<float>(words::decode(f, bits)); }
inline uint32_t encoded(const FloatFormat& f, float x) { return words::encode(f, std::bit_cast<uint32_t>(x)); }

// Calls f(tag of the container, decode(container, element type) -> value).
template <class F>
decltype(auto) with_elem(Elem e, F&& f) {
  const auto same = [](auto v, DType) { return v; };
  switch (e) {
    case Elem::b8:
      return f(Tag<uint8_t>{}, [](uint8_t v, DType) { return static_cast<uint8_t>(v != 0); });
    case Elem::s8:
      return f(Tag<int8_t>{}, [](int8_t v, DType) { return int32_t{v}; });
    case Elem::u8:
      return f(Tag<uint8_t>{}, [](uint8_t v, DType) { return int32_t{v}; });
    case Elem::s16:
      return f(Tag<int16_t>{}, [](int16_t v, DType) { return int32_t{v}; });
    case Elem::u16:
      return f(Tag<uint16_t>{}, [](uint16_t v, DType) { return int32_t{v}; });
    case Elem::s32:
      return f(Tag<int32_t>{}, same);
    case Elem::u32:
      return f(Tag<uint32_t>{}, [](uint32_t v, DType) { return int64_t{v}; });
    case Elem::s64:
      return f(Tag<int64_t>{}, same);
    case Elem::u64:
      return f(Tag<uint64_t>{}, same);
    case Elem::f8:  // of any format
      return f(Tag<uint8_t>{}, [](uint8_t v, DType t) { return from_bits(t, v); });
    case Elem::f16:
      return f(Tag<uint16_t>{}, [](uint16_t v, DType) { return decoded(kFormatF16, v); });
    case Elem::bf16:
      return f(Tag<uint16_t>{}, [](uint16_t v, DType) { return decoded(kFormatBF16, v); });
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
    case Elem::f8:
      return store_raw<uint8_t>(p, static_cast<uint8_t>(to_bits(t, convert<float>(v))));
    case Elem::f16:
      return store_raw<uint16_t>(p, static_cast<uint16_t>(encoded(kFormatF16, convert<float>(v))));
    case Elem::bf16:
      return store_raw<uint16_t>(p, static_cast<uint16_t>(encoded(kFormatBF16, convert<float>(v))));
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
