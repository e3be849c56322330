// The kernel interpreter: strided, typed, fast enough for whole networks (<= 2 ns per multiply-accumulate on
// convolution and GEMM), and the oracle of every backend.
//
// A kernel is prepared once (affine accesses become base + strides, guards become loop bounds, inner loops become typed
// vector primitives) and run many times.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/kernel/kernel.h"

namespace dlc {

using Bindings = std::map<std::string, int64_t, std::less<>>;  // symbol -> value

struct InterpOptions {
  bool floats_as_double = false;  // compute and keep every float temporary in f64: the reference for tolerances
  bool tree_walk = false;         // the slow, obviously right evaluation; the check of the fast one
};

// One memory a prepared kernel runs over: the tensor's bytes at run time. Views have none of their own.
struct Buffer {
  std::byte* data = nullptr;
  int64_t bytes = 0;
};

class PreparedKernel {
 public:
  // Symbols left free in k become parameters of run(); binding them here makes faster code.
  static Result<PreparedKernel> prepare(const Kernel& k, const Bindings& bindings = {},
                                        const InterpOptions& options = {});
  // buffers[i] is the storage of tensors[i] (ignored for views; a temporary without data gets memory of the
  // interpreter's, as float temporaries always do under floats_as_double unless a view looks at their bytes). Input and
  // constant buffers are only read. Out-of-bounds stores and undefined values at a store or a condition are errors that
  // name the statement and the point; the tensors written are then in between. May be called from several threads.
  Result<> run(std::span<const Buffer> buffers, const Bindings& parameters = {}) const;

  PreparedKernel(PreparedKernel&&) noexcept;
  PreparedKernel& operator=(PreparedKernel&&) noexcept;
  ~PreparedKernel();

 private:
  struct Impl;
  explicit PreparedKernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Runs k on tensors, its assumptions checked: one per input (absent operands are skipped by an invalid Tensor), returns
// one per output. Dims that are symbols are bound from the input shapes; shape or dtype mismatches are errors.
Result<std::vector<Tensor>> run_kernel(const Kernel& k, std::span<const Tensor> inputs,
                                       const InterpOptions& options = {});

}  // namespace dlc
