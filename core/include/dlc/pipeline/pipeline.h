// Passes of every level by name: what `dlc opt --passes=...` and .dlct cases run.
//
//   DLC_TRY(Ir ir, parse_ir(text, "file"));                          // by its first line: dlc.graph, kernel or program
//   DLC_CHECK(run_pipeline(ir, {"fold", "lower", "layouts", "alias_sets"}));
//   print(ir)                                                        // dlc.program 1 ...
//
// A pass takes one level and leaves that level or the next; a list whose levels do not meet is refused before anything
// runs. A pass may have one argument: layouts(8), commit_numerics(asic.yaml).
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "dlc/graph/graph.h"
#include "dlc/hw/load.h"
#include "dlc/kernel/kernel.h"
#include "dlc/passes/pass.h"
#include "dlc/program/program.h"

namespace dlc {

using Ir = std::variant<Graph, Kernel, Program>;
enum class IrLevel : uint8_t { graph, kernel, program };  // in the order of Ir's alternatives
std::string_view to_string(IrLevel l);

struct PassArgument {
  std::string text;      // between the parentheses
  HwLoadOptions search;  // where descriptions of machines are looked for
};

struct IrPass {
  std::string name;
  std::string summary;   // one line
  std::string argument;  // what the argument is; empty: the pass takes none
  IrLevel takes = IrLevel::graph, leaves = IrLevel::graph;
  std::function<Result<>(Ir&, const PassArgument&, PassContext&)> run;
};

const std::vector<IrPass>& all_passes();  // those of the graph level too, by level and name

Result<Ir> parse_ir(std::string_view text, const std::string& file = {});
std::string print(const Ir& ir);
Result<> verify(const Ir& ir);

// Whether there are passes of these names, with arguments in the right form.
Result<> check_passes(const std::vector<std::string>& passes);
// In order, each followed by the verifier of its level.
Result<std::vector<PassTiming>> run_pipeline(Ir& ir, const std::vector<std::string>& passes,
                                             const HwLoadOptions& search = {});

}  // namespace dlc
