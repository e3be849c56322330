// What a call does, counted.
#pragma once

#include "core/map/target.h"

namespace dlc::map {

// Of the multiply-adds of a call those that its constants make use of: a place of a sum where every weight is 0 is no
// work. Such are the taps that fill_lanes lays behind the last one.
int64_t used_macs(const Target& t, int64_t macs);

}  // namespace dlc::map
