// The entry functions of a library: where every buffer lies and which kernel is called when, as LLVM IR beside the
// kernels.
#pragma once

#include <span>
#include <string>

#include "dlc/program/program.h"
#include "plugins/cpu/codegen/codegen.h"
#include "plugins/cpu/weights.h"

namespace dlc::cpu {

struct DriverInput {
  const Program* program = nullptr;
  const Weights* weights = nullptr;
  std::string name;  // prefix of the functions
};

// Working memory: the arena and the temporaries of one kernel.
Expr workspace_bytes(const Program& p);

// Adds <name>_run, <name>_run_parallel and <name>_workspace_bytes; the kernels become the library's own.
void write_driver(const DriverInput& in, llvm::Module& module, std::span<const CompiledKernel> kernels);

}  // namespace dlc::cpu
