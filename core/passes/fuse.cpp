// Which nodes become one kernel; see dlc/passes/fuse.h for the rules.
#include <algorithm>
#include <set>

#include "core/passes/copy.h"
#include "dlc/kernel/access.h"
#include "dlc/kernel/normal_form.h"
#include "dlc/passes/merge.h"

namespace dlc {

namespace {

// What fusion needs to know of a node, from its kernel in normal form.
struct Facts {
  bool fusible = false;             // has one result and is neither extern nor a view nor sequential
  bool injective = false;           // one statement without a reduction
  std::set<ValueId> read_in_place;  // inputs read only at the statement's own loops, in order
};

Result<Facts> facts_of(const Graph& g, NodeId n) {
  Facts f;
  const Node& node = g.node(n);
  if (g.is_extern(n) || node.outputs.size() != 1) return f;
  if (auto copy = as_copy(g, n); copy && is_reshape(*copy)) return f;
  DLC_TRY(Kernel k, g.kernel(n));
  DLC_TRY(k, normalise(k));
  f.fusible = std::ranges::none_of(k.body, [](const Stmt& s) { return s.kind == Stmt::Kind::seq; });
  if (!f.fusible || k.body.size() != 1 || !is_injective(classify(k.body[0]))) return f;
  const Stmt& s = k.body[0];
  f.injective = true;
  const AccessMap own = access_map(s.indices);
  if (std::ranges::any_of(own, [](const auto& e) { return !e || !(e->as_symbol() || e->is(0)); })) return f;
  std::set<int> elsewhere;
  for (const ReadSite& site : reads(s.value, {g.symbols, {}}))
    if (site.access != own) elsewhere.insert(site.read->tensor);
  const size_t inputs = std::min(k.inputs.size(), node.inputs.size());
  for (size_t i = 0; i < inputs; ++i)
    if (k.inputs[i] >= 0) f.read_in_place.insert(node.inputs[i]);
  for (size_t i = 0; i < inputs; ++i)  // an input may be several operands
    if (elsewhere.contains(k.inputs[i])) f.read_in_place.erase(node.inputs[i]);
  return f;
}

class Fuser {
 public:
  Fuser(const Graph& g, const FusionOptions& options)
      : g_(g),
        options_(options),
        order_(g.order()),
        users_(g.all_users()),
        position_(g.node_count(), 0),
        grouped_(g.node_count(), false),
        facts_(g.node_count()) {
    for (size_t i = 0; i < order_.size(); ++i) position_[static_cast<size_t>(order_[i])] = i;
  }

  Result<std::vector<FusionGroup>> run() {
    for (NodeId n : order_) {
      DLC_TRY(facts_[static_cast<size_t>(n)], facts_of(g_, n));
    }
    std::vector<std::vector<NodeId>> parts;
    for (NodeId n : order_)
      if (!grouped_[static_cast<size_t>(n)]) {
        parts.push_back(grow(n));
        for (NodeId m : parts.back()) grouped_[static_cast<size_t>(m)] = true;
      }
    // One visible result, made by the last node: a group can run where its last node stands.
    std::ranges::sort(parts, {}, [&](const auto& p) { return position_[static_cast<size_t>(p.back())]; });
    std::vector<FusionGroup> groups;
    std::map<std::string, int> names;
    for (const auto& part : parts) {
      DLC_TRY(auto group, merge_nodes(g_, part, users_));
      if (const int count = names[group.kernel.name]++; count > 0) group.kernel.name += "_" + std::to_string(count);
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  const Facts& facts(NodeId n) const { return facts_[static_cast<size_t>(n)]; }

  bool is_graph_output(ValueId v) const { return std::ranges::find(g_.outputs, v) != g_.outputs.end(); }

  // Whether the rest of the graph sees nothing of the group but the last node's result.
  bool has_one_result(const std::vector<NodeId>& group) const {
    for (NodeId n : group) {
      if (n == group.back()) continue;
      for (ValueId v : g_.node(n).outputs) {
        if (is_graph_output(v)) return false;
        for (NodeId u : users_[static_cast<size_t>(v)])
          if (std::ranges::find(group, u) == group.end()) return false;
      }
    }
    return true;
  }

  bool may_join(const std::vector<NodeId>& group, bool anchored, NodeId n) const {
    if (grouped_[static_cast<size_t>(n)] || !facts(n).fusible || !facts(n).injective) return false;
    if (options_.may_join && !options_.may_join(group, n)) return false;
    const auto& result = g_.value(g_.node(n).outputs[0]).type.shape;
    for (ValueId v : g_.node(n).inputs) {
      if (v == kNoValue || std::ranges::find(group, g_.value(v).producer) == group.end()) continue;
      const auto& shape = g_.value(v).type.shape;
      if (facts(n).read_in_place.contains(v) && shape == result) continue;
      // Elements read elsewhere are recomputed there: only if nobody reads one twice.
      if (anchored || users_[static_cast<size_t>(v)].size() != 1) return false;
      if (!provably_le(elements(result), elements(shape), g_.symbols)) return false;
    }
    return true;
  }

  // The longest group that starts at `first` and has one result.
  std::vector<NodeId> grow(NodeId first) const {
    std::vector<NodeId> group{first};
    if (!options_.fuse || !facts(first).fusible) return group;
    const bool anchored = !facts(first).injective;
    size_t best = 1;
    std::set<std::pair<size_t, NodeId>> candidates;
    const auto add_users = [&](NodeId n) {
      for (ValueId v : g_.node(n).outputs)
        for (NodeId u : users_[static_cast<size_t>(v)]) candidates.emplace(position_[static_cast<size_t>(u)], u);
    };
    add_users(first);
    while (!candidates.empty() && group.size() < options_.max_nodes) {
      const NodeId n = candidates.begin()->second;
      candidates.erase(candidates.begin());
      if (!may_join(group, anchored, n)) continue;
      group.push_back(n);
      add_users(n);
      if (has_one_result(group)) best = group.size();
    }
    group.resize(best);
    return group;
  }

  const Graph& g_;
  const FusionOptions& options_;
  std::vector<NodeId> order_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<size_t> position_;
  std::vector<bool> grouped_;
  std::vector<Facts> facts_;
};

}  // namespace

Result<std::vector<FusionGroup>> fuse(const Graph& g, const FusionOptions& options) { return Fuser(g, options).run(); }

}  // namespace dlc
