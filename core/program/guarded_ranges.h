// The symbols' ranges with what the guards say of one symbol alone: a plan is only used for sizes that passed them.
//
//   N in 0..64, guard N >= 2   ->   N in 2..64
#pragma once

#include "dlc/program/program.h"

namespace dlc::detail {

Ranges guarded_ranges(const Program& p);

}  // namespace dlc::detail
