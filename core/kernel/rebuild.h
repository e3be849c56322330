#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc {

// v's node again over other children, typed and folded anew. A reduction keeps its loops.
Val rebuild(const ValNode& v, std::vector<Val> args);

}  // namespace dlc
