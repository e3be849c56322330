#include <algorithm>
#include <set>

#include "core/graph/algorithms.h"
#include "dlc/graph/control.h"
#include "dlc/graph/graph.h"
#include "dlc/graph/state.h"

namespace dlc {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& g, int depth = 0) : g_(g), depth_(depth) {}

  Result<> run() {
    check_values();
    if (errors_.empty()) check_states();
    if (errors_.empty()) check_nodes();
    if (errors_.empty()) return {};
    return std::unexpected(std::move(errors_));
  }

 private:
  void report(NodeId n, std::string message) {
    Loc where;
    if (n != kNoNode)
      for (const auto& l : g_.node(n).locations) where.node += (where.node.empty() ? "" : ", ") + l;
    errors_.add(Error(where, std::move(message)));
  }

  bool exists(ValueId v) const { return v >= 0 && static_cast<size_t>(v) < g_.value_count(); }

  // A use is of an input, a constant or a result of a live node.
  void check_use(NodeId n, ValueId v, const std::string& user) {
    if (!exists(v)) return report(n, user + " uses value " + std::to_string(v) + ", which does not exist");
    const Value& value = g_.value(v);
    if (value.producer != kNoNode) {
      const Node& p = g_.node(value.producer);
      if (p.erased) report(n, user + " uses %" + value.name + ", whose node was erased");
    } else if (!value.constant && !is_input_[static_cast<size_t>(v)]) {
      report(n, user + " uses %" + value.name + ", which nothing defines");
    }
  }

  void check_symbols(NodeId n, const Expr& e, const std::string& where) {
    if (!e.valid()) return report(n, where + " overflows 64 bits");
    for (const auto& s : e.symbols())
      if (!g_.symbols.contains(s)) report(n, where + " uses the symbol " + s + ", which the graph does not declare");
  }

  void check_values() {
    std::set<std::string_view> names;
    is_input_.assign(g_.value_count(), false);
    for (ValueId v : g_.inputs) {
      if (!exists(v)) return report(kNoNode, "input " + std::to_string(v) + " does not exist");
      if (is_input_[static_cast<size_t>(v)]) report(kNoNode, "%" + g_.value(v).name + " is an input twice");
      is_input_[static_cast<size_t>(v)] = true;
      if (g_.value(v).producer != kNoNode || g_.value(v).constant)
        report(kNoNode, "input %" + g_.value(v).name + " is also defined in the graph");
    }
    for (size_t i = 0; i < g_.value_count(); ++i) {
      const Value& v = g_.value(static_cast<ValueId>(i));
      const bool live = v.producer != kNoNode ? !g_.node(v.producer).erased : v.constant || is_input_[i];
      if (!live) continue;
      if (!names.insert(v.name).second) report(v.producer, "two values are called " + v.name);
      for (const Expr& d : v.type.shape) check_symbols(v.producer, d, "the shape of %" + v.name);
      if (v.constant && type_of(*v.constant) != v.type)
        report(kNoNode, "constant @" + v.name + " is " + to_string(type_of(*v.constant)) + ", its value is declared " +
                            to_string(v.type));
    }
    if (g_.output_names.size() != g_.outputs.size())
      report(kNoNode,
             std::to_string(g_.outputs.size()) + " outputs have " + std::to_string(g_.output_names.size()) + " names");
    for (ValueId v : g_.outputs) check_use(kNoNode, v, "the graph's result");
  }

  void check_states() {
    std::set<std::string_view> inputs, outputs;
    for (const StatePair& s : g_.states) {
      const std::string state = "state %" + s.input + " -> \"" + s.output + "\"";
      if (depth_ > 0) return report(kNoNode, state + ": a body has no states");
      const ValueId v = g_.find(s.input);
      const auto at = std::ranges::find(g_.output_names, s.output);
      if (v == kNoValue || !is_input_[static_cast<size_t>(v)])
        return report(kNoNode, state + ": there is no such input");
      if (at == g_.output_names.end()) return report(kNoNode, state + ": there is no such output");
      if (!inputs.insert(s.input).second || !outputs.insert(s.output).second)
        return report(kNoNode, state + ": a value belongs to one state");
      const ValueId out = g_.outputs[static_cast<size_t>(at - g_.output_names.begin())];
      if (const std::string why = not_a_state(g_.value(v).type, g_.value(out).type, g_.symbols); !why.empty())
        return report(kNoNode, state + ": the output cannot be the next input: " + why);
    }
  }

  void check_nodes() {
    size_t live = 0;
    for (size_t i = 0; i < g_.node_count(); ++i) {
      const Node& node = g_.node(static_cast<NodeId>(i));
      if (node.erased) continue;
      ++live;
      for (ValueId v : node.inputs)
        if (v != kNoValue && !exists(v)) check_use(static_cast<NodeId>(i), v, node.op);
    }
    if (!errors_.empty()) return;
    const auto order = g_.order();  // follows every use, so they exist
    if (order.size() != live) {
      for (const auto& cycle : dataflow(g_).cycles()) {
        std::string ops;
        for (size_t n : cycle) ops += (ops.empty() ? "" : ", ") + g_.node(static_cast<NodeId>(n)).op;
        report(static_cast<NodeId>(cycle[0]), "these nodes use each other's results: " + ops);
      }
      return;
    }
    for (NodeId n : order) check_node(n);
  }

  void check_node(NodeId n) {
    const Node& node = g_.node(n);
    for (ValueId v : node.inputs)
      if (v != kNoValue) check_use(n, v, node.op);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!exists(node.outputs[i])) return report(n, node.op + " has a result that does not exist");
      const Value& v = g_.value(node.outputs[i]);
      if (v.producer != n || v.result != static_cast<int>(i) || v.constant)
        report(n, "%" + v.name + " is not the result of " + node.op + " that it says it is");
    }
    for (const auto& [name, value] : node.attrs) {
      if (const auto* e = std::get_if<Expr>(&value)) check_symbols(n, *e, "attribute " + name + " of " + node.op);
      if (const auto* list = std::get_if<std::vector<Expr>>(&value))
        for (const Expr& e : *list) check_symbols(n, e, "attribute " + name + " of " + node.op);
    }
    for (const auto& body : node.bodies) check_body(n, body.get());
    if (!errors_.empty()) return;
    auto types = g_.infer(n);  // checks arity, attributes and operand types
    if (!types) return errors_.add(std::move(types).error());
    if (types->size() != node.outputs.size())
      return report(n, node.op + " has " + std::to_string(types->size()) + " results, not " +
                           std::to_string(node.outputs.size()));
    for (size_t i = 0; i < types->size(); ++i) {
      const Value& v = g_.value(node.outputs[i]);
      if (!same((*types)[i], v.type))
        report(n, "%" + v.name + " is declared " + to_string(v.type) + ", but " + node.op + " gives " +
                      to_string((*types)[i]));
    }
  }

  void check_body(NodeId n, const Graph* body) {
    if (body == nullptr) return report(n, g_.node(n).op + " has a body that does not exist");
    if (depth_ >= kMaxBodyDepth)
      return report(n, "bodies are nested more than " + std::to_string(kMaxBodyDepth) + " deep");
    if (auto valid = Verifier(*body, depth_ + 1).run(); !valid) errors_.add(std::move(valid).error());
  }

  bool same(const TensorType& a, const TensorType& b) const {
    if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
    for (size_t i = 0; i < a.shape.size(); ++i)
      if (a.shape[i] != b.shape[i] && !provably_eq(a.shape[i], b.shape[i], g_.symbols)) return false;
    return true;
  }

  const Graph& g_;
  int depth_;
  Error errors_;
  std::vector<bool> is_input_;
};

}  // namespace

Result<> verify(const Graph& g) { return Verifier(g).run(); }

}  // namespace dlc
