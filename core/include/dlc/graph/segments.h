// A graph cut where an op has no index expression: what lies between can become programs, the extern ops themselves run
// as their C++ references (core/graph/extern_ops.h), and control flow runs its bodies, which are cut in their turn.
//
//   %1 = conv(...)            segment 0: a program
//   %2 = top_k(%1)            segment 1: references
//   %3 = gather(..., %2)      segment 2: a program
//   %4 = if(%c, %3) then ...  segment 3: control flow, one node alone
//
// A size that an extern op finds out (the count of non_zero) is a symbol. Every segment that uses a symbol has an input
// whose shape gives it its value, if need be an input that is there for nothing else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/graph/graph.h"

namespace dlc {

struct Segment {
  enum class Kind : uint8_t { program, reference, control };  // extern ops only; one node with bodies
  Kind kind = Kind::program;
  // Inputs and outputs by the names of the values; outputs of the model also by theirs, which no other value has.
  Graph graph;
};

// In order of execution. A graph without extern ops is one segment.
Result<std::vector<Segment>> cut_at_externs(const Graph& g);

// The value whose shape first shows a symbol that no graph input has: the result of the extern op that finds it out.
std::map<std::string, ValueId, std::less<>> found_symbols(const Graph& g);
// order(), with every node behind those that find out the sizes it uses.
std::vector<NodeId> order_by_sizes(const Graph& g);
// The symbols in a node's attributes and in the types of its results.
std::vector<std::string> symbols_of(const Graph& g, NodeId n);

}  // namespace dlc
