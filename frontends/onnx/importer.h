// The importer's working state, and what an op's handler sees of its node.
//
// To support one more ONNX op: add a line to a table in one of the import_*.cpp files. When attributes or inputs differ
// from the record's, write a handler beside it; it reads the node through NodeView and emits records.
#pragma once

#include <onnx/onnx.pb.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/graph/value_inference.h"
#include "dlc/graph/graph.h"
#include "dlc/io/file.h"
#include "frontends/onnx/onnx.h"

namespace dlc::onnx_frontend {

class Importer;

inline constexpr int kFirstOpset = 7, kMaxOpset = 27;
inline bool is_default_domain(std::string_view d) { return d.empty() || d == "ai.onnx"; }
// "Gelu", "com.microsoft.Gelu"
inline std::string spelt(std::string_view domain, std::string_view op) {
  return is_default_domain(domain) ? std::string(op) : std::string(domain).append(".").append(op);
}

// A condition that only a run knows, and what is imported holds for one outcome of it.
struct Assumption {
  ValueId condition = kNoValue;
  bool holds = true;
  std::string node;  // the model's
};

// A body of control flow: a closed graph, and the values around it that its last inputs stand for.
struct Body {
  Graph graph;
  std::vector<ValueId> results;                       // of the graph, or no tensors
  std::vector<std::pair<ValueId, ValueId>> captured;  // outside, inside
};

// One ONNX node during import. Getters check the attribute's type; a wrong one is an error that names it.
class NodeView {
 public:
  NodeView(Importer& importer, const onnx::NodeProto& proto, std::vector<ValueId> inputs, int opset);

  const std::string& op() const { return proto_.op_type(); }
  const std::string& name() const { return name_; }
  int opset() const { return opset_; }
  Loc loc() const;

  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != kNoValue; }
  ValueId in(size_t i) const { return i < inputs_.size() ? inputs_[i] : kNoValue; }  // kNoValue when absent
  const std::vector<ValueId>& inputs() const { return inputs_; }
  int output_count() const { return proto_.output_size(); }
  bool wants(int output) const { return output < proto_.output_size() && !proto_.output(output).empty(); }
  // Of a tensor that is there. By value: the graph moves its values when it grows.
  TensorType type(size_t input) const;

  // Sequences and optional values exist only while a model is imported: a list of values, or nothing. The ops that take
  // them say so in their table (OpEntry::inputs).
  bool is_sequence(size_t input) const;
  bool is_nothing(size_t input) const;  // an absent optional value
  const std::vector<ValueId>& sequence(size_t input) const;
  ValueId make_sequence(std::vector<ValueId> elements) const;
  ValueId make_nothing() const;
  int64_t rank(size_t input) const { return static_cast<int64_t>(type(input).shape.size()); }

  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  Result<int64_t> attr_int(std::string_view name, std::optional<int64_t> fallback) const;
  Result<double> attr_float(std::string_view name, std::optional<double> fallback) const;
  Result<std::string> attr_string(std::string_view name, std::optional<std::string> fallback) const;
  Result<std::vector<int64_t>> attr_ints(std::string_view name, std::optional<std::vector<int64_t>> fallback) const;
  Result<std::vector<double>> attr_floats(std::string_view name, std::optional<std::vector<double>> fallback) const;
  Result<std::vector<std::string>> attr_strings(std::string_view name,
                                                std::optional<std::vector<std::string>> fallback) const;
  Result<Tensor> attr_tensor(std::string_view name) const;
  Result<const onnx::GraphProto*> attr_graph(std::string_view name) const;

  bool has_control_flow() const;  // OnnxOptions::control_flow
  // The same under an assumption: every run checks it before it computes anything of the body.
  Result<std::vector<ValueId>> inlined_under(const Assumption& assumption, const onnx::GraphProto& body) const;
  // Control flow (dlc/graph/control.h): a body with what `make` makes in it; until it returns, graph() is the body's.
  Result<Body> body(std::string name, const std::function<Result<std::vector<ValueId>>()>& make) const;
  // A value of the graph around the body that is being made.
  ValueId captured(ValueId v) const;
  // Adds `op` with these bodies. `operands`: those that come before what the bodies capture; `results`: their types.
  Result<std::vector<ValueId>> control(std::string op, std::vector<ValueId> operands, std::vector<Body> bodies,
                                       std::vector<TensorType> results, Attrs attrs = {}) const;
  // Imports the nodes of a subgraph with these values for its inputs; returns its outputs.
  Result<std::vector<ValueId>> inlined(const onnx::GraphProto& body, std::vector<ValueId> arguments) const;

