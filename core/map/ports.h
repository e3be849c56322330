// Ports of the on-chip memories, as the description gives them to queues.
#pragma once

#include "dlc/hw/description.h"

namespace dlc::map {

// Whether an instruction of `queue` that reads `space` stands still while one of queue `other` does: they have one port
// between them, and `queue` is the one that yields. Banks keep them apart.
bool yields(const HwDescription& hw, int space, int queue, int other);

}  // namespace dlc::map
