#include "simulators/cuda/machine.h"

#include "simulators/cuda/block.h"

namespace dlc::emu {

bool Machine::run(const Launch& l) {
  global_.reset();
  released_.clear();
  const size_t before = faults.size();
  Block block(*this, l);
  ++counters[l.kernel].launches;
  int32_t number = 0;
  for (unsigned z = 0; z < l.grid.z; ++z)
    for (unsigned y = 0; y < l.grid.y; ++y)
      for (unsigned x = 0; x < l.grid.x; ++x)
        if (!block.run({x, y, z}, number++)) return false;
  return faults.size() == before;
}

}  // namespace dlc::emu
