// The emulated device: what it is, what it has, and the run of a launch on it.
//
// Blocks run one after another, each until all its threads have left; the order of its warps is shuffled by a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulators/cuda/counters.h"
#include "simulators/cuda/faults.h"
#include "simulators/cuda/fiber.h"
#include "simulators/cuda/memory.h"
#include "simulators/cuda/shadow.h"

namespace dlc::emu {

struct Options {
  bool checks = true;
  uint32_t seed = 0;  // 0: warps in order
  std::string name = "dlc emulated device";
  int major = 9, minor = 0, sms = 4, warps_per_sm = 64, registers_per_sm = 65536, clock_khz = 1000000;
  uint32_t threads_per_block = 1024, shared_per_block = 232448, shared_per_sm = 233472, default_shared = 49152;
  size_t memory = size_t{8} << 30, l2 = size_t{32} << 20;
};

struct Launch {
  std::string kernel;
  void (*thunk)(void**) = nullptr;
  std::vector<std::vector<unsigned char>> params;
  DlcEmuIndex grid{1, 1, 1}, block{1, 1, 1};
  uint32_t shared = 0;          // dynamic, in bytes
  std::vector<Region> regions;  // empty: all that is allocated
  Region constants;             // the module's own, which kernels may read
};

class Machine {
 public:
  explicit Machine(const Options& o);

  // False: a fault ended it, which stands in `faults`.
  bool run(const Launch& l);

  const Options options;
  Memory memory;
  std::vector<Fault> faults;
  std::map<std::string, Counters> counters;  // by kernel

 private:
  friend class Block;
  Stacks stacks_;
  size_t shared_bytes_;  // of a block, and room behind it: what comes after the last byte is seen, not touched
  std::unique_ptr<unsigned char, void (*)(void*)> shared_;                         // aligned as DLC_SHARED_DYNAMIC is
  Shadow global_;                                                                  // of the launch
  std::unordered_map<uintptr_t, std::unordered_map<int32_t, uint32_t>> released_;  // by counter: epochs of blocks
};

inline constexpr size_t kMostFaults = 16;  // of a launch; it ends there

}  // namespace dlc::emu
