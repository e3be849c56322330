// What a kernel's accesses would cost: 32-byte sectors of global memory and wavefronts of shared memory.
//
// The accesses of a warp's lanes at one site, the n-th since the lanes last met, are one request. A request of global
// memory moves the sectors it touches. One of shared memory is served in phases of 128 bytes; a phase takes as many
// wavefronts as the bank with the most words has of them. Perfect: sectors * 32 = bytes moved, wavefronts = phases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dlc::emu {

struct Traffic {
  uint64_t requests = 0, sectors = 0, bytes = 0;
};

struct SharedTraffic {
  uint64_t phases = 0, wavefronts = 0;
};

struct Counters {
  uint64_t launches = 0, blocks = 0;
  Traffic loads, stores;  // global
  SharedTraffic shared_loads, shared_stores;
  uint64_t mma = 0, ldmatrix = 0, async_copies = 0, shuffles = 0, barriers = 0, atomics = 0;
};

class AccessLog {  // of one warp
 public:
  void add(int lane, uintptr_t site, uintptr_t at, uint32_t bytes, bool write, bool shared);
  void flush(Counters& into);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    uintptr_t site;
    uint32_t nth;  // of the lane at the site
    uint8_t lane;
    bool write, shared;
    uint32_t bytes;
    uintptr_t at;
  };
  static constexpr size_t kMost = 1 << 17;  // of a loop without an end in sight, the first are counted

  std::vector<Entry> entries_;
  std::vector<uintptr_t> scratch_;
};

// Wavefronts that the addresses of one phase take: each reads `bytes` (a multiple of 4, or less than 4).
uint64_t wavefronts(const std::vector<uintptr_t>& at, uint32_t bytes);

}  // namespace dlc::emu
