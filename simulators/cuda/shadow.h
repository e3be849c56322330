// Who touched which bytes last, and whether what follows is ordered behind it.
//
// Time of a block is a vector clock with an entry a warp: barriers join the clocks of all warps, every operation of a
// warp advances its own. An access is ordered behind another of the same warp if that is of the same lane or of an
// earlier time; behind one of another warp if this warp has seen that time. Blocks are ordered by counter_add alone.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "simulators/cuda/faults.h"

namespace dlc::emu {

using Clock = std::array<uint32_t, 32>;  // of a warp: what it has seen of each

struct Access {
  uint8_t warp = 0, lane = 0;
  bool write = false, atomic = false;
  int32_t block = 0;   // its number in the grid
  uint32_t epoch = 0;  // how often the block has released
  const Clock* clock = nullptr;
  const std::unordered_map<int32_t, uint32_t>* seen_blocks = nullptr;  // their epochs; those above are not seen
};

struct Found {
  const char* race = nullptr;
  bool pending = false;    // an asynchronous copy to these bytes is under way
  bool unwritten = false;  // by an access since the reset
};

class Shadow {
 public:
  void reset();  // forgets everything
  // What is wrong with an access to [at, at + bytes), which is noted in any case.
  Found touch(uintptr_t at, size_t bytes, const Access& a);
  void set_pending(uintptr_t at, size_t bytes, bool pending);

 private:
  static constexpr uint8_t kNobody = 255, kSeveral = 254;
  struct Who {
    uint32_t clock = 0;
    uint8_t warp = kNobody, lane = 0;
  };
  struct Cell {
    Who writer, readers[2];
    int32_t write_block = -1, read_block = -1;
    uint32_t write_epoch = 0, read_epoch = 0;
    bool written = false, atomic = false, pending = false;
  };
  // Cells of 4 bytes, until something smaller is touched: then of 1.
  struct Page {
    uint64_t generation = 0;
    size_t grain = 4;
    std::vector<Cell> cells;
  };
  static constexpr size_t kPageBytes = 4096;

  Page& page(uintptr_t at, bool fine);
  template <class F>
  void each_cell(uintptr_t at, size_t bytes, F f);
  static const char* check(Cell& c, const Access& a);
  static bool ordered(const Who& before, const Access& a);
  static bool ordered_block(int32_t block, uint32_t epoch, const Access& a);

  std::unordered_map<uintptr_t, Page> pages_;
  uint64_t generation_ = 1;
  uintptr_t last_number_ = ~uintptr_t{0};
  Page* last_ = nullptr;
};

}  // namespace dlc::emu
