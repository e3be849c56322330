// A random graph as a body of control flow, which must compute what the graph does.
#pragma once

#include "dlc/graph/graph.h"

namespace dlc::fuzz {

// The graph in both branches of an `if`, whose condition is the last input.
Result<Graph> as_branch(const Graph& g);
// The graph in both branches of an `if` that takes the first.
Result<Graph> as_known_branch(const Graph& g);
// The graph as what a loop of one trip stacks.
Result<Graph> as_loop(const Graph& g);

}  // namespace dlc::fuzz
