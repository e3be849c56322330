#pragma once

#include <set>
#include <string>

#include "dlc/kernel/kernel.h"

namespace dlc {

// v's node again over other children, typed and folded anew. A reduction keeps its loops.
Val rebuild(const ValNode& v, std::vector<Val> args);

// Every loop and every symbol of the kernel: a new loop takes a name that is not among them.
std::set<std::string> names_in(const Kernel& k);

}  // namespace dlc
