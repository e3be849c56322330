// The graph level: named tensor ops in SSA form over symbolic shapes.
//
//   dlc.graph 1
//   graph @resnet8 (N in 1..64) {
//     in    %x: f32[N,3,32,32]
//     const @conv1.weight: f32[16,3,3,3]
//     const @conv1.bias: f32[16] = 0
//     %0: f32[N,16,32,32] = conv(%x, @conv1.weight, @conv1.bias) {pad_hi = [1, 1], pad_lo = [1, 1]} loc "conv1"
//     %1: f32[N,16,32,32] = relu(%0) loc "relu1"
//     out   %1 "output"
//   }
//
// `state %past -> "present"` says that an output is the same input of the next run (dlc/graph/state.h).
//
// Every op is the name of a record (dlc/ops/record.h); operand order, attributes and result types are the record's.
// Constants are values with a tensor: small ones have their elements in the text (one number fills the whole tensor),
// the others are looked up by name in a weight table kept beside the text. The grammar is in docs/graph-text.md.
//
// Invariants (checked by verify): every value has one producer, at most, and a unique name; result types are those the
// record infers; every symbol is in `symbols`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  std::string name;  // unique in the graph; change it with Graph::rename
  TensorType type;
  NodeId producer = kNoNode;  // kNoNode: graph input or constant
  int result = 0;             // which result of the producer
  std::optional<Tensor> constant;
};

class Graph;

// A value that is kept between runs: an input's name, and the output that is its value in the next run.
struct StatePair {
  std::string input, output;
  friend bool operator==(const StatePair&, const StatePair&) = default;
};

struct Node {
  std::string op;
  std::vector<ValueId> inputs;  // variadic operands are flattened at the end (a record has at most one, the last)
  std::vector<ValueId> outputs;
  Attrs attrs;
  std::vector<std::string> locations;  // the model's node names
  // Of control flow (dlc/graph/control.h): the closed graphs that it runs, shared by copies of the node.
  std::vector<std::shared_ptr<const Graph>> bodies = {};
  bool erased = false;
};

namespace detail {
class KernelCache;
}

class Graph {
 public:
  Graph();

  std::string name = "main";
  Ranges symbols;  // ranges of symbolic dims
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> output_names;  // the model's names of the outputs
  std::vector<StatePair> states;
  // What the nodes' ops mean: the built-in records when null. A machine's recipes extend them (commit_numerics).
  std::shared_ptr<const RecordSet> records;
  const RecordSet& record_set() const { return records ? *records : RecordSet::builtin(); }

  ValueId add_input(std::string name, TensorType type);
  ValueId add_constant(std::string name, Tensor value);
  // Adds a node and its outputs, whose types the record infers.
  Result<NodeId> add_node(std::string op, std::vector<ValueId> inputs, Attrs attrs, std::vector<std::string> locations,
                          const std::string& result_name = {});
  // Adds a node of control flow. Its bodies do not say what all its results are, so their types are given.
  Result<NodeId> add_control(Node node, std::vector<TensorType> results, const std::string& result_name = {});
  // Adds a node like one of `from`, which may be this graph, with other operands.
  Result<NodeId> add_copy(const Graph& from, NodeId n, std::vector<ValueId> inputs);

  const Value& value(ValueId v) const { return values_[static_cast<size_t>(v)]; }
  Value& value(ValueId v) { return values_[static_cast<size_t>(v)]; }
  const Node& node(NodeId n) const { return nodes_[static_cast<size_t>(n)]; }
  Node& node(NodeId n) { return nodes_[static_cast<size_t>(n)]; }
  size_t value_count() const { return values_.size(); }
  size_t node_count() const { return nodes_.size(); }  // ids; includes erased nodes

  // Live nodes in topological order (stable: ties by id).
  std::vector<NodeId> order() const;
  std::vector<NodeId> users(ValueId v) const;  // in id order, each once
  // users() of every value at once, indexed by value: for passes that ask often.
  std::vector<std::vector<NodeId>> all_users() const;
  void replace_uses(ValueId from, ValueId to);  // also in outputs
  void erase(NodeId n);                         // the node must have no used result
  void release(ValueId constant);               // drops the tensor and the name of an unused constant
  std::string unique_name(std::string_view wish) const;
  void rename(ValueId v, std::string_view wish);  // to unique_name(wish)
  ValueId find(std::string_view name) const;      // kNoValue when absent

  // Whether no kernel states what the node does: its record is `extern`, or it has bodies.
  bool is_extern(NodeId n) const;
  // The node's operands grouped as its record declares them.
  Result<std::vector<Operand>> operands(NodeId n) const;
  // The record's kernel for this node; of an extern one the signature.
  Result<Kernel> kernel(NodeId n) const;
  // The result types the record infers for this node now (its inputs or attributes may have changed since it was made).
  // Of control flow the given ones, if they fit its bodies.
  Result<std::vector<TensorType>> infer(NodeId n) const;

 private:
  Result<std::shared_ptr<const Kernel>> shared_kernel(const Node& n) const;
  NodeId insert(Node n, std::vector<TensorType> types, const std::string& result_name);

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::map<std::string, ValueId, std::less<>> names_;
  std::shared_ptr<detail::KernelCache> cache_;  // instantiated records, shared by copies of a graph
};

TensorType type_of(const Tensor& t);
// The operands of a node of this record with these inputs, or why there cannot be any.
Result<std::vector<Operand>> group_operands(const Record& record, std::span<const std::optional<TensorType>> inputs,
                                            const Loc& where);

std::string print(const Graph& g);
// Whether print() writes this constant's elements into the text; the weight table needs the others.
bool is_inline_constant(const Tensor& t);
// `weights` resolves the constants that are not inline.
Result<Graph> parse_graph(std::string_view text, const std::string& file = {},
                          const std::function<std::optional<Tensor>(std::string_view)>& weights = {});
// SSA, topological order, arity and attribute names, result types equal to what the record infers.
Result<> verify(const Graph& g);

// Runs the graph through the interpreter. Symbols are bound from the inputs' shapes (and, where an op finds out a size
// itself, from its results); a shape that contradicts them is an error. `observe` sees every node's results as they
// are made. With options.floats_as_double every float tensor of the graph is f64, the results too.
using Observer = std::function<void(NodeId, std::span<const Tensor>)>;
Result<std::vector<Tensor>> run_graph(const Graph& g, std::span<const Tensor> inputs, const InterpOptions& options = {},
                                      const Observer& observe = {});

// The same for many runs: records are instantiated and kernels prepared once for each set of shapes. The graph must
// outlive the runner and stay as it is.
class GraphRunner {
 public:
  explicit GraphRunner(const Graph& g, InterpOptions options = {});
  ~GraphRunner();
  GraphRunner(GraphRunner&&) noexcept;
  GraphRunner& operator=(GraphRunner&&) noexcept;
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const Observer& observe = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dlc
