// LLVM's view of the target, for the files that make or link machine code.
#pragma once

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "codegen.h"

namespace dlc::cpu {

inline constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

void initialise_llvm();
Result<std::unique_ptr<llvm::TargetMachine>> machine(const Target& target);
// For linking alone: no code is made.
llvm::orc::JITTargetMachineBuilder machine_builder();

// CPU time of this thread, so that other load does not count.
double thread_ms();

}  // namespace dlc::cpu
