// Where every buffer of a program lies, for one set of dims, and the calls with their pointers in place.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dlc/base/huge.h"
#include "dlc/interp/interp.h"
#include "dlc/program/program.h"
#include "plugins/cpu/codegen/codegen.h"

namespace dlc::cpu {

// The bytes of a tensor, and its shape; an error when a dim is not bound or the size is beyond the limit.
Result<int64_t> bytes_of(DType dtype, const std::vector<Expr>& dims, const Bindings& symbols,
                         std::vector<int64_t>* shape_out = nullptr);
inline int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct BoundCall {
  struct Part {
    StepFunction run = nullptr;
    int64_t extent = 1;
  };
  EntryPoint entry = nullptr;
  std::vector<void*> buffers;
  std::vector<int64_t> dims;
  std::vector<Part> steps;  // for several threads; empty: too little work, the entry does it
};

struct Placement {
  // A pointer that each run puts in: an input or output of the program, or a part of one.
  struct Moving {
    size_t call, slot, buffer;
    int64_t offset;
  };

  HugePages arena;  // temps, then the temporaries of one kernel
  int64_t arena_bytes = 0;
  std::vector<BoundCall> calls;
  std::vector<Moving> moving;
  std::vector<std::pair<size_t, std::byte*>> copied;  // outputs that lie inside another buffer

  // `constants`: of each buffer that is one, where its bytes are.
  static Result<Placement> make(const Program& p, std::span<const CompiledKernel> code,
                                std::span<const std::byte* const> constants, const Bindings& symbols);
};

}  // namespace dlc::cpu
