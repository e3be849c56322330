// Static proof that an instruction program is legal, race-free, deadlock-free and within its counters, before it may
// run.
//
// Happens-before comes from queue order and semaphores: the k-th wait on a semaphore follows what must have been
// signalled by then in every interleaving. Two instructions of different queues that touch common bytes, one of them
// writing, must be ordered by it. Because a semaphore is waited on by one queue only, the counting semantics is
// confluent: one run to the end proves that all runs end, and delaying one queue as long as possible finds the highest
// count of its semaphores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"
#include "dlc/hw/encode.h"
#include "dlc/hw/footprint.h"

namespace dlc {

struct ProgramRace {
  int64_t first = 0, second = 0;  // instruction indices, first < second
  int space = -1;
  ByteRange bytes;  // the first common range
  bool first_writes = false, second_writes = false;
};

struct ProgramProblem {
  std::string kind;  // illegal, oob, overlap, waiters, deadlock, overflow, undefined
  int64_t instruction = -1;
  std::string message;
  int space = -1;  // of an oob
};

struct ProgramCheck {
  std::vector<ProgramProblem> problems;
  std::vector<ProgramRace> races;  // at most max_races
  std::vector<int64_t> highest;    // of each semaphore, over all interleavings
  bool ok() const { return problems.empty() && races.empty(); }
};

struct ProgramCheckOptions {
  std::vector<int64_t> words;  // per space, as for Footprints::of(); empty: the description's sizes
  size_t max_races = 16;
  // Reads of on-chip words that nothing before them has written. In a race-free program every interleaving agrees on
  // that, so one order is looked at.
  bool undefined = true;
};

Result<ProgramCheck> check_program(const HwDescription& hw, std::span<const Instruction> program,
                                   const ProgramCheckOptions& options = {});

// One line per problem and race, with the instructions in assembler text.
std::string report(const HwDescription& hw, std::span<const Instruction> program, const ProgramCheck& check);

}  // namespace dlc
