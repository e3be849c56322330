// What a graph computes, and how far from it a right implementation may be: every node is evaluated in numbers with
// errors (bound_walk.h). Nothing is measured and nothing fitted; the bounds follow from the records and their types.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dlc/passes/reduce.h"
#include "tests/fuzz/bound_walk.h"

namespace dlc::fuzz {

class Oracle {
 public:
  explicit Oracle(const Graph& g) : g_(g) {}

  void set(ValueId v, const Tensor& t) { values_[v] = bound_tensor(t); }
  Result<> run(NodeId n);
  const BoundTensor& at(ValueId v) const { return values_.at(v); }

 private:
  const Graph& g_;
  std::map<ValueId, BoundTensor> values_;
};

// Whether an element is decided by what it is computed from rather than by rounding.
bool is_meaningful(DType t, const Number& x);

// Of every output. The graph must have constant shapes.
Result<std::vector<BoundTensor>> expectations(const Sample& s);

// The same graph, its symbols replaced by what the inputs say.
Result<Sample> with_constant_shapes(const Sample& s);

}  // namespace dlc::fuzz
