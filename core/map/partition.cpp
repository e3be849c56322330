#include "dlc/map/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include "dlc/map/compile.h"
#include "dlc/passes/fuse.h"

namespace dlc {

namespace {

// Nodes that stay together: a fusion group, or the part of one that the device takes.
struct Unit {
  std::vector<NodeId> nodes;
  bool on_device = false;
};

// A program of one call, for the matcher. An input that `base` names is a view of another value.
Program program_of(const Graph& g, const FusionGroup& group, const std::map<ValueId, ValueId>& base = {}) {
  Program p;
  p.kernels.push_back(group.kernel);
  Call c;
  c.kernel = 0;
  c.locations = group.kernel.locations;
  const auto add = [&](ValueId v, BufferKind kind) {
    ProgramBuffer b;
    b.name = g.value(v).name;
    b.type = g.value(v).type;
    b.kind = g.value(v).constant ? BufferKind::constant : kind;
    if (g.value(v).constant) p.weights.emplace_back(b.name, *g.value(v).constant);
    if (const auto it = base.find(v); it != base.end() && kind == BufferKind::input) {
      ProgramBuffer whole;
      whole.name = b.name + ".base";
      whole.type = g.value(it->second).type;
      whole.kind = BufferKind::input;
      p.buffers.push_back(std::move(whole));
      b.kind = BufferKind::temp;
      b.alias = BufferAlias{static_cast<int>(p.buffers.size()) - 1, Expr(0)};
    }
    p.buffers.push_back(std::move(b));
    c.buffers.push_back(static_cast<int>(p.buffers.size()) - 1);
  };
  for (const ValueId v : group.inputs) add(v, BufferKind::input);
  for (const ValueId v : group.outputs) add(v, BufferKind::output);
  p.calls.push_back(std::move(c));
  return p;
}

class Partitioner {
 public:
  Partitioner(const Graph& g, const HwDescription& hw, std::string device)
      : g_(g), hw_(hw), device_(std::move(device)), placed_(g.node_count()) {}

  Result<Partitioning> run() {
    DLC_TRY(const CallMatcher matcher, CallMatcher::make(hw_));
    matcher_ = &matcher;
    DLC_TRY(const auto groups, fuse(g_));
    for (const FusionGroup& group : groups) DLC_CHECK(place(group.nodes));
    settle_views();
    DLC_CHECK(cut());
    for (const NodeId n : g_.order()) out_.nodes.push_back(std::move(placed_[static_cast<size_t>(n)]));
    return std::move(out_);
  }

 private:
  const HwOpRule* refused(NodeId n) const {
    for (const HwOpRule& r : hw_.ops) {
      const bool named =
          std::ranges::any_of(r.ops, [&](const std::string& op) { return op == "*" || op == g_.node(n).op; });
      if (named && r.types.empty()) return r.place == "host" ? &r : nullptr;  // first match wins
    }
    return nullptr;
  }

  void note(NodeId n, const std::string& device, const std::string& rule, const std::string& why, int line = 0) {
    const Node& node = g_.node(n);
    placed_[static_cast<size_t>(n)] = {
        n, node.locations.empty() ? node.op : node.locations.front(), node.op, device, rule, why, line};
  }

  // The longest beginning of the group that the device takes, then the rest.
  Result<> place(std::span<const NodeId> nodes) {
    if (nodes.empty()) return {};
    std::string why;
    for (size_t n = nodes.size(); n > 0; --n) {
      const auto part = nodes.first(n);
      if (std::ranges::any_of(part, [&](NodeId m) { return refused(m) != nullptr; })) continue;
      if (n < nodes.size() && !closed(part)) continue;
      DLC_TRY(const FusionGroup group, merge_nodes(g_, part));
      if (group.is_extern) break;
      Result<> ok;
      if (group.is_view) {
        const ValueId from = group.inputs[0];
        const auto deeper = views_.find(from);
        views_[group.outputs[0]] = deeper == views_.end() ? from : deeper->second;
      } else {
        ok = match(group);
      }
      if (ok) {
        for (const NodeId m : part) note(m, device_, group.is_view ? "view" : "an instruction's text matches", "");
        units_.push_back({{part.begin(), part.end()}, true});
        return place(nodes.subspan(n));
      }
      if (why.empty()) why = std::string(ok.error().message());
    }
    const NodeId first = nodes.front();
    if (const HwOpRule* r = refused(first))
      note(first, "host", "ops", r->why, r->loc.line);
    else
      note(first, "host", "no instruction", why);
    units_.push_back({{first}, false});
    return place(nodes.subspan(1));
  }

  // A reshape costs nothing where its reader can walk the elements as they lie; otherwise the host moves them.
  Result<> match(const FusionGroup& group) {
    Program p = program_of(g_, group, views_);
    Result<> ok = matcher_->match(p, p.calls[0]);
    const bool reads_view = std::ranges::any_of(group.inputs, [&](ValueId v) { return views_.contains(v); });
    if (ok || !reads_view) return ok;
    p = program_of(g_, group);
    Result<> moved = matcher_->match(p, p.calls[0]);
    if (!moved) return ok;
    for (const ValueId v : group.inputs)
      if (views_.erase(v) > 0) on_host_.insert(g_.value(v).producer);
    return moved;
  }

