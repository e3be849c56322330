// What the bits of a float narrower than f32 mean, and its conversions from and to f32.
//
// The fields are sign, exponent, mantissa, from the top. With exponent field e and mantissa field m of M bits, a number
// is (1 + m / 2^M) * 2^(e - bias), or m / 2^M * 2^(1 - bias) where e is 0. `specials` says which bits are no number.
//
// The conversions are written once: C++ runs them on a uint32_t, a code generator on vectors of its own words, for
// which it defines & | + - << >> < and the three functions below.
#pragma once

#include <bit>
#include <cstdint>

#include "dlc/base/dtype.h"

namespace dlc {

struct FloatFormat {
  enum class Specials : uint8_t {
    ieee,     // the largest exponent: infinity, and NaNs with a mantissa
    one_nan,  // all bits below the sign: NaN. No infinity
    fnuz,     // the bits of -0: NaN. No infinity, no -0
    none,     // neither: what is too large becomes the largest number, NaN zero
    power     // a power of two, 2^(e - bias): no sign, no zero, no infinity; all bits: NaN
  };
  int exponent, mantissa, bias;  // the first two in bits
  Specials specials;

  constexpr bool has_exponents_of_f32() const { return bias == 127; }
  constexpr uint32_t sign_bit() const { return 1u << (exponent + mantissa); }
  constexpr uint32_t infinity() const { return ((1u << exponent) - 1) << mantissa; }  // where there is one
  constexpr uint32_t nan() const {
    return specials == Specials::ieee   ? infinity() | 1u << (mantissa - 1)
           : specials == Specials::fnuz ? sign_bit()
           : specials == Specials::none ? 0
                                        : sign_bit() - 1;
  }
  constexpr uint32_t largest() const {  // number
    return specials == Specials::ieee                                 ? infinity() - 1
           : specials == Specials::fnuz || specials == Specials::none ? sign_bit() - 1
                                                                      : sign_bit() - 2;
  }
  constexpr uint32_t overflow() const {
    return specials == Specials::ieee ? infinity() : specials == Specials::none ? largest() : nan();
  }
};

inline constexpr FloatFormat kFormatF16{5, 10, 15, FloatFormat::Specials::ieee};
inline constexpr FloatFormat kFormatBF16{8, 7, 127, FloatFormat::Specials::ieee};
inline constexpr FloatFormat kFormatE4M3FN{4, 3, 7, FloatFormat::Specials::one_nan};
inline constexpr FloatFormat kFormatE4M3FNUZ{4, 3, 8, FloatFormat::Specials::fnuz};
inline constexpr FloatFormat kFormatE5M2{5, 2, 15, FloatFormat::Specials::ieee};
inline constexpr FloatFormat kFormatE5M2FNUZ{5, 2, 16, FloatFormat::Specials::fnuz};
inline constexpr FloatFormat kFormatE8M0{8, 0, 127, FloatFormat::Specials::power};
inline constexpr FloatFormat kFormatE2M1{2, 1, 1, FloatFormat::Specials::none};

// Of a narrow float.
constexpr const FloatFormat& float_format(DType t) {
  switch (t.kind) {
    case DType::Kind::brain_float:
      return kFormatBF16;
    case DType::Kind::e4m3fn:
      return kFormatE4M3FN;
    case DType::Kind::e4m3fnuz:
      return kFormatE4M3FNUZ;
    case DType::Kind::e5m2:
      return kFormatE5M2;
    case DType::Kind::e5m2fnuz:
      return kFormatE5M2FNUZ;
    case DType::Kind::e8m0:
      return kFormatE8M0;
    case DType::Kind::e2m1:
      return kFormatE2M1;
    default:
      return kFormatF16;
  }
}

namespace words {

// What an f32 is, as a word.
inline constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u, kNaN = 0x7fc00000u;
inline constexpr uint32_t kLeastPower = 0x400000u;  // 2^-127, which is subnormal
constexpr uint32_t power_of_two(int n) { return static_cast<uint32_t>(127 + n) << 23; }

constexpr uint32_t select(bool condition, uint32_t yes, uint32_t no) { return condition ? yes : no; }
constexpr uint32_t add_floats(uint32_t x, uint32_t y) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(x) + std::bit_cast<float>(y));
}
constexpr uint32_t multiply_floats(uint32_t x, uint32_t y) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(x) * std::bit_cast<float>(y));
}

// The f32 that narrow bits stand for; exact.
template <class Word>
constexpr Word decode(const FloatFormat& f, const Word& bits) {
  using Specials = FloatFormat::Specials;
  if (f.specials == Specials::power) return select(bits < f.nan(), select(bits < 1u, kLeastPower, bits << 23), kNaN);
  const Word magnitude = bits & (f.sign_bit() - 1);
  const Word sign = (bits & f.sign_bit()) << (31 - f.exponent - f.mantissa);
  const Word placed = magnitude << (23 - f.mantissa);
  if (f.has_exponents_of_f32()) return placed | sign;
  const Word number = multiply_floats(placed, power_of_two(127 - f.bias));  // subnormals come out right too
  if (f.specials == Specials::ieee) return select(magnitude < f.infinity(), number, placed | kInfinity) | sign;
  if (f.specials == Specials::one_nan) return select(magnitude < f.nan(), number, kNaN) | sign;
  if (f.specials == Specials::fnuz) return select((number | sign) - kSign < 1u, kNaN, number | sign);
  return number | sign;
}

// The narrow bits nearest to an f32, half to even.
template <class Word>
constexpr Word encode(const FloatFormat& f, const Word& x) {
  using Specials = FloatFormat::Specials;
  if (f.specials == Specials::power) {  // half up; what is below the least power or negative is NaN
    const Word normalised = select(x < power_of_two(-126), x + x - power_of_two(-126), x);
    return select(x - kLeastPower < kInfinity - kLeastPower, (normalised + 0x400000u) >> 23, f.nan());
  }
  const int cut = 23 - f.mantissa;
  const Word magnitude = x & ~kSign;
  const Word sign = (x & kSign) >> (31 - f.exponent - f.mantissa);
  // A carry out of the mantissa goes into the exponent.
  const uint32_t almost_half = (1u << (cut - 1)) - 1;
  Word bits = (magnitude + ((magnitude >> cut) & 1u) + (almost_half - power_of_two(-f.bias))) >> cut;
  if (!f.has_exponents_of_f32()) {
    // A float whose last place is the smallest subnormal: what is added to it is rounded to subnormals.
    const uint32_t ruler = power_of_two(24 - f.bias - f.mantissa);
    bits = select(magnitude < power_of_two(1 - f.bias), add_floats(magnitude, ruler) - ruler, bits);
    bits = select(bits < f.largest() + 1, bits, f.overflow());
  }
  const uint32_t payload = f.specials == Specials::ieee ? (1u << f.mantissa) - 1 : 0;
  bits = select(magnitude < kInfinity + 1, bits, ((magnitude >> cut) & payload) | f.nan());
  return f.specials == Specials::fnuz ? select(bits < 1u, bits, bits | sign) : bits | sign;
}

}  // namespace words

}  // namespace dlc
