// A graph made anew with some of its parts changed; what the outputs do not need is left behind.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dlc/passes/reduce.h"

namespace dlc {

struct Edits {
  std::vector<std::pair<ValueId, std::string>> outputs;  // and their names
  std::map<ValueId, ValueId> instead;                    // a value stands for another that is computed before it
  std::map<ValueId, Tensor> given;                       // values that become inputs, or leaves with other tensors
  std::set<ValueId> constants;                           // inputs that become constants
  std::set<std::pair<NodeId, std::string>> defaults;     // attributes that are left out
  std::map<std::string, Expr, std::less<>> symbols;      // replaced everywhere
  std::map<int64_t, int64_t> extents;                    // replaced in lists of integers (the shape of a reshape)
};

// Edits that change nothing.
Edits no_edits(const Graph& g);

// Fails where a record refuses the operands it would get.
Result<Sample> rebuild(const Sample& s, const Edits& edits);

}  // namespace dlc
