// Where every node runs: the rules of the description first, then the device is asked.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "dlc/map/partition.h"

namespace dlc::map {

// Nodes that stay together: a fusion group, or the part of one that the device takes.
struct Unit {
  std::vector<NodeId> nodes;
  bool on_device = false;
};

struct Placed {
  std::vector<Unit> units;           // in order of execution
  std::vector<NodePlacement> nodes;  // by node; those that are dead have no name
  std::vector<Diagnostic> problems;  // nodes that the device was meant for, and cannot do
};

Result<Placed> place(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
                     const ModelNodes& model = {});

}  // namespace dlc::map
