// What is quantised must be finite: a scale has no place for a NaN or an infinity, and no error can be told from one.
#pragma once

#include <string>

#include "core/quantize/plan.h"

namespace dlc::quantization {

// The first element that is not finite: "nan at [0,3]"; empty if all are.
std::string not_finite(const Tensor& t);

// The weights and biases of the plan's layers.
Result<> check_constants(const Graph& g, const Plan& plan);

}  // namespace dlc::quantization
