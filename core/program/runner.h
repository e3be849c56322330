// A program on the interpreter for many runs: kernels are prepared once for the sizes at hand.
//
//   ProgramRunner runner(program);       // which must outlive it and stay as it is
//   DLC_TRY(auto results, runner.run(inputs));
#pragma once

#include <optional>
#include <vector>

#include "dlc/program/state.h"

namespace dlc {

class ProgramRunner {
 public:
  explicit ProgramRunner(const Program& p, const InterpOptions& options = {}) : p_(p), options_(options) {}
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  // Without the inputs and outputs of states in place, whose memory is given.
  Result<std::vector<Tensor>> run_in_place(std::span<const Tensor> inputs, std::span<const StateMemory> states);

 private:
  Result<const PreparedKernel*> prepared(int kernel);

  const Program& p_;
  InterpOptions options_;
  Bindings symbols_;                                     // of the last run
  std::vector<std::optional<PreparedKernel>> prepared_;  // for them, by kernel
};

}  // namespace dlc
