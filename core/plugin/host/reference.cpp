// Partitions that no backend compiles: ops without an index expression, run as their C++ references.
#include "dlc/plugin/reference.h"

namespace dlc {

namespace {

class ReferenceExecutable : public Executable {
 public:
  explicit ReferenceExecutable(Graph g) : graph_(std::move(g)), runner_(graph_) {}
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override { return runner_.run(inputs); }

 private:
  Graph graph_;
  GraphRunner runner_;
};

}  // namespace

Result<CompiledPartition> reference_partition(const Graph& g) {
  CompiledPartition part;
  part.device = kReferenceDevice;
  for (const ValueId v : g.inputs) part.inputs.push_back(g.value(v).name);
  part.outputs = g.output_names;
  part.program = print(g);
  for (size_t v = 0; v < g.value_count(); ++v) {
    const Value& value = g.value(static_cast<ValueId>(v));
    if (value.constant && !is_inline_constant(*value.constant)) part.weights.emplace_back(value.name, *value.constant);
  }
  return part;
}

Result<Graph> reference_graph(const CompiledPartition& part) {
  return parse_graph(part.program, "graph", [&](std::string_view name) -> std::optional<Tensor> {
    for (const auto& [weight, t] : part.weights)
      if (weight == name) return t;
    return std::nullopt;
  });
}

Result<std::unique_ptr<Executable>> reference_executable(const CompiledPartition& part) {
  DLC_TRY(Graph g, reference_graph(part));
  return std::make_unique<ReferenceExecutable>(std::move(g));
}

}  // namespace dlc
