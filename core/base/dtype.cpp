#include "dlc/base/dtype.h"

#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <utility>

#include "dlc/base/float_format.h"

namespace dlc {

namespace {

constexpr std::pair<std::string_view, DType> kSmallFloats[] = {
    {"f8e4m3fn", kF8E4M3FN},     {"f8e4m3fnuz", kF8E4M3FNUZ}, {"f8e5m2", kF8E5M2},
    {"f8e5m2fnuz", kF8E5M2FNUZ}, {"f8e8m0", kF8E8M0},         {"f4e2m1", kF4E2M1},
};

// All values of a type of at most 8 bits, by their bits.
using Values = std::array<float, 256>;
constexpr Values values_of(DType t) {
  Values v{};
  for (uint32_t bits = 0; bits < v.size(); ++bits) v[bits] = std::bit_cast<float>(words::decode(float_format(t), bits));
  return v;
}
constexpr Values kValues[] = {values_of(kF8E4M3FN),   values_of(kF8E4M3FNUZ), values_of(kF8E5M2),
                              values_of(kF8E5M2FNUZ), values_of(kF8E8M0),     values_of(kF4E2M1)};

}  // namespace

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
    default:
      break;
  }
  for (const auto& [name, type] : kSmallFloats)
    if (type == t) return std::string(name);
  return "?";
}

std::optional<DType> parse_dtype(std::string_view text) {
  if (text == "bool") return kBool;
  if (text == "bf16") return kBF16;
  for (const auto& [name, type] : kSmallFloats)
    if (name == text) return type;
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

uint32_t to_bits(DType t, float x) { return words::encode(float_format(t), std::bit_cast<uint32_t>(x)); }

float from_bits(DType t, uint32_t bits) {
  if (t.bits <= 8) return kValues[static_cast<int>(t.kind) - static_cast<int>(DType::Kind::e4m3fn)][bits & 0xff];
  return std::bit_cast<float>(words::decode(float_format(t), bits));
}

int64_t wrap_to(DType t, int64_t v) {
  if (t.is_bool()) return v != 0;
  if (t.bits >= 64) return v;
  const auto u = static_cast<uint64_t>(v) << (64 - t.bits);
  return t.is_signed() ? static_cast<int64_t>(u) >> (64 - t.bits) : static_cast<int64_t>(u >> (64 - t.bits));
}

}  // namespace dlc
