// merge_nodes() for a pass that asks for many groups of one graph.
#pragma once

#include "dlc/passes/fuse.h"

namespace dlc {

// As merge_nodes(g, nodes); `users` are g.all_users().
Result<FusionGroup> merge_nodes(const Graph& g, std::span<const NodeId> nodes,
                                std::span<const std::vector<NodeId>> users);

}  // namespace dlc
