// Random programs, from a seed: instructions with random fields on memories that are all defined first, and the
// semaphores that their conflicts need. Race-free by construction, which the checker of programs confirms.
#pragma once

#include <cstdint>
#include <vector>

#include "dlc/hw/description.h"
#include "dlc/hw/encode.h"

namespace dlc::cosim {

// About `length` instructions besides those that define the memories, and `end`. Loads read segments arena, weights,
// io0 and io1, stores write io0 and io1; all stay below `segment_bytes`.
std::vector<Instruction> random_program(const HwDescription& hw, uint64_t seed, int length, int64_t segment_bytes);

}  // namespace dlc::cosim
