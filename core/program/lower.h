// lower_to_program() of groups that are chosen already.
#pragma once

#include <vector>

#include "dlc/program/program.h"

namespace dlc::detail {

// `groups` are all of g's live nodes, in an order that can be executed.
Result<Program> lower_groups(const Graph& g, std::vector<FusionGroup> groups, int64_t align = 64);

}  // namespace dlc::detail
