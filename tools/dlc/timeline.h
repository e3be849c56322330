// When each instruction ran, in the trace event format that Perfetto (ui.perfetto.dev) opens: a track of the layers,
// and tracks of each queue, on which an instruction is a slice with the name of its layer. A cycle is shown as 1 us.
#pragma once

#include <span>

#include "tools/dlc/streams.h"

namespace dlc::cli {

Json timeline(std::span<const Stream> streams);
// The track of a queue on which each instruction lies: 0, or another where one before it has not retired yet (a queue
// may have several in flight, and slices of one track must not overlap).
std::vector<int> lanes_of(const Stream& s);

}  // namespace dlc::cli