  // The elements of an integer input that must be known at import: a constant, or symbolic values by value inference.
  Result<std::vector<Expr>> known_ints(size_t input, std::string_view what) const;
  Result<std::vector<Expr>> known_ints_of(ValueId v, std::string_view what) const;
  // The same where the graph's structure does not depend on them: what is not known becomes a symbol that the run gives
  // its value. Sizes are not negative, bounds may be.
  Result<std::vector<Expr>> sizes(size_t input, std::string_view what) const;
  Result<std::vector<Expr>> bounds(size_t input, std::string_view what, Interval range = kAnyBound) const;
  Result<std::vector<Expr>> bounds_of(ValueId v, std::string_view what, Interval range = kAnyBound) const;
  static constexpr Interval kAnyBound{-(int64_t{1} << 40), int64_t{1} << 40};
  bool is_known(size_t input) const;  // every element, as known_ints would give it
  // The elements if they are known whatever the inputs of the model are; those may be given, but decide nothing here.
  std::optional<std::vector<Expr>> settled_ints(ValueId v) const;
  bool choose() const;  // of two ways to import the node, of which the rest of the model may accept only one
  // Whether known_ints_of() would make given inputs constants to know it.
  bool can_settle(ValueId v) const;
  const std::vector<ValueId>* elements_of(ValueId v) const;  // null: no sequence
  std::string_view other_kind(ValueId v) const;              // "" for a tensor
  Result<Tensor> constant(size_t input, std::string_view what) const;

  // Adds a node and returns its first result / all results.
  Result<ValueId> emit(std::string op, std::vector<ValueId> inputs, Attrs attrs = {}) const;
  Result<std::vector<ValueId>> emit_all(std::string op, std::vector<ValueId> inputs, Attrs attrs = {}) const;
  ValueId add_constant(Tensor t) const;
  // The value under another shape; a constant becomes another constant, without a node.
  Result<ValueId> reshaped(ValueId v, std::vector<int64_t> shape) const;
  Result<ValueId> scalar(DType dtype, double value) const;
  Graph& graph() const;
  // A symbol of its own for a number from 0 to `most` that only a run knows.
  Expr fresh_symbol(const std::string& wish, int64_t most) const;
  Result<> check_tensors(std::span<const ValueId> values) const;  // none is absent or a sequence
  // A node of the model stands for one or more steps of the import, whose number is limited.
  Result<> spend(int64_t steps) const;
  // The first attribute that was given but not asked for, or empty.
  std::string unread_attribute(std::string_view idle) const;
  std::string asked_like(std::string_view attribute) const;  // what was asked for under nearly this name, or empty

  std::unexpected<Error> error(std::string message, std::string hint = {}) const;

 private:
  const onnx::AttributeProto* find(std::string_view name) const;
  Importer& importer_;
  const onnx::NodeProto& proto_;
  std::vector<ValueId> inputs_;
  int opset_;
  std::string name_;
  mutable std::set<std::string, std::less<>> read_;  // attributes that were asked for
};

using Handler = Result<std::vector<ValueId>> (*)(const NodeView&);

struct OpEntry {
  std::string_view domain = {};  // "" is ai.onnx
  std::string_view op;
  Handler handler = nullptr;
  // What each input is, in order: `t` a tensor, `s` a sequence, `v` any value; a capital may be left out. `*` repeats
  // the last. "tTT" is Clip: a tensor, and perhaps two bounds; "t*" is Concat. What does not fit never reaches the
  // handler.
  std::string_view inputs = "T*";
  // Attributes that may be given though they decide nothing here, by their documentation: words. Any other that the
  // handler does not ask for is refused.
  std::string_view idle = {};
  int max_opset = 0;             // 0: any
  std::string_view record = {};  // set instead of handler when operands and attributes are the record's own
};

// Whether an op of the default domain means today what it meant before opset 7.
bool unchanged_since_first(std::string_view op);

