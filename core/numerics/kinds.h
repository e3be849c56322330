// What an op does to elements, read off its kernel: no list of ops.
#pragma once

#include <string_view>

#include "dlc/graph/graph.h"

namespace dlc::numerics {

// Whether every element of the node's result is an element of its first input, whatever the elements are: a reshape, a
// transpose, a slice, a max pool.
Result<bool> moves(const Graph& g, NodeId id);

// Why the kernel does not compute the same function of its one tensor at every element; empty if it does.
std::string_view not_pointwise(const Kernel& k);

}  // namespace dlc::numerics
