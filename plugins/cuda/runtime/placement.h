// Where every buffer of a program lies in one piece of the device's memory, for one set of dims.
//
//   temps as the memory plan has them | temporaries of one kernel | inputs | outputs | a status word for each call
#pragma once

#include <cstdint>
#include <vector>

#include "dlc/interp/interp.h"
#include "dlc/program/program.h"

namespace dlc::cuda {

struct Place {
  int64_t offset = 0;  // in the arena, or in the constants
  int64_t bytes = 0;
  bool is_constant = false;
};

// The tensors of a call's kernel; views have bytes 0.
struct PlacedCall {
  std::vector<Place> tensors;
};

struct Placement {
  int64_t arena_bytes = 0, status_offset = 0;
  std::vector<Place> buffers;
  std::vector<PlacedCall> calls;

  // `constants`: the offset of each buffer that is one.
  static Result<Placement> make(const Program& p, const std::vector<int64_t>& constants, const Bindings& symbols);
};

// The bytes of a tensor, and its shape; an error when a dim is not bound or the size is beyond the limit.
Result<int64_t> bytes_of(DType dtype, const std::vector<Expr>& dims, const Bindings& symbols,
                         std::vector<int64_t>* shape = nullptr);
inline int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace dlc::cuda
