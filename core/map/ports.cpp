#include "core/map/ports.h"

#include <algorithm>

namespace dlc::map {

bool yields(const HwDescription& hw, int space, int queue, int other) {
  const HwState& memory = hw.state_of(space);
  const std::string& mine = hw.queues[static_cast<size_t>(queue)].name;
  const std::string& theirs = hw.queues[static_cast<size_t>(other)].name;
  if (queue == other || memory.conflict != "stall " + mine || memory.ports_per_bank) return false;
  bool shared = false;
  for (const HwPort& p : memory.ports) {
    const auto has = [&](const std::string& name) { return std::ranges::count(p.clients, name) > 0; };
    if (p.write || !has(mine)) continue;
    if (!has(theirs)) return false;  // it takes this one
    shared = true;
  }
  return shared;
}

}  // namespace dlc::map
