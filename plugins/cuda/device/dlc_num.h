// Numbers as the op language has them, for generated CUDA text: element types with their conversions, integers that
// wrap, divide toward minus infinity and saturate, functions that pass NaN on. One body for device and host: nothing
// here knows which it is. Included by dlc_dev.h, which defines DLC_D (how a device function is declared) and on the
// host the C library. (narrow floats alone are converted by instructions of the device: the results are the same.)
//
//   const float x = dlc::to_float(X[i]);   // X: const f16*
//   Y[i] = dlc::to_f16(dlc::max(x, 0.0f));
#pragma once

// What is stored of a float narrower than 32 bits.
struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
struct f8e4m3fn {
  unsigned char bits;
};
struct f8e4m3fnuz {
  unsigned char bits;
};
struct f8e5m2 {
  unsigned char bits;
};
struct f8e5m2fnuz {
  unsigned char bits;
};
struct f8e8m0 {
  unsigned char bits;
};
struct f4e2m1 {
  unsigned char bits;
};

namespace dlc {

template <class To, class From>
DLC_D To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "the bits of one are not those of the other");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
DLC_D float infinity() { return bits_as<float>(0x7f800000u); }
DLC_D float not_a_number() { return bits_as<float>(0x7fc00000u); }

// ---- narrow floats, as dlc/base/float_format.h has them

// ieee: infinity and NaNs above all numbers; one_nan: all bits; fnuz: the bits of -0; none: no such thing; power: 2^n.
enum Specials { ieee, one_nan, fnuz, none, power };

template <int exponent, int mantissa, int bias, Specials specials>
struct Format {
  static constexpr unsigned sign_bit = 1u << (exponent + mantissa);
  static constexpr unsigned inf = ((1u << exponent) - 1) << mantissa;
  static constexpr unsigned nan = specials == ieee   ? inf | 1u << (mantissa == 0 ? 0 : mantissa - 1)
                                  : specials == fnuz ? sign_bit
                                  : specials == none ? 0
                                                     : sign_bit - 1;
  static constexpr unsigned largest = specials == ieee                       ? inf - 1
                                      : specials == fnuz || specials == none ? sign_bit - 1
                                                                             : sign_bit - 2;
  static constexpr unsigned overflow = specials == ieee ? inf : specials == none ? largest : nan;
  static constexpr unsigned kInf = 0x7f800000u, kNan = 0x7fc00000u, kSign = 0x80000000u;
  static DLC_D constexpr unsigned power_of_two(int n) { return (unsigned)(127 + n) << 23; }

  static DLC_D float decode(unsigned bits) {
    if constexpr (specials == power) return bits_as<float>(bits >= nan ? kNan : bits == 0 ? 0x400000u : bits << 23);
    const unsigned magnitude = bits & (sign_bit - 1), sign = (bits & sign_bit) << (31 - exponent - mantissa);
    const unsigned placed = magnitude << (23 - mantissa);
    if (bias == 127) return bits_as<float>(placed | sign);
    const unsigned number = bits_as<unsigned>(bits_as<float>(placed) * bits_as<float>(power_of_two(127 - bias)));
    if (specials == ieee && magnitude >= inf) return bits_as<float>(placed | kInf | sign);
    if (specials == one_nan && magnitude >= nan) return bits_as<float>(kNan | sign);
    if (specials == fnuz && (number | sign) == kSign) return bits_as<float>(kNan);
    return bits_as<float>(number | sign);
  }

  static DLC_D unsigned encode(float f) {
    const unsigned x = bits_as<unsigned>(f);
    if constexpr (specials == power) {
      const unsigned normalised = x < power_of_two(-126) ? x + x - power_of_two(-126) : x;
      return x - 0x400000u < kInf - 0x400000u ? (normalised + 0x400000u) >> 23 : nan;
    }
    constexpr int cut = 23 - mantissa;
    const unsigned magnitude = x & ~kSign, sign = (x & kSign) >> (31 - exponent - mantissa);
    unsigned bits = (magnitude + ((magnitude >> cut) & 1u) + ((1u << (cut - 1)) - 1 - power_of_two(-bias))) >> cut;
    if (bias != 127) {
      constexpr unsigned ruler = power_of_two(24 - bias - mantissa);
      if (magnitude < power_of_two(1 - bias))
        bits = bits_as<unsigned>(bits_as<float>(magnitude) + bits_as<float>(ruler)) - ruler;
      if (bits > largest) bits = overflow;
    }
    if (magnitude > kInf) bits = ((magnitude >> cut) & (specials == ieee ? (1u << mantissa) - 1 : 0)) | nan;
    return specials == fnuz && bits == 0 ? 0 : bits | sign;
  }
};

