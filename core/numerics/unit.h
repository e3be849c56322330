// What a recipe shifts away for a reciprocal or a root in it is the machine's business: it is found by running the
// recipe.
//
//   quotient(E, M, S) with E divided by itself:   M for S = 30 + ...
#pragma once

#include <string_view>
#include <vector>

#include "dlc/base/tensor.h"
#include "dlc/ops/record.h"

namespace dlc::numerics {

// The value of the last of `operands`, a shift, for which the first element of the recipe's result is `wanted`. The
// more is shifted away, the less is left.
Result<int64_t> unit_shift(const RecordSet& recipes, std::string_view recipe, std::vector<Tensor> operands,
                           int64_t wanted);

}  // namespace dlc::numerics
