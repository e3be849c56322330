// The quantised graphs of a plan.
#pragma once

#include <map>
#include <vector>

#include "core/quantize/plan.h"

namespace dlc::quantization {

struct Parameters {
  std::map<ValueId, Step> steps;                        // by Plan::shares
  std::map<NodeId, std::vector<double>> bias_shift;     // by a layer's root, added to its bias
  std::map<NodeId, std::vector<double>> weight_scales;  // by a layer's root, a scale for each output channel
  const Step& of(const Plan& plan, ValueId v) const { return steps.at(plan.shares[static_cast<size_t>(v)]); }
};

struct Rewritten {
  Graph graph;
  std::vector<ValueId> sums;     // of each layer: the result of its root
  std::vector<ValueId> results;  // of each layer, after quantisation
  std::vector<ValueId> inputs;   // of layers_apart(): the values of the float graph that its inputs are
};

// The scales of a layer's weights, chosen from these alone.
std::vector<double> scales_of(const Graph& g, const Layer& l, RangeMethod method);

// The whole graph.
Result<Rewritten> quantised(const Graph& g, const Plan& plan, const Parameters& p);
// Every layer alone: its operands are inputs.
Result<Rewritten> layers_apart(const Graph& g, const Plan& plan, const Parameters& p);

}  // namespace dlc::quantization