// Every table of the import_*.cpp files.
std::vector<std::span<const OpEntry>> op_tables();

// A value of the model that is no tensor: a sequence of values, or an optional one that is absent.
struct Bundle {
  bool present = true;
  std::vector<ValueId> elements;
};

class Importer {
 public:
  Importer(Graph& graph, std::string file, std::string folder, const OnnxOptions& options);
  Result<> import(const onnx::ModelProto& model);

  // Of the model's own graph, in order.
  std::vector<OnnxNode>& nodes() { return nodes_; }

  // The file that the ModelProto was parsed from, without its raw data (raw_data.h).
  void set_model(MappedFile model) { model_ = std::move(model); }
  const MappedFile& model() const { return model_; }

  // The one that is being made: the model's, or that of a body.
  Graph& graph() { return *levels_.back().graph; }
  const Graph& graph() const { return *levels_.back().graph; }
  ValueInference& values() { return *levels_.back().known; }  // of integer tensors: shapes, slice bounds
  const std::string& file() const { return file_; }
  const std::string& folder() const { return folder_; }

  ValueId add_bundle(Bundle b);
  const Bundle* bundle(ValueId v) const;  // null: v is a tensor, or absent
  // "" for a tensor, otherwise what `v` is.
  std::string_view other_kind(ValueId v) const;
  Result<> spend(int64_t steps, const Loc& where);
  Result<> check_nodes(const Loc& where) const;  // not too many
  // A name that nothing in the graph has, found without trying every number again.
  std::string unique_name(const std::string& wish);
  Expr fresh_symbol(const std::string& wish, int64_t most);
  // A body of nodes that sees the values around it.
  Result<std::vector<ValueId>> inlined(const onnx::GraphProto& body, std::vector<ValueId> arguments, const Loc& where,
                                       std::optional<Assumption> assumption = {});
  // A closed graph of its own, what `make` makes in it; its outputs are the results that are tensors.
  Result<Body> body(std::string name, const std::function<Result<std::vector<ValueId>>()>& make, const Loc& where);
  // A value of the graph of level `from`, in the one that is being made: captured where it is outside.
  ValueId captured(ValueId v, size_t from);
  size_t level() const { return levels_.size() - 1; }
  // Gives bodies the same inputs from outside, those that either has.
  static std::vector<ValueId> align(std::span<Body> bodies, const Graph& around);
  // The next of the choices that no rule decides: false at first. Where the import fails because of them, it is made
  // again with others (import_model).
  bool choose();
  void set_choices(std::vector<bool> choices) { choices_ = std::move(choices); }
  const std::vector<bool>& choices() const { return choices_; }
  // Whether the inputs that `v` is computed from are all given.
  bool can_fix(ValueId v) const;
  // Whether a given input becomes a constant only if there is no other way.
  bool keeps_inputs() const { return options_.symbolic_dims; }
  bool has_control_flow() const { return options_.control_flow; }
  // The tensor that `v` is for the inputs the model will be given; those it depends on become constants.
  Result<Tensor> fixed_value(ValueId v, const Loc& where);
  // Whether no input decides it, so that fixed_value() changes nothing; it need not be able to compute it.
  bool is_fixed(ValueId v) const { return sources_of(v).inputs.empty(); }

 private:
  // A graph that is being made, the model's or that of a body inside the one before.
  struct Level {
    explicit Level(Graph& g) : graph(&g), known(g) {}
    Graph* graph;
    std::optional<ValueInference> known;                  // made again when an input became a constant
    std::unordered_map<ValueId, Tensor> evaluated;        // small values that fixed_value has computed on its way
    std::map<ValueId, ValueId> captured;                  // values of the graph around: here
    std::vector<std::pair<ValueId, ValueId>> operands;    // the same for those that are inputs here, in their order
    std::map<std::string, ValueId, std::less<>> showing;  // values whose shape shows a symbol
  };
  std::unordered_map<ValueId, Tensor>& evaluated() { return levels_.back().evaluated; }
  ValueId capture(ValueId v, size_t level);
  ValueId showing(const std::string& symbol, size_t level);
  Result<> close(Body& b, const Loc& where);

