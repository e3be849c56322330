#include "core/graph/algorithms.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

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
