// Nodes that only move elements: the kernel is one statement Y[loops] = X[index], whatever the op is called. A reshape,
// a transpose, a slice, an expand, a cast to the same type, a multiplication by one are all this.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

struct Copy {
  ValueId from = kNoValue;
  std::vector<std::string> loops;  // one for each dim of the result
  std::vector<Expr> index;         // where in `from` each element comes from, over the loops
  std::vector<Expr> result_shape, from_shape;
  Ranges ranges;  // of the graph's symbols and of the loops
};

// The number every element of a constant has, as a value of the kernel level; null when they differ.
Val repeated_value(const Tensor& t);

// The element of a constant at an index, as far as it is known.
Val known_element(const Tensor& t, const std::vector<Val>& index);

// What node n copies, or nullopt when it does anything else. A constant of one repeated value counts as that number.
std::optional<Copy> as_copy(const Graph& g, NodeId n);
// `second` after `first`: the elements of first.from in the places of second's result.
Copy compose(const Copy& first, const Copy& second);

bool is_identity(const Copy& c);
// Row-major order is kept, so that a reshape says the same.
bool is_reshape(const Copy& c);
// perm[d] is the dim of `from` that becomes dim d of the result.
std::optional<std::vector<int64_t>> as_transpose(const Copy& c);

}  // namespace dlc
