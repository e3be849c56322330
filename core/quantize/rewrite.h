// The quantised graphs of a plan.
#pragma once

#include <map>
#include <vector>

#include "core/quantize/plan.h"

namespace dlc::quantization {

struct Parameters {
  std::map<ValueId, Step> steps;                     // by Plan::shares
  std::map<NodeId, std::vector<double>> bias_shift;  // by a layer's root, added to its bias
  RangeMethod weights = RangeMethod::mse;
  const Step& of(const Plan& plan, ValueId v) const { return steps.at(plan.shares[static_cast<size_t>(v)]); }
};

struct Rewritten {
  Graph graph;
  std::vector<ValueId> sums;     // of each layer: the result of its root
  std::vector<ValueId> results;  // of each layer, after quantisation
  std::vector<ValueId> inputs;   // of layers_apart(): the values of the float graph that its inputs are
};

// The whole graph.
Result<Rewritten> quantised(const Graph& g, const Plan& plan, const Parameters& p);
// Every layer alone: its operands are inputs.
Result<Rewritten> layers_apart(const Graph& g, const Plan& plan, const Parameters& p);

}  // namespace dlc::quantization
