// A kernel without its rounding: f64 for every float type, of tensors and of values.
//
//   X: f16[4], sum:f16[i < 4] X[i]    becomes    X: f64[4], sum:f64[i < 4] X[i]
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc {

Kernel in_doubles(Kernel k);

}  // namespace dlc
