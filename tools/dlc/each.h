// `dlc run --each`: a file of many samples through a model that takes one.
//
//   image: f32[1000,1,28,28] in the file, f32[1,1,28,28] in the model: 1000 runs, results of shape [1000, ...].
#pragma once

#include <vector>

#include "dlc/io/numpy.h"

namespace dlc::cli {

// How many samples: the leading dim, the same for every tensor.
Result<int64_t> sample_count(const NamedTensors& given);
// Sample i of every tensor, with a leading dim of 1.
Result<NamedTensors> sample(const NamedTensors& given, int64_t i);

// Results of the runs, one after the other, along the leading dim.
class Stacked {
 public:
  Result<> add(const std::vector<Tensor>& results, int64_t index, int64_t count);
  const std::vector<Tensor>& tensors() const { return all_; }

 private:
  std::vector<Tensor> all_;
};

}  // namespace dlc::cli
