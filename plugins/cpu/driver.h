// The entry function of a library: where every buffer lies and which kernel is called when, as LLVM IR.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dlc/program/program.h"
#include "plugins/cpu/codegen/codegen.h"
#include "plugins/cpu/codegen/contraction.h"

namespace dlc::cpu {

struct DriverKernel {
  std::string symbol;                // of its function
  std::vector<std::string> symbols;  // its dims
  const Plan* plan = nullptr;
};

struct DriverInput {
  const Program* program = nullptr;
  std::vector<DriverKernel> kernels;
  // Byte offsets in the weights: of each program buffer (constants without alias), and of each call's packed tensors.
  std::vector<size_t> constants;
  std::vector<std::vector<size_t>> packed;
  std::vector<std::byte> weights;
  bool weights_inside = true;
};

// Working memory: the arena and the temporaries of one kernel.
Expr workspace_bytes(const DriverInput& in);

// An object file with <name>_run and <name>_workspace_bytes.
Result<std::vector<std::byte>> driver_object(const DriverInput& in, const Target& target, const std::string& name);

}  // namespace dlc::cpu
