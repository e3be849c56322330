// What the samples make of a value, and the range that is chosen from it.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "dlc/quantize/quantize.h"

namespace dlc::quantization {

// How an s8 value stands for a number: (q - zero) * scale.
struct Step {
  double scale = 1;
  int64_t zero = 0;
  double low() const { return static_cast<double>(-128 - zero) * scale; }
  double high() const { return static_cast<double>(127 - zero) * scale; }
};

struct Reach {
  double lo = 0, hi = 0;  // around 0
};

// Of one value over all samples.
struct Histogram {
  Reach range;
  std::vector<double> bins;  // equal parts of the range: how many elements; zeros, which are exact, are in none
  double elements = 0;       // with the zeros

  void widen(const Tensor& t);  // first for all samples,
  void count(const Tensor& t);  // then this
};

// The range of values that share one.
Reach choose_range(std::span<const Histogram* const> values, const QuantizeOptions& options);
// Of s8. The scale is one that f32 has.
Step step_of(const Reach& range, bool symmetric);
// Of s8 weights, symmetric.
double weight_scale(std::span<const double> weights, RangeMethod method);

}  // namespace dlc::quantization
