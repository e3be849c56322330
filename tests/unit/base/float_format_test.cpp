// The narrow floats: what their bits mean, by the definition of the fields, and that conversion finds the nearest.
#include "dlc/base/float_format.h"

#include <cmath>
#include <limits>
#include <optional>

#include "dlc/base/tensor.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr DType kNarrow[] = {kF16, kBF16, kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF4E2M1, kF8E8M0};

bool same(float a, float b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

// A number by the definition of the fields, infinity and NaN by the standards' own words.
float defined(DType t, uint32_t bits) {
  if (t == kF8E8M0) return bits == 0xff ? NAN : static_cast<float>(std::ldexp(1.0, static_cast<int>(bits) - 127));
  if (t == kF8E4M3FN && (bits & 0x7f) == 0x7f) return NAN;
  if ((t == kF8E4M3FNUZ || t == kF8E5M2FNUZ) && bits == 0x80) return NAN;
  const int m = t == kF16 ? 10 : t == kBF16 ? 7 : t == kF8E5M2 || t == kF8E5M2FNUZ ? 2 : t == kF4E2M1 ? 1 : 3;
  const int e = t.bits - 1 - m;
  const int bias = (1 << (e - 1)) - 1 + (t == kF8E4M3FNUZ || t == kF8E5M2FNUZ ? 1 : 0);
  const auto mantissa = static_cast<int>(bits & ((1u << m) - 1));
  const auto exponent = static_cast<int>((bits >> m) & ((1u << e) - 1));
  const double sign = (bits >> (e + m)) & 1u ? -1 : 1;
  if ((t == kF16 || t == kBF16 || t == kF8E5M2) && exponent == (1 << e) - 1)
    return mantissa != 0 ? NAN : static_cast<float>(sign) * kInf;
  const double fraction = std::ldexp(mantissa, -m) + (exponent == 0 ? 0 : 1);
  return static_cast<float>(sign * std::ldexp(fraction, (exponent == 0 ? 1 : exponent) - bias));
}

uint32_t codes(DType t) { return 1u << t.bits; }

}  // namespace

TEST_CASE("bits of narrow floats mean what their fields say, and survive the way through f32") {
  for (const DType t : kNarrow)
    for (uint32_t bits = 0; bits < codes(t); ++bits) {
      CAPTURE(to_string(t), bits);
      const float v = from_bits(t, bits);
      REQUIRE(same(v, defined(t, bits)));
      if (!std::isnan(v)) REQUIRE(to_bits(t, v) == bits);
      if (std::isnan(v)) REQUIRE(std::isnan(from_bits(t, to_bits(t, v))));
    }
}

TEST_CASE("what lies between two numbers of a narrow float becomes the nearer, or the even one") {
  for (const DType t : kNarrow) {
    const bool has_sign = t != kF8E8M0;
    const uint32_t largest = float_format(t).largest(), sign = float_format(t).sign_bit();
    for (uint32_t bits = 0; bits < largest; ++bits) {  // positive numbers are in the order of their bits
      CAPTURE(to_string(t), bits);
      const float lo = from_bits(t, bits), hi = from_bits(t, bits + 1);
      REQUIRE(lo < hi);
      const float middle = lo + (hi - lo) / 2;  // exact
      const uint32_t tie = !has_sign || (bits & 1) != 0 ? bits + 1 : bits;
      const auto check = [&](float x, uint32_t want) {
        REQUIRE(to_bits(t, x) == want);
        if (!has_sign) return;
        const bool no_minus_zero = want == 0 && (t == kF8E4M3FNUZ || t == kF8E5M2FNUZ);
        REQUIRE(to_bits(t, -x) == (no_minus_zero ? 0 : want | sign));
      };
      check(middle, tie);
      check(std::nextafter(middle, 0.0f), bits);
      check(std::nextafter(middle, kInf), bits + 1);
      check(std::nextafter(hi, 0.0f), bits + 1);
      if (lo > 0) check(std::nextafter(lo, kInf), bits);
    }
    // Above the largest: as if there were a next one, which stands for all that is too large.
    const float top = from_bits(t, largest), step = t == kF8E8M0 ? top : top - from_bits(t, largest - 1);
    const float over = from_bits(t, float_format(t).overflow());
    CAPTURE(to_string(t));
    const float tie = top + step / 2;
    CHECK(rounded_to(t, std::nextafter(tie, 0.0f)) == top);
    CHECK(same(rounded_to(t, tie), has_sign && largest % 2 == 0 ? top : over));
    for (const float x : {std::nextafter(tie, kInf), top + step, kInf}) CHECK(same(rounded_to(t, x), over));
  }
}

