// The graph level: named tensor ops in SSA form over symbolic shapes.
//
//   dlc.graph 1
//   graph @resnet8 (N in 1..64) {
//     in  %x: f32[N,3,32,32]
//     %0: f32[N,16,32,32] = conv(%x, @conv1.weight, @conv1.bias) {pad_lo = [1, 1], pad_hi = [1, 1]}  loc "conv1"
//     %1: f32[N,16,32,32] = relu(%0)  loc "relu1"
//     out %1 "output"
//   }
//
// Every op is the name of a record (dlc/ops/record.h); operand order, attributes and result types are the record's.
// Constants are values with a tensor (`@name` in text, kept in a weight table beside it).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/interp/interp.h"
#include "dlc/ops/record.h"

namespace dlc {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an absent optional operand
inline constexpr NodeId kNoNode = -1;

struct Value {
  std::string name;  // unique in the graph
  TensorType type;
  NodeId producer = kNoNode;  // kNoNode: graph input or constant
  int result = 0;             // which result of the producer
  std::optional<Tensor> constant;
};

struct Node {
  std::string op;
  std::vector<ValueId> inputs;  // variadic operands are flattened at the end (a record has at most one, the last)
  std::vector<ValueId> outputs;
  Attrs attrs;
  std::vector<std::string> locations;  // the model's node names
  bool erased = false;
};

class Graph {
 public:
  std::string name = "main";
  Ranges symbols;  // ranges of symbolic dims
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> output_names;  // the model's names of the outputs

  ValueId add_input(std::string name, TensorType type);
  ValueId add_constant(std::string name, Tensor value);
  // Adds a node, infers its result types from the record and returns its first output (see node(id).outputs for all).
  Result<NodeId> add_node(std::string op, std::vector<ValueId> inputs, Attrs attrs, std::vector<std::string> locations,
                          const std::string& result_name = {});

  const Value& value(ValueId v) const { return values_[static_cast<size_t>(v)]; }
  Value& value(ValueId v) { return values_[static_cast<size_t>(v)]; }
  const Node& node(NodeId n) const { return nodes_[static_cast<size_t>(n)]; }
  Node& node(NodeId n) { return nodes_[static_cast<size_t>(n)]; }
  size_t value_count() const { return values_.size(); }
  size_t node_count() const { return nodes_.size(); }  // ids; includes erased nodes

  // Live nodes in topological order (stable: ties by id).
  std::vector<NodeId> order() const;
  std::vector<NodeId> users(ValueId v) const;
  void replace_uses(ValueId from, ValueId to);  // also in outputs
  void erase(NodeId n);                         // the node must have no used result
  std::string unique_name(std::string_view wish) const;

  // The node's operands grouped as its record declares them.
  Result<std::vector<Operand>> operands(NodeId n) const;
  // The record's kernel for this node.
  Result<Kernel> kernel(NodeId n) const;

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
};

std::string print(const Graph& g);  // constants by name; small integer constants (<= 16 elements) inline
// `weights` resolves `@name`; inline constants need none.
Result<Graph> parse_graph(std::string_view text, const std::string& file = {},
                          const std::function<std::optional<Tensor>(std::string_view)>& weights = {});
// SSA, topological order, arity and attribute names, result types equal to what the record infers.
Result<> verify(const Graph& g);

// Runs the graph through the interpreter. `observe` sees every node's results as they are made.
using Observer = std::function<void(NodeId, std::span<const Tensor>)>;
Result<std::vector<Tensor>> run_graph(const Graph& g, std::span<const Tensor> inputs, const InterpOptions& options = {},
                                      const Observer& observe = {});

}  // namespace dlc
