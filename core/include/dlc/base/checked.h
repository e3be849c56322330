// Checked 64-bit arithmetic: sizes that come from a model or a file are never computed any other way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace dlc {

inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}
// Product of the dims; nullopt on a negative dim or overflow. The empty product is 1.
inline std::optional<int64_t> checked_product(std::span<const int64_t> dims) {
  int64_t r = 1;
  for (int64_t d : dims) {
    if (d < 0) return std::nullopt;
    auto m = checked_mul(r, d);
    if (!m) return std::nullopt;
    r = *m;
  }
  return r;
}

// Division that rounds toward minus infinity, and its remainder, which has the sign of b. b must not be 0.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}
inline int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

}  // namespace dlc
