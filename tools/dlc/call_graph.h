// A compiled model as a graph of the calls of its partitions, for people to look at.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dlc/plugin/compiled.h"

namespace dlc::cli {

struct CallNode {
  std::string name;    // the model's node
  std::string kernel;  // "int_conv"; of an input or output of the model its type
  std::string device;  // as the partition's; "input", "output"
  int partition = -1;
  int call = -1;  // of the partition's program
};

struct CallGraph {
  std::vector<CallNode> nodes;             // in the order of execution
  std::vector<std::pair<int, int>> edges;  // from, to
};

Result<CallGraph> call_graph(const CompiledModel& model);

}  // namespace dlc::cli
