// Element types of tensors and of hardware state.
//
// Text: f32 f64 f16 bf16 bool, sN and uN for integers of N bits (1..64), and the floats of 8 and 4 bits under the names
// of their formats: f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 f4e2m1. Odd widths of integers are for models of few
// bits (s4, u2) and for hardware descriptions (u31 multipliers, s9 activations). An element of N bits is stored in the
// next power-of-two number of bytes: of less than a byte, each has a byte of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlc {

struct DType {
  enum class Kind : uint8_t {
    boolean,
    signed_int,
    unsigned_int,
    floating,  // from here on floats
    brain_float,
    e4m3fn,
    e4m3fnuz,
    e5m2,
    e5m2fnuz,
    e8m0,
    e2m1
  };
  Kind kind = Kind::floating;
  uint8_t bits = 32;

  friend constexpr bool operator==(DType, DType) = default;

  constexpr bool is_int() const { return kind == Kind::signed_int || kind == Kind::unsigned_int; }
  constexpr bool is_signed() const { return kind == Kind::signed_int; }
  constexpr bool is_float() const { return kind >= Kind::floating; }
  constexpr bool is_narrow_float() const { return is_float() && bits < 32; }  // kept narrow, computed with as f32
  constexpr bool is_bool() const { return kind == Kind::boolean; }
  constexpr int bytes() const { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; }

  // Range of an integer or bool type. u64's maximum does not fit: max_value() saturates at INT64_MAX.
  int64_t min_value() const;
  int64_t max_value() const;
};

inline constexpr DType kBool{DType::Kind::boolean, 8};
inline constexpr DType kS8{DType::Kind::signed_int, 8}, kU8{DType::Kind::unsigned_int, 8};
inline constexpr DType kS16{DType::Kind::signed_int, 16}, kU16{DType::Kind::unsigned_int, 16};
inline constexpr DType kS32{DType::Kind::signed_int, 32}, kU32{DType::Kind::unsigned_int, 32};
inline constexpr DType kS64{DType::Kind::signed_int, 64}, kU64{DType::Kind::unsigned_int, 64};
inline constexpr DType kF16{DType::Kind::floating, 16}, kF32{DType::Kind::floating, 32};
inline constexpr DType kF64{DType::Kind::floating, 64}, kBF16{DType::Kind::brain_float, 16};
inline constexpr DType kF8E4M3FN{DType::Kind::e4m3fn, 8}, kF8E4M3FNUZ{DType::Kind::e4m3fnuz, 8};
inline constexpr DType kF8E5M2{DType::Kind::e5m2, 8}, kF8E5M2FNUZ{DType::Kind::e5m2fnuz, 8};
inline constexpr DType kF8E8M0{DType::Kind::e8m0, 8}, kF4E2M1{DType::Kind::e2m1, 4};

std::string to_string(DType t);
std::optional<DType> parse_dtype(std::string_view text);

// The type arithmetic runs in: every value of the op language is one of bool, s64, u64, f32, f64.
// Integers are exact in 64 bits and narrow only at stores, casts and def arguments; narrow floats compute in f32.
constexpr DType compute_type(DType t) {
  if (t.is_bool()) return kBool;
  if (t.is_int()) return t == kU64 ? kU64 : kS64;
  return t.bits == 64 ? kF64 : kF32;
}

// The bits a narrow float is stored as, and back. Rounds to nearest even; what is too large becomes infinity, NaN where
// the type has none, and its largest number where it has neither (dlc/base/float_format.h).
uint32_t to_bits(DType t, float x);
float from_bits(DType t, uint32_t bits);
inline float rounded_to(DType t, float x) { return from_bits(t, to_bits(t, x)); }

// Wraps v to the width of t (two's complement), as a store or a cast does. t is an integer type or bool (v != 0).
int64_t wrap_to(DType t, int64_t v);

}  // namespace dlc
