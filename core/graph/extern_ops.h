// Ops whose meaning no index expression states: their record says `extern`, their reference is a C++ function here.
//
// To add one: write the record with `extern`, write its function in extern_ops.cpp, add one line to the table there.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/ops/attributes.h"

namespace dlc {

// Inputs as the node has them (an absent one is an invalid Tensor), attributes without symbols: one that stands for a
// size the op finds out is absent. Returns every result.
using ExternOp = Result<std::vector<Tensor>> (*)(std::span<const Tensor> inputs, const Attributes& attrs);

ExternOp find_extern_op(std::string_view name);  // null when there is none

}  // namespace dlc
