// A loop that one factor uses only as o // c is two loops: grouped convolution's groups, the key heads of grouped-query
// attention. Split, the outer one is a batch loop and the inner one belongs to the other factor alone.
#pragma once

#include <optional>

#include "core/interp/lower.h"

namespace dlc::interp {

struct GroupSplit {
  LoopCode loop;                   // o, as it was
  LoopCode group, inside;          // o = group * |inside| + inside
  Node product;                    // with o replaced
  bool first_uses_inside = false;  // which factor depends on `inside`; the other does not
};

// nullopt when no loop of the product can be split so.
std::optional<GroupSplit> split_group(Lowered& code, const std::vector<LoopCode>& loops, const Node& product);

}  // namespace dlc::interp
