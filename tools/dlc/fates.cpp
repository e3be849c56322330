#include "tools/dlc/fates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "core/graph/value_inference.h"

namespace dlc::cli {

Origins::Origins(const Graph& g, std::vector<OnnxNode> nodes) : origins_(g.node_count()), nodes_(std::move(nodes)) {
  const auto at = [&](NodeId n) -> Origin& { return origins_[static_cast<size_t>(n)]; };
  const auto order = g.order();
  ValueInference values(g);
  for (const NodeId n : order) {
    Origin& o = at(n);
    o.names = g.node(n).locations;
    bool fixed = true;
    for (const ValueId v : g.node(n).inputs) {
      if (v == kNoValue || g.value(v).constant) continue;
      const NodeId p = g.value(v).producer;
      fixed = fixed && p != kNoNode && at(p).known;
      if (p == kNoNode) continue;
      o.from.push_back(p);
      at(p).to.push_back(n);
    }
    const auto is_inferred = [&](ValueId v) {
      const auto known = values.known(v);
      return known && std::ranges::all_of(*known, [](const Expr& e) { return e.constant().has_value(); });
    };
    o.known = fixed || std::ranges::all_of(g.node(n).outputs, is_inferred);
  }
  for (const ValueId v : g.outputs)
    if (g.value(v).producer != kNoNode) at(g.value(v).producer).used = true;
  for (const NodeId n : order | std::views::reverse)
    if (at(n).used)
      for (const NodeId p : at(n).from) at(p).used = true;
  if (nodes_.empty())
    for (const NodeId n : order)
      if (!at(n).names.empty()) nodes_.push_back({at(n).names.front(), g.node(n).op, n, n + 1, {}, {}});
  for (const OnnxNode& n : nodes_)
    constant_.push_back(std::ranges::all_of(n.results, [&](ValueId v) {
      return v >= 0 && static_cast<size_t>(v) < g.value_count() && g.value(v).constant.has_value();
    }));
}

std::vector<std::string> Origins::names() const {
  std::vector<std::string> out;
  for (const OnnxNode& n : nodes_) out.push_back(n.name);
  return out;
}

int64_t Origins::times(const std::string& name) const {
  return std::ranges::count_if(nodes_, [&](const OnnxNode& n) {
    if (n.name == name) return true;
    return std::any_of(origins_.begin() + n.first, origins_.begin() + n.end,
                       [&](const Origin& o) { return std::ranges::count(o.names, name) > 0; });
  });
}

std::set<std::string> Origins::nearest(const OnnxNode& n, const std::set<std::string>& names, bool readers) const {
  std::set<std::string> found;
  std::set<NodeId> seen;
  std::vector<NodeId> open;
  for (NodeId i = n.first; i < n.end; ++i) open.push_back(i);
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    const Origin& o = origins_[static_cast<size_t>(at)];
    bool left = false;
    for (const std::string& name : o.names)
      if (names.contains(name)) {
        found.insert(name);
        left = true;
      }
    if (!left) open.insert(open.end(), (readers ? o.to : o.from).begin(), (readers ? o.to : o.from).end());
  }
  return found;
}

std::vector<Origins::Fate> Origins::fates(const Graph& now, const std::set<std::string>& called) const {
  std::map<std::string, std::string> first;  // of the node that has a name
  std::set<std::string> names;
  for (const NodeId n : now.order())
    for (const std::string& name : now.node(n).locations) {
      first[name] = now.node(n).locations.front();
      names.insert(name);
    }
  std::vector<Fate> out;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const OnnxNode& n = nodes_[i];
    if (called.contains(n.name)) continue;
    Fate f{n.name, n.op, {}, {}};
    const auto of_all = [&](bool Origin::* what, bool value) {
      return std::all_of(origins_.begin() + n.first, origins_.begin() + n.end,
                         [&](const Origin& o) { return o.*what == value; });
    };
    if (const auto it = first.find(n.name); it != first.end() && it->second != n.name) {
      f.into = it->second;
      f.why = "it is part of " + f.into;
    } else if (it != first.end()) {
      f.why = "its result lies as what it reads does: nothing is to be done";
    } else if (n.first == n.end) {
      f.why = constant_[i] ? "it is a constant" : "it passes on what it is given";
    } else if (of_all(&Origin::used, false)) {
      f.why = "its result is not used";
    } else if (of_all(&Origin::known, true)) {
      f.why = "it is a constant";
    } else {
      std::set<std::string> into = nearest(n, names, true);
      if (into.empty()) into = nearest(n, names, false);
      std::set<std::string> parts;
      for (const std::string& name : into) parts.insert(first.at(name));
      if (!parts.empty()) f.into = *parts.begin();
      f.why = parts.empty() ? "nothing is left of it to do" : fmt::format("it is part of {}", fmt::join(parts, ", "));
    }
    out.push_back(std::move(f));
  }
  return out;
}

}  // namespace dlc::cli
