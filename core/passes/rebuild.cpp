#include "core/passes/rebuild.h"

namespace dlc {

namespace {

class Rebuilder {
 public:
  Rebuilder(const Sample& s, const Edits& edits) : old_(s.graph), tensors_(s.inputs), edits_(edits) {
    for (size_t i = 0; i < old_.inputs.size(); ++i) input_[old_.inputs[i]] = i;
  }

  Result<Sample> run() {
    Graph& g = out_.graph;
    g.name = old_.name;
    g.records = old_.records;
    for (const auto& [name, range] : old_.symbols)
      if (!edits_.symbols.contains(name)) g.symbols.emplace(name, range);
    mark();
    for (const ValueId v : old_.inputs)  // in their order
      if (needed_.contains(v)) leaf(v);
    for (const NodeId n : old_.order())
      if (live_.contains(n)) DLC_CHECK(node(old_.node(n), n));
    for (const auto& [v, name] : edits_.outputs) {
      g.outputs.push_back(map(v));
      g.output_names.push_back(name);
    }
    drop_symbols();
    return std::move(out_);
  }

 private:
  ValueId final(ValueId v) const {
    for (auto it = edits_.instead.find(v); it != edits_.instead.end(); it = edits_.instead.find(v)) v = it->second;
    return v;
  }
  bool is_leaf(ValueId v) const { return old_.value(v).producer == kNoNode || edits_.given.contains(v); }

  void mark() {
    std::vector<ValueId> reached;
    for (const auto& [v, name] : edits_.outputs) reached.push_back(final(v));
    while (!reached.empty()) {
      const ValueId v = reached.back();
      reached.pop_back();
      if (!needed_.insert(v).second || is_leaf(v)) continue;
      live_.insert(old_.value(v).producer);
      for (const ValueId in : old_.node(old_.value(v).producer).inputs)
        if (in != kNoValue) reached.push_back(final(in));
    }
  }

  Expr replaced(const Expr& e) const { return substitute(e, edits_.symbols); }

  ValueId leaf(ValueId v) {
    if (const auto known = made_.find(v); known != made_.end()) return known->second;
    const Value& value = old_.value(v);
    const auto given = edits_.given.find(v);
    const auto input = input_.find(v);
    const Tensor& tensor = given != edits_.given.end() ? given->second
                           : input != input_.end()     ? tensors_[input->second]
                                                       : *value.constant;
    if (value.constant || edits_.constants.contains(v)) return made_[v] = out_.graph.add_constant(value.name, tensor);
    TensorType type = value.type;
    for (size_t d = 0; d < type.shape.size(); ++d) {
      type.shape[d] = replaced(type.shape[d]);
      const bool plain = type.shape[d].as_symbol() || type.shape[d].is(tensor.shape()[d]);
      if (!plain) type.shape[d] = Expr(tensor.shape()[d]);
    }
    out_.inputs.push_back(tensor);
    return made_[v] = out_.graph.add_input(value.name, std::move(type));
  }

  ValueId map(ValueId v) {
    if (v == kNoValue) return v;
    v = final(v);
    return is_leaf(v) ? leaf(v) : made_.at(v);
  }

  Result<> node(const Node& n, NodeId id) {
    std::vector<ValueId> inputs;
    for (const ValueId v : n.inputs) inputs.push_back(map(v));
    Attrs attrs;
    for (auto [name, value] : n.attrs) {
      if (edits_.defaults.contains({id, name})) continue;
      if (auto* e = std::get_if<Expr>(&value)) *e = replaced(*e);
      if (auto* list = std::get_if<std::vector<Expr>>(&value))
        for (Expr& e : *list) {
          e = replaced(e);
          const auto c = e.constant();
          const auto other = c ? edits_.extents.find(*c) : edits_.extents.end();
          if (other != edits_.extents.end()) e = Expr(other->second);
        }
      attrs.emplace(name, std::move(value));
    }
    DLC_TRY(const NodeId made, n.bodies.empty()
                                   ? out_.graph.add_node(n.op, std::move(inputs), std::move(attrs), n.locations)
                                   : control(n, std::move(inputs), std::move(attrs)));
    for (size_t r = 0; r < n.outputs.size(); ++r) {
      const ValueId v = out_.graph.node(made).outputs[r];
      made_[n.outputs[r]] = v;
      out_.graph.rename(v, old_.value(n.outputs[r]).name);
    }
    return {};
  }

  // With the bodies as they are: their sizes are bound anew when they run.
  Result<NodeId> control(const Node& n, std::vector<ValueId> inputs, Attrs attrs) {
    Node copy = n;
    copy.inputs = std::move(inputs);
    copy.attrs = std::move(attrs);
    std::vector<TensorType> types;
    for (const ValueId v : n.outputs) {
      types.push_back(old_.value(v).type);
      for (Expr& e : types.back().shape) e = replaced(e);
    }
    return out_.graph.add_control(std::move(copy), std::move(types));
  }

  // Symbols that no value mentions any more.
  void drop_symbols() {
    Graph& g = out_.graph;
    std::erase_if(g.symbols, [&](const auto& symbol) {
      for (size_t v = 0; v < g.value_count(); ++v)
        for (const Expr& e : g.value(static_cast<ValueId>(v)).type.shape)
          if (e.mentions(symbol.first)) return false;
      for (const NodeId n : g.order())
        for (const auto& [name, a] : g.node(n).attrs) {
          if (const auto* e = std::get_if<Expr>(&a); e && e->mentions(symbol.first)) return false;
          if (const auto* list = std::get_if<std::vector<Expr>>(&a))
            for (const Expr& e : *list)
              if (e.mentions(symbol.first)) return false;
        }
      return true;
    });
  }

  const Graph& old_;
  const std::vector<Tensor>& tensors_;
  const Edits& edits_;
  std::map<ValueId, size_t> input_;
  std::set<ValueId> needed_;
  std::set<NodeId> live_;
  std::map<ValueId, ValueId> made_;
  Sample out_;
};

}  // namespace

Edits no_edits(const Graph& g) {
  Edits e;
  for (size_t i = 0; i < g.outputs.size(); ++i) e.outputs.emplace_back(g.outputs[i], g.output_names[i]);
  return e;
}

Result<Sample> rebuild(const Sample& s, const Edits& edits) { return Rebuilder(s, edits).run(); }

}  // namespace dlc
