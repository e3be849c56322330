// Element types of tensors and of hardware state.
//
// Text: f32 f64 f16 bf16 bool, sN and uN for integers of N bits (1..64). Odd widths are for hardware descriptions
// (u31 multipliers, s9 activations). An element of N bits is stored in the next power-of-two number of bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlc {

struct DType {
  enum class Kind : uint8_t { boolean, signed_int, unsigned_int, floating, brain_float };
  Kind kind = Kind::floating;
  uint8_t bits = 32;

  friend constexpr bool operator==(DType, DType) = default;

  constexpr bool is_int() const { return kind == Kind::signed_int || kind == Kind::unsigned_int; }
  constexpr bool is_signed() const { return kind == Kind::signed_int; }
  constexpr bool is_float() const { return kind == Kind::floating || kind == Kind::brain_float; }
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

std::string to_string(DType t);
std::optional<DType> parse_dtype(std::string_view text);

// The type arithmetic runs in: every value of the op language is one of bool, s64, u64, f32, f64.
// Integers are exact in 64 bits and narrow only at stores, casts and def arguments; f16 and bf16 compute in f32.
constexpr DType compute_type(DType t) {
  if (t.is_bool()) return kBool;
  if (t.is_int()) return t == kU64 ? kU64 : kS64;
  return t.bits == 64 ? kF64 : kF32;
}

// Storage conversions of the 16-bit floats, round to nearest even (IEEE 754, bfloat16 as the upper half of f32).
uint16_t f32_to_f16(float x);
float f16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float x);
float bf16_to_f32(uint16_t h);

// Wraps v to the width of t (two's complement), as a store or a cast does. t is an integer type or bool (v != 0).
int64_t wrap_to(DType t, int64_t v);

}  // namespace dlc
