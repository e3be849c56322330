// The entry functions of a library: where every buffer lies and which kernel is called when, as LLVM IR beside the
// kernels.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "dlc/program/program.h"
#include "plugins/cpu/codegen/codegen.h"

namespace dlc::cpu {

struct DriverInput {
  const Program* program = nullptr;
  std::string name;               // prefix of the functions
  std::vector<size_t> constants;  // of each program buffer that is one without alias: its byte offset in the weights
  std::span<const std::byte> weights;  // the first 16 bytes tell them from those of other models
  bool weights_inside = true;
};

// Working memory: the arena and the temporaries of one kernel.
Expr workspace_bytes(const Program& p);

// Adds <name>_run, <name>_run_parallel and <name>_workspace_bytes; the kernels become the library's own.
void write_driver(const DriverInput& in, llvm::Module& module, std::span<const CompiledKernel> kernels);

}  // namespace dlc::cpu