  // Views whose elements somebody else must see in order are made by the host.
  void settle_views() {
    std::map<NodeId, Unit*> unit_of;
    for (Unit& u : units_)
      for (const NodeId n : u.nodes) unit_of[n] = &u;
    for (size_t i = units_.size(); i-- > 0;) {
      Unit& u = units_[i];
      if (!u.on_device || placed_[static_cast<size_t>(u.nodes[0])].rule != "view") continue;
      const ValueId v = g_.node(u.nodes[0]).outputs[0];
      bool host = on_host_.contains(u.nodes[0]) || std::ranges::find(g_.outputs, v) != g_.outputs.end();
      for (const NodeId user : g_.users(v)) host |= !unit_of.at(user)->on_device;
      // A view of what the host made is made there too.
      const NodeId producer = g_.value(g_.node(u.nodes[0]).inputs[0]).producer;
      if (!host && (producer == kNoNode || !unit_of.at(producer)->on_device)) host = !views_.contains(v);
      if (!host) continue;
      u.on_device = false;
      note(u.nodes[0], "host", "view", "its elements must be moved into another layout");
    }
  }

  // Only the last node of the part is seen outside it.
  bool closed(std::span<const NodeId> part) const {
    for (const NodeId n : part.first(part.size() - 1))
      for (const ValueId v : g_.node(n).outputs) {
        if (std::ranges::find(g_.outputs, v) != g_.outputs.end()) return false;
        for (const NodeId u : g_.users(v))
          if (std::ranges::find(part, u) == part.end()) return false;
      }
    return true;
  }

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
    std::vector<NodeId> nodes;
    bool on_device = false;
    for (size_t left = units_.size(); left > 0;) {
      bool moved = false;
      for (size_t u = 0; u < units_.size(); ++u) {
        const bool ready = !done[u] && units_[u].on_device == on_device &&
                           std::ranges::all_of(needs[u], [&](size_t d) { return done[d]; });
        if (!ready) continue;
        nodes.insert(nodes.end(), units_[u].nodes.begin(), units_[u].nodes.end());
        done[u] = true;
        --left;
        moved = true;
      }
      if (moved && left > 0) continue;
      if (!nodes.empty()) DLC_CHECK(close(nodes, on_device));
      nodes.clear();
      on_device = !on_device;
    }
    return {};
  }

  Result<> close(const std::vector<NodeId>& nodes, bool on_device) {
    Partition part{on_device ? device_ : "host", {}};
    Graph& g = part.graph;
    g.name = g_.name;
    g.symbols = g_.symbols;
    g.records = g_.records;
    std::map<ValueId, ValueId> value;
    const auto use = [&](ValueId v) {
      if (v == kNoValue) return kNoValue;
      const auto it = value.find(v);
      if (it != value.end()) return it->second;
      const Value& old = g_.value(v);
      return value[v] = old.constant ? g.add_constant(old.name, *old.constant) : g.add_input(old.name, old.type);
    };
    for (const NodeId n : nodes) {
      const Node& old = g_.node(n);
      std::vector<ValueId> inputs;
      for (const ValueId v : old.inputs) inputs.push_back(use(v));
      DLC_TRY(const NodeId made, g.add_node(old.op, inputs, old.attrs, old.locations));
      for (size_t i = 0; i < old.outputs.size(); ++i) {
        const ValueId v = g.node(made).outputs[i];
        g.rename(v, g_.value(old.outputs[i]).name);
        value[old.outputs[i]] = v;
      }
    }
    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    for (const NodeId n : nodes)
      for (const ValueId v : g_.node(n).outputs) {
        const auto users = g_.users(v);
        const bool later = std::ranges::any_of(users, [&](NodeId u) { return !inside.contains(u); });
        if (later) add_output(g, value.at(v), g_.value(v).name);
        for (size_t i = 0; i < g_.outputs.size(); ++i)
          if (g_.outputs[i] == v && !(later && g_.output_names[i] == g_.value(v).name))
            add_output(g, value.at(v), g_.output_names[i]);
      }
    out_.partitions.push_back(std::move(part));
    return {};
  }

  static void add_output(Graph& g, ValueId v, const std::string& name) {
    g.outputs.push_back(v);
    g.output_names.push_back(name);
  }

  const Graph& g_;
  const HwDescription& hw_;
  std::string device_;
  const CallMatcher* matcher_ = nullptr;
  std::vector<Unit> units_;
  std::map<ValueId, ValueId> views_;  // reshaped values that are read as they lie, and what they are views of
  std::set<NodeId> on_host_;          // reshapes that are not
  std::vector<NodePlacement> placed_;
  Partitioning out_;
};

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
    DLC_TRY(const NodeId made, out.add_node(old.op, std::move(inputs), std::move(attrs), old.locations));
    for (size_t i = 0; i < old.outputs.size(); ++i) {
      value[old.outputs[i]] = out.node(made).outputs[i];
      out.rename(out.node(made).outputs[i], g.value(old.outputs[i]).name);
    }
  }
  for (const ValueId v : g.outputs) {
    if (!value.contains(v)) value[v] = out.add_constant(g.value(v).name, *g.value(v).constant);
    out.outputs.push_back(value.at(v));
  }
  out.output_names = g.output_names;
  return out;
}

Result<Partitioning> partition(const Graph& g, const HwDescription& hw, const std::string& device) {
  return Partitioner(g, hw, device).run();
}

}  // namespace dlc
