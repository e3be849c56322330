// Whether a description is inside `queue_machine/1`, the contract of the generic accelerator backend: explicit
// addresses, affine loop nests, in-order queues, software synchronisation.
#pragma once

#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"

namespace dlc {

// What is outside the family, with the place in the file; empty: the generic backend can drive this machine. Errors are
// what it cannot do without, warnings what it will not use.
std::vector<Diagnostic> check_generic(const HwDescription& hw);

}  // namespace dlc
