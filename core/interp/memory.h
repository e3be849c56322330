// The state of one run: slot values and where every tensor's elements lie.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/interp/lower.h"
#include "dlc/interp/interp.h"

namespace dlc::interp {

struct Memory {
  std::byte* data = nullptr;  // element (0, ..., 0), which need not be inside the buffer for a view
  int64_t lowest = 0;         // byte offsets from data that an element may start at: lowest .. highest
  int64_t highest = -1;
  bool dense_bounds = true;  // every in-bounds index lies in lowest .. highest
  DType dtype = kF32;
  Elem elem = Elem::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // bytes
};

struct RunState {
  const Lowered* code = nullptr;
  std::vector<int64_t> env;  // by slot
  std::vector<Memory> tensors;

  int64_t& slot(int s) { return env[static_cast<size_t>(s)]; }
};

// Evaluates shapes and views, checks buffer sizes, allocates what has no buffer of its own (temporaries).
class Storage {
 public:
  Result<RunState> bind(const Lowered& code, std::span<const Buffer> buffers, const Bindings& parameters);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  Result<> place(RunState& run, size_t tensor, std::span<const Buffer> buffers);
  Result<> place_view(RunState& run, size_t tensor);
  std::vector<std::unique_ptr<std::byte[], Free>> owned_;
};

// "statement `Y[i] = X[i]` at i=3, j=4: message", with the kernel's model nodes.
std::unexpected<Error> stmt_error(const RunState& run, const StmtCode& s, const std::string& message,
                                  const std::vector<LoopCode>& around = {});

// An extent at the current point; negative ones are an error.
Result<int64_t> extent(const RunState& run, const StmtCode& s, const LoopCode& loop);

}  // namespace dlc::interp
