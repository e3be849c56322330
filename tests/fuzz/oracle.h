// What a graph computes, and how far from it a right implementation may be: every node is evaluated in numbers with
// errors (bound_walk.h). Nothing is measured and nothing fitted; the bounds follow from the records and their types.
// A symbolic dim stays a symbol with a value. Were it a constant, what is computed of it alone would be folded, and the
// bounds would say of code that computes it when it runs that there is nothing to round.
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

  // Symbols of its type are the extents of t.
  void set(ValueId v, const Tensor& t);
  Result<> run(NodeId n);
  const BoundTensor& at(ValueId v) const { return values_.at(v); }

 private:
  const Graph& g_;
  std::map<ValueId, BoundTensor> values_;
  Bindings symbols_;
};

// Whether an element, or each, is decided by what it is computed from rather than by rounding.
bool is_meaningful(DType t, const Number& x);
bool is_meaningful(const BoundTensor& t);

// Of every output.
Result<std::vector<BoundTensor>> expectations(const Sample& s);

// The same graph, its symbols replaced by what the inputs say.
Result<Sample> with_constant_shapes(const Sample& s);

}  // namespace dlc::fuzz
