// Dead code: a node none of whose results is used vanishes, and so does a constant without users.
//
//   %1 = relu(%x)          ->
//   %2 = neg(%x)               %2 = neg(%x)
//   out %2                     out %2
#include "core/passes/passes.h"

namespace dlc {

Result<> dce(Graph& g, PassContext& context) {
  std::vector<bool> used(g.value_count(), false);
  for (ValueId v : g.outputs) used[static_cast<size_t>(v)] = true;
  const auto order = g.order();
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    bool live = false;
    for (ValueId v : g.node(*n).outputs) live |= used[static_cast<size_t>(v)];
    if (!live) {
      g.erase(*n);
      ++context.counts["nodes"];
      continue;
    }
    for (ValueId v : g.node(*n).inputs)
      if (v != kNoValue) used[static_cast<size_t>(v)] = true;
  }
  for (size_t v = 0; v < g.value_count(); ++v)
    if (!used[v] && g.value(static_cast<ValueId>(v)).constant) {
      g.release(static_cast<ValueId>(v));
      ++context.counts["constants"];
    }
  return {};
}

}  // namespace dlc