#define DLC_NARROW_FLOAT(type, word, ...)                                              \
  DLC_D float to_float(type x) { return Format<__VA_ARGS__>::decode(x.bits); }         \
  DLC_D type to_##type(float x) { return type{(word)Format<__VA_ARGS__>::encode(x)}; } \
  DLC_D float rounded_to_##type(float x) { return to_float(to_##type(x)); }
#ifdef DLC_HOST_EMU
DLC_NARROW_FLOAT(f16, unsigned short, 5, 10, 15, ieee)
#else
DLC_D float to_float(f16 x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
}
DLC_D f16 to_f16(float x) {
  f16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
DLC_D float rounded_to_f16(float x) { return to_float(to_f16(x)); }
#endif
DLC_NARROW_FLOAT(bf16, unsigned short, 8, 7, 127, ieee)
DLC_NARROW_FLOAT(f8e4m3fn, unsigned char, 4, 3, 7, one_nan)
DLC_NARROW_FLOAT(f8e4m3fnuz, unsigned char, 4, 3, 8, fnuz)
DLC_NARROW_FLOAT(f8e5m2, unsigned char, 5, 2, 15, ieee)
DLC_NARROW_FLOAT(f8e5m2fnuz, unsigned char, 5, 2, 16, fnuz)
DLC_NARROW_FLOAT(f8e8m0, unsigned char, 8, 0, 127, power)
DLC_NARROW_FLOAT(f4e2m1, unsigned char, 2, 1, 1, none)
#undef DLC_NARROW_FLOAT

// ---- memory

// The element of type T that lies so many bytes behind p: of a tensor that is a window of another.
template <class T>
DLC_D const T& at(const void* p, long long bytes) {
  return *(const T*)((const char*)p + bytes);
}
template <class T>
DLC_D T& at(void* p, long long bytes) {
  return *(T*)((char*)p + bytes);
}

DLC_D bool inside(int index, int extent) { return (unsigned)index < (unsigned)extent; }
DLC_D bool inside(long long index, long long extent) { return (unsigned long long)index < (unsigned long long)extent; }
DLC_D bool inside(int index, long long extent) { return inside((long long)index, extent); }
DLC_D bool inside(long long index, int extent) { return inside(index, (long long)extent); }
DLC_D bool inside(unsigned long long index, long long extent) { return index < (unsigned long long)extent; }

// ---- integers: they wrap, and nothing traps

template <class T>
struct Word {
  using type = unsigned long long;
};
template <>
struct Word<int> {
  using type = unsigned;
};
template <>
struct Word<unsigned> {
  using type = unsigned;
};

template <class T>
DLC_D T add(T a, T b) {
  return (T)((typename Word<T>::type)a + (typename Word<T>::type)b);
}
template <class T>
DLC_D T sub(T a, T b) {
  return (T)((typename Word<T>::type)a - (typename Word<T>::type)b);
}
template <class T>
DLC_D T mul(T a, T b) {
  return (T)((typename Word<T>::type)a * (typename Word<T>::type)b);
}
template <class T>
DLC_D T neg(T a) {
  return sub((T)0, a);
}
template <class T>
DLC_D T shl(T a, T count) {
  return (T)((typename Word<T>::type)a << count);
}

// Toward minus infinity. A divisor of 0 belongs to a point whose value nobody uses.
template <class T>
DLC_D T floor_div(T a, T b) {
  if (b == 0) return a;
  if (b == (T)-1 && (T)-1 < (T)0) return neg(a);
  const T q = a / b;
  return q - (T)(a % b != 0 && ((a < 0) != (b < 0)));
}
template <class T>
DLC_D T floor_mod(T a, T b) {
  if (b == 0 || (b == (T)-1 && (T)-1 < (T)0)) return 0;
  const T r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
// Toward zero, as in C.
template <class T>
DLC_D T quotient(T a, T b) {
  return b == 0 ? a : b == (T)-1 && (T)-1 < (T)0 ? neg(a) : a / b;
}
template <class T>
DLC_D T remainder(T a, T b) {
  return b == 0 || (b == (T)-1 && (T)-1 < (T)0) ? 0 : a % b;
}

// The low bits of x as an integer of that many bits.
template <int bits>
DLC_D long long wrap_signed(long long x) {
  return (long long)((unsigned long long)x << (64 - bits)) >> (64 - bits);
}
template <int bits>
DLC_D long long wrap_unsigned(long long x) {
  return (long long)((unsigned long long)x << (64 - bits) >> (64 - bits));
}

template <class T>
DLC_D T power_of(T base, T exponent) {  // wraps; below 0 it truncates 1 / base^|exponent|
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == (T)-1) return exponent % 2 != 0 ? (T)-1 : 1;
    return 0;
  }
  T result = 1;
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}

