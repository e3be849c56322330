// When each instruction of a program starts and retires, by the description alone: `cycles` of its text, the queues and
// their semaphores, and `cost` for what happens between the engines (fetch, issue, bus).
//
//   const auto times = predict_times(hw, program);   // times.back().retire: cycles of the whole program
//
// It replays the stream through the queues, an instruction at a time: each is fetched in order, waits for a place in
// its queue, for the one before it, and for its semaphores. Data do not matter, so it is exact where `cost` is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dlc/hw/description.h"
#include "dlc/hw/encode.h"

namespace dlc {

// In cycles from the start of the program.
struct InstructionTime {
  int64_t start = 0, retire = 0;
};

// The program's signals must stand before the waits that they meet, as in every compiled program.
std::vector<InstructionTime> predict_times(const HwDescription& hw, std::span<const Instruction> program);

}  // namespace dlc
