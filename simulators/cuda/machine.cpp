#include "simulators/cuda/machine.h"

#include <cstdlib>

#include "simulators/cuda/block.h"

namespace dlc::emu {

Machine::Machine(const Options& o)
    : options(o),
      memory(o.memory),
      shared_bytes_((size_t{o.shared_per_block} + 8191) / 4096 * 4096),
      shared_(static_cast<unsigned char*>(std::aligned_alloc(4096, shared_bytes_)), std::free) {}

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
