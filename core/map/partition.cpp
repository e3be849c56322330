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

// A program of one call, for the matcher.
Program program_of(const Graph& g, const FusionGroup& group) {
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
      if (!group.is_view) {
        const Program p = program_of(g_, group);
        ok = matcher_->match(p, p.calls[0]);
      }
      if (ok) {
        for (const NodeId m : part) note(m, device_, group.is_view ? "view" : "an instruction's text matches", "");
        units_.push_back({{part.begin(), part.end()}, true});
        return place(nodes.subspan(n));
      }
      why = std::string(ok.error().message());
    }
    const NodeId first = nodes.front();
    if (const HwOpRule* r = refused(first))
      note(first, "host", "ops", r->why, r->loc.line);
    else
      note(first, "host", "no instruction", why);
    units_.push_back({{first}, false});
    return place(nodes.subspan(1));
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
  std::vector<NodePlacement> placed_;
  Partitioning out_;
};

}  // namespace

Result<Partitioning> partition(const Graph& g, const HwDescription& hw, const std::string& device) {
  return Partitioner(g, hw, device).run();
}

}  // namespace dlc
