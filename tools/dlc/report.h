// What `dlc report` shows, as one JSON object, and the page that shows it (report/).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/dlc/streams.h"

namespace dlc::cli {

// How large a configuration of the RTL is: what `stat -json` of yosys wrote.
struct Cells {
  std::string configuration;
  int64_t total = 0;
  Json by_type = Json::object();
};
// CONFIGURATION=FILE, or FILE alone, whose name it is then.
Result<Cells> read_cells(const std::string& argument);

// `result`: of the run that measured, with the counters of its partitions; empty when nothing ran. docs/cli.md says
// what the object holds.
Result<Json> report_data(const CompiledModel& model, std::span<const Stream> streams, const Json& result,
                         std::span<const Cells> cells);
// One file that needs no other: style, code and data are in it.
std::string report_page(const Json& data);

}  // namespace dlc::cli
