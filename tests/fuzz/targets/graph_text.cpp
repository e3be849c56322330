// Graph text: what is valid prints, and reads back as the same text.
#include <cstdlib>

#include "dlc/graph/graph.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto g = dlc::parse_graph(dlc::fuzz::text(data, size));
  if (!g || !dlc::verify(*g)) return 0;
  const std::string text = dlc::print(*g);
  const auto weights = [&](std::string_view name) { return g->value(g->find(name)).constant; };
  const auto back = dlc::parse_graph(text, {}, weights);
  if (!back || dlc::print(*back) != text) std::abort();
  return 0;
}
