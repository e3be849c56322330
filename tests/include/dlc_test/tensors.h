// Tensors from numbers and back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dlc/base/tensor.h"
#include "dlc_test/catch.h"

namespace dlc_test {

inline dlc::Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  REQUIRE_OK(dlc::Tensor t, dlc::Tensor::from<float>(dlc::kF32, std::move(shape), values));
  return t;
}

// Floats in [-1, 1), the same for the same seed.
inline dlc::Tensor noise(std::vector<int64_t> shape, uint32_t seed) {
  REQUIRE_OK(dlc::Tensor t, dlc::Tensor::make(dlc::kF32, std::move(shape)));
  for (int64_t i = 0; i < t.elements(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    t.set_double(i, static_cast<double>(seed >> 8) / (1 << 23) - 1.0);
  }
  return t;
}

inline std::vector<double> elements(const dlc::Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.elements(); ++i) v.push_back(t.get_double(i));
  return v;
}

}  // namespace dlc_test
