#include "dlc/base/dtype.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace dlc {

int64_t DType::min_value() const {
  if (kind != Kind::signed_int) return 0;
  return bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
}

int64_t DType::max_value() const {
  if (kind == Kind::boolean) return 1;
  const int value_bits = kind == Kind::signed_int ? bits - 1 : bits;
  return value_bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << value_bits) - 1;
}

std::string to_string(DType t) {
  switch (t.kind) {
    case DType::Kind::boolean:
      return "bool";
    case DType::Kind::signed_int:
      return "s" + std::to_string(t.bits);
    case DType::Kind::unsigned_int:
      return "u" + std::to_string(t.bits);
    case DType::Kind::floating:
      return "f" + std::to_string(t.bits);
    case DType::Kind::brain_float:
      return "bf" + std::to_string(t.bits);
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view text) {
  if (text == "bool") return kBool;
  if (text == "bf16") return kBF16;
  if (text.size() < 2) return std::nullopt;
  int bits = 0;
  const auto [end, ec] = std::from_chars(text.data() + 1, text.data() + text.size(), bits);
  if (ec != std::errc() || end != text.data() + text.size() || text[1] == '0') return std::nullopt;
  if (text[0] == 'f' && (bits == 16 || bits == 32 || bits == 64))
    return DType{DType::Kind::floating, static_cast<uint8_t>(bits)};
  if (bits < 1 || bits > 64) return std::nullopt;
  if (text[0] == 's') return DType{DType::Kind::signed_int, static_cast<uint8_t>(bits)};
  if (text[0] == 'u') return DType{DType::Kind::unsigned_int, static_cast<uint8_t>(bits)};
  return std::nullopt;
}

uint16_t f32_to_f16(float x) {
  const auto b = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (b >> 16) & 0x8000u;
  const uint32_t magnitude = b & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));  // NaN stays NaN
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);     // >= 65536 or infinite
  if (magnitude <
      0x38800000u) {  // below 2^-14: a subnormal of f16. Scaling by 2^24 makes it an integer, rounded to even
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyintf(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));  // a carry into the exponent gives infinity
}

float f16_to_f32(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0) {
    const float m = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -m : m;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

uint16_t f32_to_bf16(float x) {
  const auto b = std::bit_cast<uint32_t>(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((b >> 16) | 0x40u);  // quiet the NaN
  return static_cast<uint16_t>((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}

float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

int64_t wrap_to(DType t, int64_t v) {
  if (t.is_bool()) return v != 0;
  if (t.bits >= 64) return v;
  const auto u = static_cast<uint64_t>(v) << (64 - t.bits);
  return t.is_signed() ? static_cast<int64_t>(u) >> (64 - t.bits) : static_cast<int64_t>(u >> (64 - t.bits));
}

}  // namespace dlc
