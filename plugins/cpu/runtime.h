// A program as machine code: compiled once, weights packed once, run many times.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dlc/plugin/backend.h"
#include "plugins/cpu/codegen/codegen.h"

namespace dlc::cpu {

// `program.weights` are used in place; their owner keeps them as long as the executable lives. `threads`: 0 is all of
// the machine's.
Result<std::unique_ptr<Executable>> make_executable(Program program, const Target& target, int threads);

}  // namespace dlc::cpu
