// Reduction: from a graph that shows a fault to a small one that still shows it.
//
//   Sample small = reduce({graph, inputs}, [&](const Sample& s) { return !compiles(s.graph); });
//
// Every step makes a simpler sample of the same language (fewer outputs, a node's result given as an input, a node
// bypassed, an attribute at its default, smaller extents, rounder numbers) and keeps it when the fault is still there.
// The predicate decides what the fault is: a message, a difference, the exit code of a command. It must not crash
// itself.
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

// The smallest sample found within `attempts` calls of the predicate. `start` itself is taken to fail.
Sample reduce(Sample start, const StillFails& still_fails, int attempts = 2000);

}  // namespace dlc
