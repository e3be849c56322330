// The name under which something is written before it is put in its target's place.
#pragma once

#include <string>

namespace dlc {

// In the target's folder, short whatever the target's name is, and the same each time: what a killed process left is
// used again by the next write, so at most one such file lies beside a target.
std::string name_beside(const std::string& path);

}  // namespace dlc
