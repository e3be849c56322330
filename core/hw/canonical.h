// One text for one machine, however its file spells it: what arch_hash is taken of.
//
// Values as they were loaded (units, defaults and params put in), names in order where order means nothing, expressions
// without the blanks that part no words. What only a reader sees (doc, faults.effect, sync.visible) and what only
// checks (examples, laws) is left out.
#pragma once

#include <string>

#include "dlc/hw/description.h"

namespace dlc {

std::string canonical_text(const HwDescription& hw);

}  // namespace dlc
