// What an address or an instruction number of a compiled model is about: `dlc addr2op`.
#pragma once

#include "tools/dlc/streams.h"

namespace dlc::cli {

// Where something is: an instruction, or a word of a memory. Written as
//
//   97, 0x61              the instruction of this number, as EPC and reports have it
//   acc:12                a word of a memory on the chip
//   dram:0x12340          a byte of external memory, as it is on the bus
//   dram.arena:0x340      a byte of a segment
struct Place {
  std::string memory;  // empty: an instruction
  int64_t number = 0;
};
Result<Place> parse_place(const std::string& text);

// Of one stream: {"instructions": [...]}, and of a place in memory what lies there. docs/cli.md has the keys.
Result<Json> what_is_at(const Stream& s, const CompiledPartition& partition, const Place& place);

void add_addr2op(CLI::App& app, Context& cx);

}  // namespace dlc::cli
