// Graph algorithms, done by Boost.Graph; this file is the only place that knows it, and its .cpp the only one that sees
// it.
//
// A Digraph is the bare shape of something: of a graph's nodes, of fusion groups. Vertices are 0 .. size-1.
#pragma once

#include <memory>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

class Digraph {
 public:
  explicit Digraph(size_t vertices);
  ~Digraph();
  Digraph(Digraph&&) noexcept;

  void add_edge(size_t from, size_t to);
  size_t size() const;

  // Sets of more than one vertex, each with a way to every other: why there is no topological order.
  std::vector<std::vector<size_t>> cycles() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Vertices are node ids (erased nodes have no edges), edges go from producer to user.
Digraph dataflow(const Graph& g);

}  // namespace dlc
