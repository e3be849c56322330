// Partitions of extern ops (dlc/graph/segments.h): no backend compiles them, the runtime runs their C++ references.
//
// Such a partition's device is "reference", its program is `dlc.graph 1` text.
#pragma once

#include <memory>

#include "dlc/graph/graph.h"
#include "dlc/plugin/compiled.h"

namespace dlc {

inline constexpr const char* kReferenceDevice = "reference";
inline constexpr const char* kControlDevice = "control";  // control flow, whose bodies have partitions of their own

Result<CompiledPartition> reference_partition(const Graph& g);
Result<Graph> reference_graph(const CompiledPartition& part);
Result<std::unique_ptr<Executable>> reference_executable(const CompiledPartition& part);

}  // namespace dlc
