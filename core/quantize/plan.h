// What becomes 8 bits: layers, and the values around them.
#pragma once

#include <vector>

#include "core/quantize/ranges.h"

namespace dlc::quantization {

// A node that is computed in integers, with the activations that become bounds of its result.
struct Layer {
  NodeId root = kNoNode;
  std::vector<NodeId> tail;     // relu and clip behind it, whose operands nobody else reads
  std::vector<ValueId> inputs;  // quantised activations
  ValueId result = kNoValue;    // of the last node: quantised too
  int64_t weight_axis = -1;     // of the output channels in its second operand, a constant; -1: it has no weight
  int64_t channel_axis = 1;     // of the output channels in its result
};

struct Plan {
  std::vector<Layer> layers;  // in order of execution
  // Of every value: the first of those that share its scale, which are joined by nodes that only move elements, and
  // where a concat puts them; kNoValue for one that stays in float.
  std::vector<ValueId> shares;
  bool quantised(ValueId v) const { return v != kNoValue && shares[static_cast<size_t>(v)] != kNoValue; }
  std::vector<std::pair<Layer, std::string>> in_float;  // what could be a layer, and why it is none
};

// The name that the model has for a node.
std::string name_of(const Graph& g, NodeId n);

// `keep`: names of nodes that stay in float, and why.
Result<Plan> make_plan(const Graph& g, const std::map<std::string, std::string>& keep);

// The operands of a concat whose ranges are like that of its result share its scale: it then only moves elements.
void reconcile(const Graph& g, const std::map<ValueId, Histogram>& seen, Plan& plan);

}  // namespace dlc::quantization
