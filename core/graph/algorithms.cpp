#include "core/graph/algorithms.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>

namespace dlc {

struct Digraph::Impl {
  explicit Impl(size_t vertices) : graph(vertices) {}
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph;
};

Digraph::Digraph(size_t vertices) : impl_(std::make_unique<Impl>(vertices)) {}
Digraph::~Digraph() = default;
Digraph::Digraph(Digraph&&) noexcept = default;

void Digraph::add_edge(size_t from, size_t to) { boost::add_edge(from, to, impl_->graph); }

size_t Digraph::size() const { return boost::num_vertices(impl_->graph); }

std::vector<std::vector<size_t>> Digraph::cycles() const {
  std::vector<size_t> component(size());
  const size_t count = boost::strong_components(
      impl_->graph,
      boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, impl_->graph)));
  std::vector<std::vector<size_t>> members(count);
  for (size_t v = 0; v < component.size(); ++v) members[component[v]].push_back(v);
  std::erase_if(members, [](const auto& m) { return m.size() < 2; });
  std::ranges::sort(members);
  return members;
}

std::optional<std::vector<size_t>> Digraph::topological_order() const {
  std::vector<size_t> order;
  try {
    boost::topological_sort(impl_->graph, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return std::nullopt;
  }
  std::ranges::reverse(order);
  return order;
}

std::vector<bool> Digraph::reachable(std::span<const size_t> from) const {
  std::vector<boost::default_color_type> color(size(), boost::white_color);
  auto color_map = boost::make_iterator_property_map(color.begin(), boost::get(boost::vertex_index, impl_->graph));
  boost::queue<size_t> queue;
  for (size_t v : from)
    if (color[v] == boost::white_color)
      boost::breadth_first_visit(impl_->graph, v, queue, boost::default_bfs_visitor(), color_map);
  std::vector<bool> reached(size());
  for (size_t v = 0; v < color.size(); ++v) reached[v] = color[v] != boost::white_color;
  return reached;
}

bool Digraph::is_convex(std::span<const size_t> set) const {
  std::vector<bool> inside(size(), false);
  for (size_t v : set) inside[v] = true;
  std::vector<size_t> outside_users;  // the first vertices of every path that leaves the set
  for (size_t v : set)
    for (auto [e, end] = boost::out_edges(v, impl_->graph); e != end; ++e)
      if (const size_t to = boost::target(*e, impl_->graph); !inside[to]) outside_users.push_back(to);
  const auto reached = reachable(outside_users);
  return std::ranges::none_of(set, [&](size_t v) { return reached[v]; });
}

Digraph dataflow(const Graph& g) {
  Digraph d(g.node_count());
  for (size_t n = 0; n < g.node_count(); ++n) {
    const Node& node = g.node(static_cast<NodeId>(n));
    if (node.erased) continue;
    for (ValueId v : node.inputs)
      if (v != kNoValue && g.value(v).producer != kNoNode) d.add_edge(static_cast<size_t>(g.value(v).producer), n);
  }
  return d;
}

}  // namespace dlc
