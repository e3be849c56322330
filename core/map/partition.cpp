// The cut: units of the same place, as many as are ready, become a partition.
#include "dlc/map/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/names.h"
#include "core/map/place.h"
#include "core/program/lower.h"
#include "dlc/kernel/access.h"
#include "dlc/passes/merge.h"

namespace dlc {

using map::Placed;
using map::Unit;

namespace {

class Cutter {
 public:
  Cutter(const Graph& g, const std::vector<Unit>& units, const std::string& device)
      : g_(g), users_(g.all_users()), units_(units), device_(device) {}

  Result<std::vector<Partition>> run() {
    DLC_CHECK(cut());
    passed_on();
    return std::move(out_);
  }

 private:
  // Takes ready units of the same place as long as there are any, then changes the place.
  Result<> cut() {
    std::map<NodeId, size_t> unit_of;
    for (size_t u = 0; u < units_.size(); ++u)
      for (const NodeId n : units_[u].nodes) unit_of.emplace(n, u);
    std::vector<std::set<size_t>> needs(units_.size());
    for (size_t u = 0; u < units_.size(); ++u)
      for (const NodeId n : units_[u].nodes)
        for (const ValueId v : g_.node(n).inputs)
          if (v != kNoValue && g_.value(v).producer != kNoNode && unit_of.at(g_.value(v).producer) != u)
            needs[u].insert(unit_of.at(g_.value(v).producer));
    std::vector<bool> done(units_.size(), false);
    std::vector<const Unit*> units;
    bool on_device = false;
    for (size_t left = units_.size(); left > 0;) {
      bool moved = false;
      for (size_t u = 0; u < units_.size(); ++u) {
        const bool ready = !done[u] && units_[u].on_device == on_device &&
                           std::ranges::all_of(needs[u], [&](size_t d) { return done[d]; });
        if (!ready) continue;
        units.push_back(&units_[u]);
        done[u] = true;
        --left;
        moved = true;
      }
      if (moved && left > 0) continue;
      if (!units.empty()) DLC_CHECK(close(units, on_device));
      units.clear();
      on_device = !on_device;
    }
    return {};
  }

  // Outputs that no node makes, inputs and constants: a part of the host gives them.
  void passed_on() {
    Partition part = empty("host");
    std::map<ValueId, ValueId> value;
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      if (g_.value(g_.outputs[i]).producer == kNoNode)
        add_output(part.graph, use(g_.outputs[i], part.graph, value), g_.output_names[i]);
    if (!part.graph.outputs.empty()) out_.push_back(std::move(part));
  }

  Partition empty(const std::string& device) const {
    Partition part{device, {}, {}};
    part.graph.name = g_.name;
    part.graph.symbols = g_.symbols;
    part.graph.records = g_.records;
    return part;
  }

  // The value in a part; one from outside becomes an input or a constant of it.
  ValueId use(ValueId v, Graph& g, std::map<ValueId, ValueId>& value) const {
    if (v == kNoValue) return kNoValue;
    const auto it = value.find(v);
    if (it != value.end()) return it->second;
    const Value& old = g_.value(v);
    return value[v] = old.constant ? g.add_constant(old.name, *old.constant) : g.add_input(old.name, old.type);
  }

  Result<> close(const std::vector<const Unit*>& units, bool on_device) {
    Partition part = empty(on_device ? device_ : "host");
    Graph& g = part.graph;
    std::map<ValueId, ValueId> value;
    std::vector<NodeId> nodes;
    for (const Unit* unit : units) {
      std::vector<NodeId> group;
      for (const NodeId n : unit->nodes) {
        const Node& old = g_.node(n);
        std::vector<ValueId> inputs;
        for (const ValueId v : old.inputs) inputs.push_back(use(v, g, value));
        DLC_TRY(const NodeId made, g.add_copy(g_, n, std::move(inputs)));
        detail::rename_results(g, made, detail::result_names(g_, n));
        for (size_t i = 0; i < old.outputs.size(); ++i) value[old.outputs[i]] = g.node(made).outputs[i];
        nodes.push_back(n);
        group.push_back(made);
      }
      if (on_device) part.groups.push_back(std::move(group));
    }
    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    for (const NodeId n : nodes)
      for (const ValueId v : g_.node(n).outputs) {
        const auto& users = users_[static_cast<size_t>(v)];
        const bool later = std::ranges::any_of(users, [&](NodeId u) { return !inside.contains(u); });
        if (later) add_output(g, value.at(v), g_.value(v).name);
        for (size_t i = 0; i < g_.outputs.size(); ++i)
          if (g_.outputs[i] == v && !(later && g_.output_names[i] == g_.value(v).name))
            add_output(g, value.at(v), g_.output_names[i]);
      }
    out_.push_back(std::move(part));
    return {};
  }

  static void add_output(Graph& g, ValueId v, const std::string& name) {
    g.outputs.push_back(v);
    g.output_names.push_back(name);
  }

