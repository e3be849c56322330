// What the cpu plugin's "executable" holds: the prepared program's text, its machine code, and what that may use.
//
//   dlc.cpu 2 {"features": "+avx2,+fma,...", "program": 5120, "object": 81920, "kernels": [...]}
//   dlc.program 1 ...
//   (an ELF object file)
//
// Constants are not in it: they come beside it under the names of the program's buffers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "dlc/program/program.h"
#include "plugins/cpu/codegen/codegen.h"

namespace dlc::cpu {

std::vector<std::byte> pack(const Program& program, const ObjectFile& object, const Target& target);

struct Unpacked {
  Program program;    // without weights
  ObjectFile object;  // one kernel for each of the program's
};
// Refuses code that this machine cannot run.
Result<Unpacked> unpack(std::span<const std::byte> executable);

}  // namespace dlc::cpu