// ---- smaller and larger; NaN if either is

DLC_D float min(float a, float b) { return a < b || a != a ? a : b; }
DLC_D float max(float a, float b) { return a > b || a != a ? a : b; }
DLC_D double min(double a, double b) { return a < b || a != a ? a : b; }
DLC_D double max(double a, double b) { return a > b || a != a ? a : b; }
DLC_D int min(int a, int b) { return a < b ? a : b; }
DLC_D int max(int a, int b) { return a > b ? a : b; }
DLC_D long long min(long long a, long long b) { return a < b ? a : b; }
DLC_D long long max(long long a, long long b) { return a > b ? a : b; }
DLC_D unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
DLC_D unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }

template <class T>
DLC_D T clamp(T x, T lo, T hi) {
  return x < lo ? lo : x > hi ? hi : x;
}
template <class T>
DLC_D T sign(T x) {
  return x != x ? x : (T)((x > (T)0) - (x < (T)0));
}
DLC_D int abs(int x) { return x < 0 ? neg(x) : x; }
DLC_D long long abs(long long x) { return x < 0 ? neg(x) : x; }
DLC_D unsigned long long abs(unsigned long long x) { return x; }
DLC_D float abs(float x) { return fabsf(x); }
DLC_D double abs(double x) { return fabs(x); }
template <class T>
DLC_D bool is_nan(T x) {
  return x != x;
}
template <class T>
DLC_D bool is_inf(T x) {
  return abs(x) == (T)infinity();
}

// ---- floats to integers: toward zero, what is too large becomes the largest, NaN becomes 0

template <class T>
DLC_D long long to_s64(T x) {
  if (x != x) return 0;
  if (x >= (T)9223372036854775808.0) return 0x7fffffffffffffffLL;
  if (x <= (T)-9223372036854775808.0) return -0x7fffffffffffffffLL - 1;
  return (long long)x;
}
template <class T>
DLC_D unsigned long long to_u64(T x) {
  if (!(x > (T)0)) return 0;
  if (x >= (T)18446744073709551616.0) return 0xffffffffffffffffULL;
  return (unsigned long long)x;
}

// ---- functions

#define DLC_FUNCTION(name)                           \
  DLC_D float name(float x) { return ::name##f(x); } \
  DLC_D double name(double x) { return ::name(x); }
DLC_FUNCTION(exp)
DLC_FUNCTION(log)
DLC_FUNCTION(sin)
DLC_FUNCTION(cos)
DLC_FUNCTION(tan)
DLC_FUNCTION(asin)
DLC_FUNCTION(acos)
DLC_FUNCTION(atan)
DLC_FUNCTION(sinh)
DLC_FUNCTION(cosh)
DLC_FUNCTION(tanh)
DLC_FUNCTION(asinh)
DLC_FUNCTION(acosh)
DLC_FUNCTION(atanh)
DLC_FUNCTION(erf)
DLC_FUNCTION(sqrt)
DLC_FUNCTION(floor)
DLC_FUNCTION(ceil)
DLC_FUNCTION(trunc)
#undef DLC_FUNCTION
DLC_D float rsqrt(float x) { return 1.0f / ::sqrtf(x); }
DLC_D double rsqrt(double x) { return 1.0 / ::sqrt(x); }
DLC_D float round(float x) { return ::rintf(x); }  // half to even
DLC_D double round(double x) { return ::rint(x); }
DLC_D float pow(float x, float y) { return ::powf(x, y); }
DLC_D double pow(double x, double y) { return ::pow(x, y); }
DLC_D float fmod(float x, float y) { return ::fmodf(x, y); }
DLC_D double fmod(double x, double y) { return ::fmod(x, y); }
DLC_D float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
DLC_D double fma(double a, double b, double c) { return ::fma(a, b, c); }

// Integer division and its remainder for floats: floor(x / y), and the remainder with the divisor's sign.
template <class T>
DLC_D T float_floor_div(T x, T y) {
  return floor(x / y);
}
template <class T>
DLC_D T float_mod(T x, T y) {
  const T r = fmod(x, y);
  return r != (T)0 && ((r < (T)0) != (y < (T)0)) ? r + y : r;
}

}  // namespace dlc
