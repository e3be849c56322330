// Graphs from the lines of their text, and tensors to run them on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dlc/graph/graph.h"
#include "dlc_test/catch.h"
#include "dlc_test/tensors.h"

namespace dlc_test {

// `symbols` with its parentheses: "(N in 1..8)".
inline dlc::Graph parsed(std::string_view body, std::string_view symbols = "") {
  using namespace dlc;
  const std::string text = "dlc.graph 1\ngraph @g " + std::string(symbols) + " {\n" + std::string(body) + "}\n";
  REQUIRE_OK(Graph g, parse_graph(text));
  if (auto r = verify(g); !r) FAIL(to_string(r.error()));
  return g;
}

}  // namespace dlc_test