TEST_CASE("the conversions are those of ml_dtypes") {
  constexpr DType kTypes[] = {kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF4E2M1, kF8E8M0};
  struct Row {
    float x;
    uint8_t bits[6];
  };
  constexpr Row kRows[] = {
      {0, {0x00, 0x00, 0x00, 0x00, 0x00, 0xff}},
      {-0.0f, {0x80, 0x00, 0x80, 0x00, 0x08, 0xff}},
      {1, {0x38, 0x40, 0x3c, 0x40, 0x02, 0x7f}},
      {-1.0625f, {0xb8, 0xc0, 0xbc, 0xc0, 0x0a, 0xff}},
      {1.1875f, {0x3a, 0x42, 0x3d, 0x41, 0x02, 0x7f}},
      {-1.1875f, {0xba, 0xc2, 0xbd, 0xc1, 0x0a, 0xff}},
      {0.3f, {0x2a, 0x32, 0x35, 0x39, 0x01, 0x7d}},
      {-7.7f, {0xcf, 0xd7, 0xc8, 0xcc, 0x0f, 0xff}},
      {0.0009765625f, {0x00, 0x01, 0x14, 0x18, 0x00, 0x75}},
      {0.001f, {0x01, 0x01, 0x14, 0x18, 0x00, 0x75}},
      {-0.0011f, {0x81, 0x81, 0x95, 0x99, 0x08, 0xff}},
      {0.015f, {0x08, 0x0f, 0x24, 0x28, 0x00, 0x79}},
      {2.1e-05f, {0x00, 0x00, 0x01, 0x03, 0x00, 0x6f}},
      {-7.7e-06f, {0x80, 0x00, 0x81, 0x81, 0x08, 0xff}},
      {3.8e-06f, {0x00, 0x00, 0x00, 0x00, 0x00, 0x6d}},
      {240, {0x77, 0x7f, 0x5c, 0x60, 0x07, 0x87}},
      {-248, {0xf8, 0x80, 0xdc, 0xe0, 0x0f, 0xff}},
      {247.9f, {0x77, 0x7f, 0x5c, 0x60, 0x07, 0x87}},
      {464, {0x7e, 0x80, 0x5f, 0x63, 0x07, 0x88}},
      {464.1f, {0x7f, 0x80, 0x5f, 0x63, 0x07, 0x88}},
      {-480, {0xff, 0x80, 0xe0, 0xe4, 0x0f, 0xff}},
      {57344, {0x7f, 0x80, 0x7b, 0x7f, 0x07, 0x8f}},
      {61439, {0x7f, 0x80, 0x7b, 0x7f, 0x07, 0x8f}},
      {-61440, {0xff, 0x80, 0xfc, 0x80, 0x0f, 0xff}},
      {1e+06f, {0x7f, 0x80, 0x7c, 0x80, 0x07, 0x93}},
      {kInf, {0x7f, 0x80, 0x7c, 0x80, 0x07, 0xff}},
      {-kInf, {0xff, 0x80, 0xfc, 0x80, 0x0f, 0xff}},
  };
  for (const Row& r : kRows)
    for (size_t i = 0; i < std::size(kTypes); ++i) {
      CAPTURE(r.x, to_string(kTypes[i]));
      CHECK(to_bits(kTypes[i], r.x) == r.bits[i]);
    }
}

TEST_CASE("a power of two has neither sign nor zero; a float of 4 bits has neither infinity nor NaN") {
  for (const float x : {0.0f, -0.0f, -1.0f, 0x1p-128f, -kInf, kInf, 0x1.8p127f, NAN})
    CHECK(std::isnan(rounded_to(kF8E8M0, x)));
  CHECK(rounded_to(kF8E8M0, 1.5f) == 2);
  CHECK(rounded_to(kF4E2M1, -kInf) == -6);
  CHECK(rounded_to(kF4E2M1, NAN) == 0);
}

TEST_CASE("a tensor of small floats has a byte for each element") {
  REQUIRE_OK(Tensor t, Tensor::make(kF8E4M3FN, {3}));
  CHECK(t.byte_size() == 3);
  t.set_double(0, 1.0625);
  t.set_int(1, -448);
  CHECK(t.get_double(0) == 1);
  CHECK(t.get_int(1) == -448);
  REQUIRE_OK(const Tensor half, t.cast(kF4E2M1));
  CHECK(half.byte_size() == 3);
  CHECK(half.get_double(1) == -6);
}
