// Dead code: a node none of whose results is used vanishes, and so does a constant without users. Checks of what was
// assumed when the model was compiled stay.
//
//   %1 = relu(%x)          ->
//   %2 = neg(%x)               %2 = neg(%x)
//   out %2                     out %2
#include "core/passes/passes.h"
#include "dlc/graph/segments.h"

namespace dlc {

Result<> dce(Graph& g, PassContext& context) {
  std::vector<bool> used(g.value_count(), false);
  for (ValueId v : g.outputs) used[static_cast<size_t>(v)] = true;
  // A node is also alive when its result's shape gives a symbol its value and somebody uses that symbol.
  const auto found = found_symbols(g);
  const auto use = [&](const std::vector<std::string>& symbols) {
    for (const std::string& s : symbols)
      if (const auto it = found.find(s); it != found.end()) used[static_cast<size_t>(it->second)] = true;
  };
  if (!found.empty())
    for (ValueId v : g.outputs)
      for (const Expr& d : g.value(v).type.shape) use(d.symbols());
  const auto order = order_by_sizes(g);  // backwards, a size is used before it is found out
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    bool live = false;
    for (ValueId v : g.node(*n).outputs) live |= used[static_cast<size_t>(v)];
    live |= g.node(*n).op == "assumed";  // a check: what follows from sizes alone relies on it too
    if (!live) {
      g.erase(*n);
      ++context.counts["nodes"];
      continue;
    }
    if (!found.empty()) use(symbols_of(g, *n));
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
