// The obviously right evaluation: every point of every loop, every value by recursion over its tree.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/interp/memory.h"

namespace dlc::interp {

class TreeWalk {
 public:
  explicit TreeWalk(RunState& run) : run_(run) {}

  // All points of an assign statement, the loop variables of the seqs around it being set. `around` is for messages.
  Result<> assign(const StmtCode& s, const std::vector<LoopCode>& around);
  // The one point that the slots of its loops say.
  Result<> point(const StmtCode& s, const std::vector<LoopCode>& around);

 private:
  Result<> loops(const StmtCode& s, size_t depth, const std::vector<LoopCode>& around);
  Scalar eval(const Node& n);
  Scalar read(const Node& n);
  Scalar unary(const Node& n);
  Scalar binary(const Node& n);
  Scalar call(const Node& n);
  Scalar reduce(const Node& n);
  Scalar condition(const Node& n);
  // nullptr when an index is undefined or out of bounds; why says which.
  std::byte* address(int tensor, const std::vector<Node>& indices, std::string* why);

  RunState& run_;
  std::string problem_;  // an undefined condition, found while evaluating a point
};

using AssignFn = std::function<Result<>(const StmtCode&, const std::vector<LoopCode>& around)>;

// Statements in order, seqs point by point; assign does the assignments.
Result<> run_statements(RunState& run, const std::vector<StmtCode>& body, const AssignFn& assign,
                        std::vector<LoopCode>& around);

}  // namespace dlc::interp
