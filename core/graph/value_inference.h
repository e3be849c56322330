// Value inference: the elements of small integer tensors as Exprs over the graph's symbols, before anything runs.
//
//   %1: s64[3] = shape(%x)              // N, 3, H
//   %2: s64[]  = gather(%1, @2)         // H
//   %3: s64[2] = concat(%2, @minus_one) // H, -1: what a Reshape needs to know
//
// No op is named here: the record's kernel is evaluated with Exprs for numbers. An element that depends on data stays
// unknown; the others are still found.
//
//   ValueInference values(g);
//   if (auto dims = values.known(v)) ...       // every element is known
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

class ValueInference {
 public:
  static constexpr int64_t kMaxElements = 1024;  // of a tensor that may be known

  explicit ValueInference(const Graph& g) : g_(g) {}

  // Row-major elements; nullopt where unknown. Empty when nothing can be known of the tensor (floats, large tensors,
  // unknown shapes). What was found is kept: the graph may grow between calls, its known nodes must not change.
  const std::vector<std::optional<Expr>>& elements(ValueId v);
  // What is known of a value that this graph does not compute: a row-major list with gaps.
  void assume(ValueId v, std::vector<std::optional<Expr>> elements) { found_[v] = std::move(elements); }
  // The elements, if every one is known.
  std::optional<std::vector<Expr>> known(ValueId v);

 private:
  void infer_node(NodeId n);

  const Graph& g_;
  std::map<ValueId, std::vector<std::optional<Expr>>> found_;
};

// The elements of a kernel's outputs (as above) when those of its inputs are `inputs` (by tensor index; an empty entry
// is an unknown tensor). Gives up with an empty entry where an output is large or has no constant shape.
std::vector<std::vector<std::optional<Expr>>> evaluate_on_exprs(
    const Kernel& k, const std::map<int, std::vector<std::optional<Expr>>>& inputs, const Ranges& ranges);

}  // namespace dlc
