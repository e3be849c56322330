// fill_lanes: taps of a convolution laid into channels, where an accelerator's vectors hold more than it has.
//
//   %y = int_conv(%x, @w, @b, @z) {stride = [2, 2], ...}      @w: [64, 3, 7, 7], vectors of 16: 49 steps with 3 lanes
//   ->  %p = windows(%x, @z) {axis = 3, window = 4, ...}      every second column begins a window of four
//       %y = int_conv(%p, @w', @b, @z)                        @w': [64, 12, 7, 2]: 14 steps with 12 lanes
//
// A window as long as the stride is what is called space to depth; longer ones repeat elements, which costs nothing
// where a vector has room. It is done where the input comes from outside, so that the host, which makes it anyway,
// makes it in this form. Exact: what is behind the last tap has weights of 0.
#pragma once

#include "dlc/graph/graph.h"
#include "dlc/hw/description.h"

namespace dlc {

// How many convolutions were changed. A machine without vectors of its own leaves the graph as it is.
Result<int64_t> fill_lanes(Graph& g, const HwDescription& hw);
Result<int64_t> fill_lanes(Graph& g, int64_t lanes);

}  // namespace dlc
