// Which loops become the lanes of a strip: those along which most accesses have stride one (or none), and which are
// long enough to pay for an instruction's start.
#pragma once

#include "core/interp/lower.h"

namespace dlc::interp {

struct Task;

struct Lanes {
  int row = -1, col = -1;  // slots; -1: none
};

// For a statement. None when its value is one reduction better run along its own loops.
Lanes choose_lanes(const Lowered& code, const Task& task);
// For a reduction that has lanes of its own.
Lanes choose_lanes(const Lowered& code, const Node& reduction);

}  // namespace dlc::interp
