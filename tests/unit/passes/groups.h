// Running fusion groups one after the other, for comparison with the graph they came from.
#pragma once

#include <map>

#include "dlc/graph/graph.h"
#include "dlc/passes/fuse.h"
#include "dlc_test/catch.h"
#include "dlc_test/graph_text.h"

namespace dlc_test {

inline std::vector<dlc::Tensor> run_groups(const dlc::Graph& g, const std::vector<dlc::FusionGroup>& groups,
                                           const std::vector<dlc::Tensor>& inputs,
                                           const std::map<std::string, dlc::Expr, std::less<>>& symbols) {
  using namespace dlc;
  std::map<ValueId, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[g.inputs[i]] = inputs[i];
  const auto read = [&](ValueId v) {
    if (g.value(v).constant) return *g.value(v).constant;
    REQUIRE(values.contains(v));  // groups come in an order that can be executed
    return values.at(v);
  };
  for (const FusionGroup& group : groups) {
    REQUIRE_FALSE(group.is_extern);
    if (auto r = verify(group.kernel); !r) FAIL(to_string(r.error()) << "\n" << print(group.kernel));
    REQUIRE(group.kernel.inputs.size() == group.inputs.size());
    REQUIRE(group.kernel.outputs.size() == group.outputs.size());
    std::vector<Tensor> arguments;
    for (ValueId v : group.inputs) arguments.push_back(read(v));
    auto results = run_kernel(substitute(group.kernel, symbols), arguments);
    if (!results) FAIL(to_string(results.error()) << "\n" << print(group.kernel));
    for (size_t i = 0; i < results->size(); ++i) values[group.outputs[i]] = (*results)[i];
  }
  std::vector<Tensor> outputs;
  for (ValueId v : g.outputs) outputs.push_back(read(v));
  return outputs;
}

}  // namespace dlc_test
