// The ONNX frontend: a model file to a dlc graph.
//
// Opsets 7 to 27 of the default domain (older ones for ops that did not change), QDQ and QLinear forms, functions, If,
// Loop and Scan, sequences, external data confined to the model's folder, symbolic dims. Every unsupported node is
// reported at once, with its name. Each ONNX op is mapped to records in one table (import_*.cpp); what an op means is
// never stated here.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/graph/graph.h"
#include "frontends/onnx/values.h"

namespace dlc {

struct OnnxOptions {
  // Bindings of symbolic dims, by the model's names: a value ({4, 4}) or a range ({1, 512}).
  std::map<std::string, Interval, std::less<>> dims;
  // What an unbound symbolic dim may be.
  Interval default_range{1, int64_t{1} << 20};
  // Inputs the model will be run with, as far as they are known. Sequences have the length they have here. A tensor
  // that decides the structure of the graph (axes, the condition of an If, a trip count) becomes a constant, and is no
  // input of the graph then; the others stay inputs.
  std::map<std::string, OnnxValue, std::less<>> given;
  // Every given tensor becomes a constant.
  bool fold_given = false;
  // Every extent above 1 of an input becomes a symbol, equal extents the same one. A given tensor becomes a constant
  // only where there is no other way: it decides the rank of a value, or which nodes there are.
  bool symbolic_dims = false;
  // False: the graph gets no `if` and no `loop`, for what has no runtime that could run them. Every loop is written out
  // then, both branches of an If are computed where they give the same types, and the rest is refused.
  bool control_flow = true;
};

// A node of the model's own graph, and what became of it: the graph's nodes [first, end), or values that were there.
struct OnnxNode {
  std::string name, op;  // with its domain, unless that is ONNX's own: com.microsoft.Gelu
  NodeId first = 0, end = 0;
  std::vector<ValueId> results;
  std::vector<std::string> result_names;  // as the model calls them
};

// Reads and imports. The path's folder is where external data must lie. `nodes` receives the model's nodes in order.
Result<Graph> import_onnx(const std::string& path, const OnnxOptions& options = {},
                          std::vector<OnnxNode>* nodes = nullptr);
// The same from memory; external data is refused unless `folder` is given.
Result<Graph> import_onnx_bytes(std::span<const std::byte> bytes, const std::string& file_name,
                                const std::string& folder = {}, const OnnxOptions& options = {});

// An op that can be imported.
struct OnnxOp {
  std::string domain, name;  // domain: empty for ONNX's own
  int min_opset = 0, max_opset = 0;
  std::string record;  // that means the same, operand by operand; empty: what it becomes depends on the node
};
std::vector<OnnxOp> onnx_ops();  // by domain and name
// The ops of a model's own nodes, which need not be such that they can be imported; spelt as OnnxNode::op.
Result<std::vector<std::string>> read_onnx_ops(const std::string& path);

// The file's model with values between its nodes as outputs too: what another runtime makes of them can then be seen.
Result<std::vector<std::byte>> onnx_with_outputs(const std::string& path, const std::vector<std::string>& values);

// A TensorProto file, as in ONNX's test data (input_0.pb).
Result<Tensor> read_tensor_pb(const std::string& path);

}  // namespace dlc