  struct Sources {
    std::vector<ValueId> inputs;  // that a value is computed from
    std::set<NodeId> nodes;       // that compute it
  };
  Sources sources_of(ValueId v) const;
  const Tensor* given_tensor(ValueId input) const;
  Result<> fix_input(ValueId input, const Loc& where);

  // What the model declares of a value, and in which of its lists.
  struct Declaration {
    const onnx::TypeProto* type;
    std::string_view kind;
  };
  // Names of values; a function's body does not see those around it.
  struct Scope {
    std::map<std::string, ValueId> values;
    bool sealed = false;
    size_t level = 0;  // of the graph that its values are in
    std::optional<Assumption> assumption;
    std::map<ValueId, ValueId> checked;  // values from around: what they are under the assumption
    std::multimap<std::string, Declaration> declared;
    std::map<std::string, Expr> dims;  // what the model's names of dims stand for
  };

  // A value of the graph that is being made, checked before it is used in this scope.
  Result<ValueId> assumed(ValueId v, Scope& scope);

  struct Function {
    const onnx::FunctionProto* proto;
    std::vector<onnx::AttributeProto> defaults;  // of attributes that a call need not give
  };

  Result<> import_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& sets);
  Result<> import_functions(const onnx::ModelProto& model);
  Result<> import_initializers(const onnx::GraphProto& g);
  Result<> import_inputs(const onnx::GraphProto& g);
  Result<> import_input(const onnx::ValueInfoProto& v);
  Result<ValueId> import_elements(const onnx::ValueInfoProto& v, const onnx::TypeProto& element);
  // What is wrong is told at once, not one run at a time: a node or an input that cannot be imported leaves its values
  // missing, and what needs those is passed over.
  void check_supported(const onnx::NodeProto& node, Error& all) const;  // its op, and those of its bodies
  void refuse(Error why, const std::vector<std::string>& missing);
  bool needs_missing(const onnx::NodeProto& node) const;
  bool is_spent() const;  // too many nodes or errors to go on
  template <class Nodes>
  Result<> import_nodes(const Nodes& nodes);
  Result<> import_model_nodes(const onnx::GraphProto& g);
  Result<> import_node(const onnx::NodeProto& node, int index);
  Result<std::vector<ValueId>> import_op(const OpEntry& entry, const onnx::NodeProto& node, std::vector<ValueId> inputs,
                                         const Loc& where);
  Result<std::vector<ValueId>> call(const Function& function, const onnx::NodeProto& node, std::vector<ValueId> inputs,
                                    const Loc& where);
  Result<> import_outputs(const onnx::GraphProto& g);
  std::string symbol_of(const std::string& model_name);
  Result<TensorType> input_type(const std::string& name, const onnx::TypeProto& t, const Tensor* given);
  // Every value gets its name here, and must be what the model declares of it.
  Result<> define(const std::string& name, ValueId v, const Loc& where);
  void declare(const onnx::GraphProto& g);
  bool fits(const onnx::TypeProto::Tensor& declared, const TensorType& given);
  Result<> check_declared(const std::string& name, ValueId v, const Loc& where);
  Result<ValueId> lookup(const std::string& name, const Loc& where);
  const OpEntry* find_op(const onnx::NodeProto& node) const;
  const Function* find_function(const onnx::NodeProto& node) const;
  int opset_of(const std::string& domain) const;

  std::deque<Level> levels_;
  std::string file_, folder_;
  const OnnxOptions& options_;
  MappedFile model_;
  std::map<std::string, int> opsets_;
  std::map<std::tuple<std::string, std::string, std::string>, Function> functions_;  // by domain, name and overload
  std::vector<Scope> scopes_;
  std::vector<OnnxNode> nodes_;
  std::vector<bool> choices_;
  size_t chosen_ = 0;  // of them
  Error refused_;
  std::set<std::string, std::less<>> missing_;      // values of what was refused
  int depth_ = 0;                                   // of bodies in bodies
  int64_t steps_ = 0;                               // nodes of the model imported so far, each as often as it is used
  std::deque<Bundle> bundles_;                      // by -2 - ValueId
  std::map<std::string, std::string> dim_symbols_;  // the model's name of a dim: its symbol
  std::set<std::string> taken_symbols_;             // in any of the graphs
  std::unordered_map<std::string, int64_t> used_;   // the last number tried after a name
};

}  // namespace dlc::onnx_frontend
