#include "core/graph/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace dlc::detail {

void rename_results(Graph& g, NodeId n, std::span<const std::string> names) {
  const std::vector<ValueId> results = g.node(n).outputs;
  size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  const std::string aside(longest + 1, '_');  // longer than any of the names
  for (const ValueId v : results) g.rename(v, aside);
  for (size_t i = 0; i < results.size(); ++i) g.rename(results[i], names[i]);
}

std::vector<std::string> result_names(const Graph& g, NodeId n) {
  std::vector<std::string> names;
  for (const ValueId v : g.node(n).outputs) names.push_back(g.value(v).name);
  return names;
}

Graph with_names_apart(Graph g) {
  std::map<std::string, ValueId, std::less<>> outputs;
  for (size_t i = 0; i < g.outputs.size(); ++i) outputs.emplace(g.output_names[i], g.outputs[i]);
  for (const NodeId n : g.order())
    for (const ValueId v : g.node(n).outputs) {
      const std::string name = g.value(v).name;
      const auto output = outputs.find(name);
      if (output == outputs.end() || output->second == v) continue;
      std::string other;
      for (int i = 1; other.empty() || outputs.contains(other) || g.find(other) != kNoValue; ++i)
        other = fmt::format("{}_{}", name, i);
      g.rename(v, other);
    }
  return g;
}

}  // namespace dlc::detail
