// From a program to what is compiled of it. Every way out starts here: code in memory, .dlca, .so, .o and .a, the
// listings of --emit, the notes of `dlc explain`.
//
// What comes out is a program again, with text, verifier and interpreter: activations in blocked layouts, views instead
// of copies, kernels as the contraction skeleton planned them, and the operands that it wants packed as constants of
// the program. Beside it stands what a program's text has no words for: schedules, notes, and how each packed constant
// is made.
//
//   const  w: f32[64,64,3,3]        ->   const  w.packed: f32[2,64,3,3,32]
//   call @k0(x, w, t)               ->   call @k0(x, t, w.packed)
//
// Constants that nothing reads any more are gone. The others are in order of execution, so that what a kernel
// prefetches behind its last panel is the next kernel's first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dlc/program/alias.h"
#include "dlc/program/state.h"
#include "plugins/cpu/codegen/codegen.h"
#include "plugins/cpu/codegen/contraction.h"

namespace dlc::cpu {

// How a constant is made: `kernel`'s output from `from`.
struct PackedConstant {
  int buffer = -1;  // of Prepared::program
  Kernel kernel;
  Tensor from;
};

struct Prepared {
  Program program;                               // `weights` lacks the packed ones
  std::vector<std::vector<Schedule>> schedules;  // of each kernel
  std::vector<std::vector<std::string>> notes;   // of each kernel: what became of its statements, and why
  std::vector<PackedConstant> packed;
  int blocked_buffers = 0;
  AliasStats aliases;
  int states_in_place = 0;

  std::vector<Unit> units() const;
  bool is_packed(int buffer) const;
  std::vector<int> constants() const;  // the buffers that are constants without alias, in order of execution
  // The value of one: where it is already, or packed now in `memory`, which grows as it must.
  Result<std::span<const std::byte>> constant(int buffer, std::vector<std::byte>& memory) const;
  size_t constant_bytes(int buffer) const;
};

Result<Prepared> prepare(Program program, const Target& target);

}  // namespace dlc::cpu
