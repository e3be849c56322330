// What lies in a machine's memories while a stream runs: which words an instruction wrote, and from when until when
// they were of use. It comes from what the instructions touch (dlc/hw/footprint.h) and when they ran.
#pragma once

#include <string>
#include <vector>

#include "tools/dlc/streams.h"

namespace dlc::cli {

// The words [low, high) that `instruction` wrote: from its start to the end of the last instruction that read them.
// Where an instruction leaves gaps between its words, they are taken with them.
struct MemoryRegion {
  int64_t low = 0, high = 0;
  int64_t begin = 0, end = 0;  // cycles
  size_t instruction = 0;
};

struct MemoryMap {
  std::string name;  // of the space: "acc", "dram.arena"
  int64_t words = 0, word_bytes = 0;
  std::vector<MemoryRegion> regions;  // in the order of their begin
};

// Of every memory that the stream writes; of external memory the segments.
Result<std::vector<MemoryMap>> memory_maps(const Stream& s);

}  // namespace dlc::cli
