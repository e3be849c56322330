// Placement: which nodes of a graph an accelerator runs and which stay on the host, and the graph cut along that line.
//
//   DLC_TRY(Partitioning p, partition(graph, hw, "asic"));
//   for (const Partition& part : p.partitions) ...       // in execution order; tensors between them by name
//
// A node goes to the device when an instruction's text computes its fusion group and the description's `ops:` does not
// refuse it. Partitions are runs of one order of execution, so they are convex; the order is chosen to make them few.
#pragma once

#include <string>
#include <vector>

#include "dlc/graph/graph.h"
#include "dlc/hw/description.h"

namespace dlc {

struct Partition {
  std::string device;  // the given name, or "host"
  Graph graph;
};

struct NodePlacement {
  NodeId node = kNoNode;
  std::string name, op;  // the model's node
  std::string device;
  std::string rule;  // "mac.row, vec", "ops", "no instruction"
  std::string why;
  int yaml_line = 0;  // of a rule in `ops`
};

struct Partitioning {
  std::vector<Partition> partitions;
  std::vector<NodePlacement> nodes;
};

// The same graph with every symbolic dim at the smallest value it may have: an accelerator's program has fixed shapes.
Result<Graph> with_smallest_shapes(const Graph& g);

Result<Partitioning> partition(const Graph& g, const HwDescription& hw, const std::string& device);

}  // namespace dlc
