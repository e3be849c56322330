// Names of values in graphs that are copied, read or cut.
//
// A value is called something, and an output of the model is: two kinds of names. A value that a partition hands to
// another one goes by its own name, an output by the model's, so that where a graph is cut the two must not clash:
//
//   %2 = neg(%x)                    %2_1 = neg(%x)
//   %3 = exp(%x)           ->       %3 = exp(%x)
//   out %3 "2"                      out %3 "2"
#pragma once

#include <span>
#include <string>

#include "dlc/graph/graph.h"

namespace dlc::detail {

// Gives the results of a node these names, which no other value has. One at a time they might meet the names that
// add_node made up for the others.
void rename_results(Graph& g, NodeId n, std::span<const std::string> names);

// The names of a node's results.
std::vector<std::string> result_names(const Graph& g, NodeId n);

// The graph with new names for results of nodes that are called as an output is which is another value. Inputs keep
// their names: they are the model's.
Graph with_names_apart(Graph g);

}  // namespace dlc::detail
