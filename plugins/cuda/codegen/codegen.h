// Kernels to CUDA C++ text, and the launches that run it: generic lowering of any flat Kernel.
//
//   DLC_TRY(const cuda::Module m, cuda::generate(kernels));
//   m.text;                     // #include "dlc_dev.h" ... extern "C" __global__ void k0_conv_1(...) {...}
//   m.kernels[0].steps;         // what to launch for the first kernel, in order
//
// A statement is one CUDA function. Its points are spread over a grid, one a thread; where there are few points and a
// long reduction, a block computes a point together. A `seq` loop repeats the launches of its body. Parameters of a
// function: a pointer for each tensor that it uses, a long long for each symbol and for each seq variable around it,
// and where it may store an undefined value `unsigned* status`, which then gets the statement's 1-based number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/kernel/kernel.h"

namespace dlc::cuda {

struct Launch {
  std::string function;
  int statement = 0;                 // 1-based, in program order
  std::vector<int> tensors;          // of the kernel: the pointers
  std::vector<std::string> symbols;  // the kernel's, then seq variables
  bool has_status = false;
  Expr points;                   // over symbols and seq variables: how many there are to compute
  bool block_per_point = false;  // otherwise a thread for each
  int threads = 256;             // of a block
};

// A launch, or a loop over steps.
struct Step {
  Launch launch;
  std::string variable;  // of the loop; empty: a launch
  Expr extent;
  bool backwards = false;
  std::vector<Step> body;
};

struct KernelCode {
  std::vector<Step> steps;
};

struct Module {
  std::string text;
  std::vector<KernelCode> kernels;  // one for each that was given
};

Result<Module> generate(std::span<const Kernel* const> kernels);

}  // namespace dlc::cuda
