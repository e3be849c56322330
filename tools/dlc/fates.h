// What became of the nodes of a model that no kernel is called after.
//
//   const Origins origins(graph, nodes);            // as it was read
//   ... passes ...
//   for (const Origins::Fate& f : origins.fates(graph, names)) ...   // "relu1", "Relu", "conv1", "is part of conv1"
//
// Nothing is known here of any pass: nodes carry the names of those that they were made from, and a node that left no
// name did something that its neighbours do without it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dlc/graph/graph.h"
#include "frontends/onnx/onnx.h"

namespace dlc::cli {

class Origins {
 public:
  struct Fate {
    std::string node, op;  // as the model calls them
    std::string into;      // the node whose kernel does its part; may be empty
    std::string why;
  };

  Origins() = default;
  // `nodes`: the model's; empty when the graph is the model.
  Origins(const Graph& g, std::vector<OnnxNode> nodes);

  std::vector<std::string> names() const;  // of the model's nodes, in order
  // In how many of the model's nodes there is one of this name: a function's is in each of its calls.
  int64_t times(const std::string& name) const;
  // Of every node of the model that is none of `called` (the names of kernels), in the model's order.
  std::vector<Fate> fates(const Graph& now, const std::set<std::string>& called) const;

 private:
  struct Origin {
    std::vector<std::string> names;
    std::vector<NodeId> from, to;
    bool used = false;   // by an output of the model, in the end
    bool known = false;  // its results follow from constants and sizes
  };
  // The nearest nodes in one direction that are left in `names`, by name.
  std::set<std::string> nearest(const OnnxNode& n, const std::set<std::string>& names, bool readers) const;

  std::vector<Origin> origins_;  // by node
  std::vector<OnnxNode> nodes_;
  std::vector<bool> constant_;  // per model node without nodes of the graph: its results are constants
};

}  // namespace dlc::cli
