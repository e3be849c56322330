// Reduction: from a graph that shows a fault to a small one that still shows it.
//
//   Sample small = reduce({graph, inputs}, [&](const Sample& s) { return !compiles(s.graph); });
//
// Every step makes a simpler sample of the same language (fewer outputs, a node's result given as an input, a node
// bypassed, an input that is a constant, an attribute at its default, smaller extents, rounder numbers; what a pass
// leaves) and keeps it when the fault is still there. The predicate decides what the fault is: a message, a difference,
// the exit code of a command. It must not crash itself.
#pragma once

#include <functional>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

// A graph and tensors for its inputs, in their order.
struct Sample {
  Graph graph;
  std::vector<Tensor> inputs;
};

using StillFails = std::function<bool(const Sample&)>;

struct ReduceOptions {
  int attempts = 2000;         // calls of the predicate
  std::function<bool()> stop;  // asked before each; once it says so, the result is what there is
  bool interpret = true;       // a value that becomes an input is what the interpreter makes of it; otherwise zeros
  // Further ways to another graph of the same inputs, kept when it has fewer nodes: passes. They may be what fails.
  std::vector<std::function<Result<Graph>(const Graph&)>> simplify;
};

// The smallest sample found. `start` itself is taken to fail.
Sample reduce(Sample start, const StillFails& still_fails, const ReduceOptions& options = {});

}  // namespace dlc
