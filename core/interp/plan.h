// From a statement to a Program: which loops become lanes, and which code runs at which loop level.
#pragma once

#include <optional>
#include <vector>

#include "core/interp/program.h"

namespace dlc::interp {

// What a program computes: for loops: [tensor[indices] =] value.
struct Task {
  const StmtCode* source = nullptr;
  const std::vector<LoopCode>* loops = nullptr;
  const std::vector<LoopCode>* around = nullptr;  // seqs
  const Node* value = nullptr;
  int tensor = -1;  // -1: the caller binds the store (packing)
  const std::vector<Node>* indices = nullptr;
  int unit_loop = -1;  // packing: the loop whose points lie side by side
};

// nullopt when the statement is none the strips can run (extents that depend on loops, ranks above the limit): the tree
// walk does those.
std::optional<Program> plan(const Lowered& code, const Task& task);

// Slots a value depends on, without those its own reductions bind; sorted.
std::vector<int> free_slots(const Node& n);

}  // namespace dlc::interp
