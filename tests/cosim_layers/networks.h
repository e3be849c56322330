// Graphs and whole networks on the RTL of a machine: integer interpreter == functional simulator == RTL.
#pragma once

#include <string>
#include <vector>

#include "plugins/asic/runtime/cosim.h"
#include "tests/unit/asic/support.h"

namespace dlc::asic {

// Compiles the graph, compares every write of every queue on a memory with jitter and backpressure, and the outputs
// with the interpreter's.
CosimReport cosim(const TestMachine& m, const Graph& g, const std::vector<Tensor>& inputs, uint64_t seed);
// The same for the part of a network that the device runs, with seeded inputs; its layers sum to the run.
void check_network(const TestMachine& m, const std::string& path);
// Predicted cycles of each layer beside those of the RTL on the memory that the description states.
void check_prediction(const TestMachine& m, const std::string& path);

}  // namespace dlc::asic
