// What devices counted, as the top-level keys of a result.
#pragma once

#include <span>
#include <string>

#include "dlc/plugin/compiled.h"
#include "tools/dlc/cli.h"

namespace dlc::cli {

struct Counted {
  std::string device, counters;  // URI; JSON, which may hold anything
};

// Puts into `result`: partitions[] with each one's URI and counters; and of those that docs/cli.md lists, from all
// partitions together: the sums of cycles and sim_seconds, mac_utilization weighted by cycles, layers[] one after the
// other, and what only one of them has.
void add_counters(std::span<const Counted> parts, Json& result);
void add_counters(Session& s, Json& result);

// The layers whose cycles were counted, predicted beside measured, as lines of text; empty when there are none.
std::string layer_table(const Json& result);

// The URIs that the partitions run on, each once: "cpu:, asic:func".
std::string devices(const Session& s);

}  // namespace dlc::cli
