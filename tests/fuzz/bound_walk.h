// A kernel evaluated point by point in numbers with errors (bounded.h): what it computes, and how far from it a right
// implementation may be, whatever the order of its sums, and whether it rounds what lies between or not.
#pragma once

#include <vector>

#include "dlc/base/tensor.h"
#include "dlc/kernel/kernel.h"
#include "tests/fuzz/bounded.h"

namespace dlc::fuzz {

struct BoundTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<Number> elements;
};

// Exactly what it holds.
BoundTensor bound_tensor(const Tensor& t);

// `inputs` in the order of kernel.inputs; nullptr for absent ones. The shapes are constant, no tensor is a view.
Result<std::vector<BoundTensor>> walk(const Kernel& kernel, const std::vector<const BoundTensor*>& inputs);

}  // namespace dlc::fuzz
