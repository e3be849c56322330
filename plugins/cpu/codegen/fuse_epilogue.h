// acc[m, n] = sum ...; Y[m, n] = f(acc[m, n])   becomes   Y[m, n] = f(sum ...): the accumulator stays in registers.
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc::cpu {

// Inlines every temporary that one contraction writes and one later statement reads once at each of its points.
Kernel fuse_epilogues(const Kernel& k);

}  // namespace dlc::cpu
