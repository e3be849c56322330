// A kernel evaluated point by point in numbers with errors (bounded.h): what it computes, and how far from it a right
// implementation may be, whatever the order of its sums, and whether it rounds what lies between or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dlc/base/tensor.h"
#include "dlc/interp/interp.h"
#include "dlc/kernel/kernel.h"
#include "tests/fuzz/bounded.h"

namespace dlc::fuzz {

struct BoundTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<Number> elements;
};

// Passes may bring the same sums and products into another form (a batch norm goes into the weights before it), which
// rounds in other places, though no more often: what holds for one form is granted twice.
inline constexpr double kForms = 2;

// Exactly what it holds.
BoundTensor bound_tensor(const Tensor& t);

// Values evaluated, before a kernel is no sample: a tenth of a second.
inline constexpr int64_t kMostWork = 3'000'000;

// `inputs` in the order of kernel.inputs; nullptr for absent ones. `symbols` has a value for every free symbol: what is
// computed of it, as the scale of a resize is of an extent, has the errors of a run. No tensor is a view.
Result<std::vector<BoundTensor>> walk(const Kernel& kernel, const std::vector<const BoundTensor*>& inputs,
                                      int64_t most_work = kMostWork, const Bindings& symbols = {});

// The first difference beyond the bounds, as text.
std::optional<std::string> difference(const BoundTensor& want, const Tensor& got);

}  // namespace dlc::fuzz
