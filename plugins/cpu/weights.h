// The constants of a library, in one piece: inside its object, or in a file beside it that is written while it is made.
//
//   0   "DLCW0001"
//   8   u64 XXH3 of what follows the first 64 bytes
//   64  constants in order of execution, each at a multiple of 64, zeros between them
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dlc/base/huge.h"
#include "plugins/cpu/prepare.h"

namespace dlc::cpu {

// Takes a piece of the file beside the library: it continues the file at `offset`, or replaces bytes that it has.
using PutWeights = std::function<Result<>(uint64_t offset, std::span<const std::byte> bytes)>;

struct Weights {
  static constexpr size_t kAlign = 64;

  std::vector<size_t> places;  // of each program buffer that is a constant without alias: its offset
  size_t size = 0;
  std::array<std::byte, kAlign> head{};  // the first bytes, which tell them from those of other models
  HugePages memory;                      // all of them; none when they went to a file

  bool is_inside() const { return memory.is_valid(); }
};

// `most_inside`: bytes beyond which they go to `put`, a constant at a time.
Result<Weights> make_weights(const Prepared& prepared, size_t most_inside, const PutWeights& put);

}  // namespace dlc::cpu
