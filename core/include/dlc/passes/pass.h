// A pass is one function in one file with a name; a pipeline is a list of names you can read top to bottom.
//
// To write one: add core/passes/<name>.cpp with `Result<> my_pass(Graph&, PassContext&)`, declare it in
// core/passes/passes.h, and add one line to the table in core/passes/registry.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/graph/graph.h"

namespace dlc {

struct PassContext {
  // Statistics a pass wants shown with --timing, e.g. {"folded", 12}.
  std::map<std::string, int64_t> counts;
  // Constant folding stops above this many elements per result and operations in all.
  int64_t fold_elements = int64_t{1} << 24;
  int64_t fold_operations = int64_t{1} << 28;
};

struct PassInfo {
  std::string name;
  std::string summary;  // one line
  Result<> (*run)(Graph&, PassContext&);
};

struct PassTiming {
  std::string name;
  double ms = 0;
  std::map<std::string, int64_t> counts;
};

const std::vector<PassInfo>& graph_passes();               // every pass, sorted by name
const std::vector<std::string>& default_graph_pipeline();  // what compiling runs, in order

// Runs passes in order and verifies after each. `after` (optional) sees the graph after every pass: dumps, bisection.
Result<std::vector<PassTiming>> run_passes(Graph& g, const std::vector<std::string>& names,
                                           const std::function<void(const std::string&, const Graph&)>& after = {});

}  // namespace dlc
