// What a handler of export_ops.cpp sees of its node, and what it may add.
#pragma once

#include <onnx/onnx.pb.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/graph/graph.h"
#include "dlc/ops/attributes.h"

namespace dlc::onnx_frontend {

inline constexpr int kWrittenOpset = 17;

class Exporter {
 public:
  Exporter(const Graph& g, onnx::ModelProto& model, bool with_values = true)
      : g_(g), model_(model), with_values_(with_values) {}
  Result<> run();

  const Graph& graph() const { return g_; }
  // The name of a value in the model; "" for an absent operand.
  const std::string& name(ValueId v);
  // A constant of its own; the name it got.
  std::string constant(const Tensor& t, const std::string& wish);
  std::string integers(const std::vector<int64_t>& values, const std::string& wish);
  std::string unique(const std::string& wish);
  onnx::NodeProto& add_node(const std::string& op, const std::vector<std::string>& inputs, const Node& from);

 private:
  void name_all();
  Result<> add_type(onnx::ValueInfoProto& to, const std::string& name, const TensorType& type) const;

  const Graph& g_;
  onnx::ModelProto& model_;
  bool with_values_;  // of constants: otherwise their names and types alone
  std::map<ValueId, std::string> names_;
  std::set<std::string> taken_, written_, node_names_;
};

// One node on its way out. Handlers return the ONNX node's failure as the reason alone.
class NodeWriter {
 public:
  NodeWriter(Exporter& e, const Node& n) : e_(e), n_(n), attrs_(*e.graph().record_set().find(n.op), n.attrs) {}

  const Node& node() const { return n_; }
  Exporter& exporter() { return e_; }
  const Attributes& attrs() const { return attrs_; }
  const std::vector<Expr>& shape(size_t input) const { return e_.graph().value(n_.inputs[input]).type.shape; }
  const std::vector<Expr>& result_shape() const { return e_.graph().value(n_.outputs[0]).type.shape; }
  bool has(size_t i) const { return i < n_.inputs.size() && n_.inputs[i] != kNoValue; }
  std::string in(size_t i) { return has(i) ? e_.name(n_.inputs[i]) : std::string(); }

  // The node, with all operands or these.
  onnx::NodeProto& emit(const std::string& op);
  onnx::NodeProto& emit(const std::string& op, const std::vector<std::string>& inputs);

  // Attributes of the record as ONNX's.
  Result<int64_t> integer(std::string_view name) const;
  Result<std::vector<int64_t>> integers(std::string_view name, size_t size) const;
  static void set(onnx::NodeProto& to, const std::string& name, int64_t v);
  static void set(onnx::NodeProto& to, const std::string& name, double v);
  static void set(onnx::NodeProto& to, const std::string& name, const std::string& v);
  static void set(onnx::NodeProto& to, const std::string& name, const std::vector<int64_t>& v);

 private:
  Exporter& e_;
  const Node& n_;
  Attributes attrs_;
};

using WriteOp = Result<> (*)(NodeWriter&);
// The handler of a record; null where there is none.
WriteOp writer_of(std::string_view record);
Result<int> onnx_type(DType t);

}  // namespace dlc::onnx_frontend