  const Graph& g_;
  std::vector<std::vector<NodeId>> users_;
  const std::vector<Unit>& units_;
  const std::string& device_;
  std::vector<Partition> out_;
};

size_t on_device(const Placed& p) {
  return static_cast<size_t>(std::ranges::count_if(p.units, [](const Unit& u) { return u.on_device; }));
}

// Nodes that the device would take if sizes were known.
Result<> symbolic(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
                  const ModelNodes& model, Placed& placed) {
  std::set<std::string> symbols;
  for (const NodeId n : g.order())
    for (const ValueId v : g.node(n).outputs)
      for (const Expr& e : g.value(v).type.shape) {
        const auto names = e.symbols();
        symbols.insert(names.begin(), names.end());
      }
  if (symbols.empty()) return {};
  auto fixed = with_smallest_shapes(g);
  if (!fixed) return {};  // the smallest sizes are not possible: nothing can be said
  DLC_TRY(const Placed known, map::place(*fixed, hw, device, ask, model));
  if (on_device(known) <= on_device(placed)) return {};
  std::string names, next;
  for (const std::string& s : symbols) {
    const auto range = g.symbols.find(s);
    const int64_t least = range == g.symbols.end() ? 1 : std::max<int64_t>(range->second.bounds.lo, 1);
    names += (names.empty() ? "" : ", ") + s;
    next += fmt::format("{}--dim {}={}", next.empty() ? "" : " ", s, least);
  }
  placed.problems.push_back({Severity::error,
                             {},
                             fmt::format("the model's sizes depend on {}, and programs for {} have fixed sizes: {} of "
                                         "{} kernels would run there if they were known",
                                         names, hw.name, on_device(known), known.units.size()),
                             next});
  return {};
}

// Whether it is the description's `ops:` that keeps the machine from doing anything: without it something would run
// there, or was meant to and does not fit.
Result<bool> is_by_rule(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
                        const ModelNodes& model, const Placed& placed) {
  if (std::ranges::none_of(placed.nodes, [](const NodePlacement& p) { return p.rule == "ops"; })) return false;
  HwDescription without = hw;
  without.ops.clear();
  DLC_TRY(const Placed free, map::place(g, without, device, ask, model));
  return on_device(free) > 0 || !free.problems.empty();
}

// The node of the model that does most: the one that a user would miss on the machine. nullptr: rules and views alone.
Result<const NodePlacement*> most_work(const Graph& g, const Placed& placed) {
  const NodePlacement* most = nullptr;
  int64_t work = -1;
  for (const NodeId n : g.order()) {
    const NodePlacement& p = placed.nodes[static_cast<size_t>(n)];
    if (p.rule == "ops" || p.rule == "view") continue;
    DLC_TRY(const Kernel k, g.kernel(n));
    const int64_t here = g.node(n).locations.empty() ? 0 : flops(k).constant().value_or(0);
    if (here <= work) continue;
    work = here;
    most = &p;
  }
  return most;
}

// A compilation that gives the machine nothing at all to do is told.
Result<> nothing(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
                 const ModelNodes& model, Placed& placed) {
  if (on_device(placed) > 0 || placed.units.empty() || !placed.problems.empty()) return {};
  const auto problem = [&](Loc loc, std::string message, std::string next) {
    placed.problems.push_back({Severity::error, std::move(loc), std::move(message), std::move(next)});
  };
  const std::string message = fmt::format("nothing of this model runs on {}", hw.name);
  if (!g.outputs.empty() &&
      std::ranges::all_of(g.outputs, [&](ValueId v) { return elements(g.value(v).type.shape).is(0); })) {
    problem({},
            fmt::format("{}: its results have no elements ({} is {})", message, g.output_names.front(),
                        to_string(g.value(g.outputs.front()).type)),
            "sizes of at least 1; or compile it for the CPU: --hw=native");
    return {};
  }
  DLC_TRY(const NodePlacement* node, most_work(g, placed));
  DLC_TRY(const bool by_rule, is_by_rule(g, hw, device, ask, model, placed));
  if (by_rule || node == nullptr) {
    placed.problems.push_back(
        {Severity::warning, {hw.file, 0, 0, {}}, message + ": its description leaves to the host what could", {}});
    return {};
  }
  const auto is = [&](ValueId v, bool small_integer) {
    const DType t = g.value(v).type.dtype;
    return small_integer ? t.is_int() && t.bits <= 8 : t.is_float();
  };
  const bool in_floats = std::ranges::any_of(g.node(node->node).outputs, [&](ValueId v) { return is(v, false); });
  bool quantised = false;
  for (const NodeId n : g.order())
    for (const auto* values : {&g.node(n).inputs, &g.node(n).outputs})
      for (const ValueId v : *values) quantised |= v != kNoValue && is(v, true);
  if (in_floats && hw.recipes.empty() && quantised)
    problem({hw.file, 0, 0, node->name},
            fmt::format("{}; {} stays in float: the description names no recipes", message, node->op),
            "add `recipes: FILE` to it: op records that say how quantised ops become its integers");
  else if (in_floats && !quantised && !hw.recipes.empty())
    problem({}, fmt::format("{}: it computes in floats, {} in integers", message, hw.name),
            "quantise it first: QuantizeLinear and DequantizeLinear around its operators (QDQ), as onnxruntime's "
            "quantize_static writes them; or compile it for the CPU: --hw=native");
  else if (const auto why = model.in_float.find(node->name); why != model.in_float.end())
    problem({{}, 0, 0, node->name}, fmt::format("{}; {} stays in float: {}", message, node->op, why->second),
            "dlc explain says it for every node");
  else
    problem({hw.file, node->yaml_line, 0, node->name}, fmt::format("{}; {}: {}", message, node->op, node->why),
            "dlc explain says it for every node");
  return {};
}

}  // namespace

Result<Graph> with_smallest_shapes(const Graph& g) {
  std::map<std::string, Expr, std::less<>> values;
  for (const auto& [name, range] : g.symbols) values.emplace(name, Expr(std::max<int64_t>(range.bounds.lo, 1)));
  Graph out;
  out.name = g.name;
  out.records = g.records;
  std::map<ValueId, ValueId> value;
  for (const ValueId v : g.inputs) {
    TensorType type = g.value(v).type;
    for (Expr& e : type.shape) e = substitute(e, values);
    value[v] = out.add_input(g.value(v).name, std::move(type));
  }
  for (const NodeId n : g.order()) {
    const Node& old = g.node(n);
    std::vector<ValueId> inputs;
    for (const ValueId v : old.inputs) {
      if (v != kNoValue && !value.contains(v)) value[v] = out.add_constant(g.value(v).name, *g.value(v).constant);
      inputs.push_back(v == kNoValue ? kNoValue : value.at(v));
    }
    Attrs attrs = old.attrs;
    for (auto& [name, attr] : attrs) {
      if (auto* e = std::get_if<Expr>(&attr)) *e = substitute(*e, values);
      if (auto* list = std::get_if<std::vector<Expr>>(&attr))
        for (Expr& e : *list) e = substitute(e, values);
    }
    Result<NodeId> made;
    if (old.bodies.empty()) {
      made = out.add_node(old.op, std::move(inputs), std::move(attrs), old.locations);
    } else {
      Node control = old;
      control.inputs = std::move(inputs);
      std::vector<TensorType> types;
      for (const ValueId v : old.outputs) {
        types.push_back(g.value(v).type);
        for (Expr& e : types.back().shape) e = substitute(e, values);
      }
      made = out.add_control(std::move(control), std::move(types));
    }
    if (!made) return std::unexpected(std::move(made).error());
    detail::rename_results(out, *made, detail::result_names(g, n));
    for (size_t i = 0; i < old.outputs.size(); ++i) value[old.outputs[i]] = out.node(*made).outputs[i];
  }
  for (const ValueId v : g.outputs) {
    if (!value.contains(v)) value[v] = out.add_constant(g.value(v).name, *g.value(v).constant);
    out.outputs.push_back(value.at(v));
  }
  out.output_names = g.output_names;
  return out;
}

Result<> check_rules(const HwDescription& hw, const RecordSet& records) {
  for (const HwOpRule& r : hw.ops)
    for (const std::string& op : r.ops) {
      if (op == "*" || records.find(op) != nullptr) continue;
      const std::string near = nearest(op, records.names());
      return fail(r.loc, fmt::format("'ops' names '{}', which is no op", op),
                  near.empty() ? "ops are called as their records are (core/ops/*.ops, and the machine's recipes)"
                               : fmt::format("did you mean '{}'?", near));
    }
  return {};
}

Result<Partitioning> partition(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
                               const ModelNodes& model) {
  DLC_CHECK(check_rules(hw, g.record_set()));
  DLC_TRY(Placed placed, map::place(g, hw, device, ask, model));
  DLC_CHECK(symbolic(g, hw, device, ask, model, placed));
  DLC_CHECK(nothing(g, hw, device, ask, model, placed));
  Partitioning out;
  const Graph apart = detail::with_names_apart(g);
  DLC_TRY(out.partitions, Cutter(apart, placed.units, device).run());
  for (const NodeId n : g.order()) out.nodes.push_back(std::move(placed.nodes[static_cast<size_t>(n)]));
  out.problems = std::move(placed.problems);
  return out;
}

Result<Program> lower_partition(const Partition& part) {
  if (part.groups.empty()) return lower_to_program(part.graph);
  std::vector<FusionGroup> groups;
  const auto users = part.graph.all_users();
  for (const auto& nodes : part.groups) {
    DLC_TRY(FusionGroup group, merge_nodes(part.graph, nodes, users));
    groups.push_back(std::move(group));
  }
  return detail::lower_groups(part.graph, std::move(groups));
}

}  // namespace dlc
