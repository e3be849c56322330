// Placement: which nodes of a graph a machine runs and which stay on the host, and the graph cut along that line.
//
//   DLC_TRY(Partitioning p, partition(graph, hw, "asic", [&](const Program& q) { return backend.match({q, ...}); }));
//   if (!p.problems.empty()) return std::unexpected(Error(p.problems));
//   for (const Partition& part : p.partitions)           // in execution order; tensors between them by name
//     DLC_TRY(Program program, lower_partition(part));   // calls that the device has taken
//
// A node goes to the device when the device takes its fusion group, or a beginning of it, and the description's `ops:`
// does not refuse it. Partitions are runs of one order of execution, so they are convex; the order is chosen to make
// them few. docs/mapping.md says what is a problem and what just runs on the host.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dlc/graph/graph.h"
#include "dlc/hw/description.h"
#include "dlc/program/program.h"
#include "dlc/program/refusal.h"

namespace dlc {

// What is known of the model's nodes by their names, which the graph's nodes have as locations.
struct ModelNodes {
  std::map<std::string, std::string> in_float;                    // why a node of a quantised model stayed in float
  std::map<std::string, std::set<std::string>, std::less<>> ops;  // its ops before they became the machine's
};

// Which calls of a program the device does not take; each call is a question of its own (Backend::match).
using AskDevice = std::function<Result<std::vector<Refusal>>(const Program&)>;

struct Partition {
  std::string device;  // the given name, or "host"
  Graph graph;
  std::vector<std::vector<NodeId>> groups;  // of the device: the nodes of each call that it took, in execution order
};

struct NodePlacement {
  NodeId node = kNoNode;
  std::string name, op;  // the model's node
  std::string device;
  std::string rule;   // of the host: "ops", "view", or a Refusal's; of the device: "view" or empty
  std::string why;    // of the host
  std::string next;   // what would change it
  int yaml_line = 0;  // of the rule
};

struct Partitioning {
  std::vector<Partition> partitions;
  std::vector<NodePlacement> nodes;
  // What must not pass in silence: an error where the model asks for more than the machine can give, a warning where
  // its description wants that nothing of the model runs there. The partitions are a right cut of the graph even so.
  std::vector<Diagnostic> problems;
};

// The same graph with every symbolic dim at the smallest value it may have: an accelerator's program has fixed shapes.
Result<Graph> with_smallest_shapes(const Graph& g);

// Every op that the description's `ops:` names is one of the records: one of no such name would rule nothing.
Result<> check_rules(const HwDescription& hw, const RecordSet& records);

Result<Partitioning> partition(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
                               const ModelNodes& model = {});

// The partition's program. The device's calls are the groups that it was asked about: fused afresh, nodes that it takes
// one after the other could become one call that it does not.
Result<Program> lower_partition(const Partition& part);

}  // namespace dlc
