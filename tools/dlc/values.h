// Tensors beside tensors: what `dlc compare` and `dlc bisect` call a difference.
#pragma once

#include <cstdint>
#include <string>

#include "dlc/base/tensor.h"
#include "tools/dlc/cli.h"

namespace dlc::cli {

inline constexpr double kTolerance = 1e-4;

struct Difference {
  double largest = 0;  // of floats relative to the larger of the element and the tensor's root mean square
  int64_t wrong = 0;   // elements; integers that are not equal, floats beyond the tolerance
  int64_t first = -1;  // the first of them
  std::string text;    // "[0,3]: 1.5 for 1.25", or how the types differ
};

// Integers must be equal. Another type or shape is a difference of every element.
Difference difference(const Tensor& want, const Tensor& got, double tolerance);

// The option of a command: --tolerance T.
void add_tolerance(CLI::App& sub, double& tolerance);

}  // namespace dlc::cli
