// Synchronisation of a straight program: instructions in an order that would be right one after another get the waits
// and signals that keep them right on queues that run side by side.
#pragma once

#include <vector>

#include "dlc/hw/encode.h"
#include "dlc/hw/footprint.h"

namespace dlc::map {

// One semaphore for each pair of queues that depend on each other, given by the one and taken by the other, so that its
// k-th wait meets its k-th signal. An order that follows from others costs nothing.
Result<> synchronise(const HwDescription& hw, const Footprints& footprints, std::vector<Instruction>& program);

}  // namespace dlc::map
