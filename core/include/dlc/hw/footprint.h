// What an instruction touches: for each memory the bytes it reads and writes, from the access maps of its `does`.
//
// The maps are taken apart once per form (FormAccesses); for an instruction only field values are put in. Where an
// index depends on data, or a condition on several loops, the set is an upper bound and `exact` is false.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"
#include "dlc/hw/encode.h"

namespace dlc {

// Half-open range of byte offsets.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Sorted, disjoint, not touching.
using ByteSet = std::vector<ByteRange>;
void normalise(ByteSet& set);
// The first common range, or nullopt.
std::optional<ByteRange> first_overlap(const ByteSet& a, const ByteSet& b);
// All of base + sum i_d * dims[d].stride + [0, width) for 0 <= i_d < dims[d].count. More than `limit` pieces: the hull,
// and *exact becomes false.
struct StridedDim {
  int64_t stride = 0;
  int64_t count = 1;
};
ByteSet strided_set(int64_t base, std::vector<StridedDim> dims, int64_t width, bool* exact, size_t limit = 1 << 16);

struct Footprint {
  int space = -1;
  bool write = false;
  bool exact = true;
  ByteSet bytes;
};

// An access outside its memory.
struct OutOfBounds {
  int space = -1;
  bool write = false;
  int64_t lowest = 0, highest = 0;  // of the first index
  int64_t words = 0;
};

// Bytes that one instruction reads at some point and writes at another: its result depends on an order that its text
// does not state. Reading and writing one element at one point (acc = acc + ...) is no such case.
struct SelfOverlap {
  int space = -1;
  ByteRange bytes;
};

struct FootprintResult {
  std::vector<Footprint> accesses;  // reads before writes, one entry per access of the text
  std::optional<OutOfBounds> out;   // accesses outside are not in `accesses`
  std::optional<SelfOverlap> self;
};

// The access maps of every form of every instruction. Thread-safe; keep one per description.
class Footprints {
 public:
  static Result<Footprints> make(const HwDescription& hw);

  // `words[s]` is the size of space s in words; empty: the sizes of the description. The instruction must be legal.
  Result<FootprintResult> of(const Instruction& i, std::span<const int64_t> words = {}) const;

  Footprints(Footprints&&) noexcept;
  Footprints& operator=(Footprints&&) noexcept;
  ~Footprints();

 private:
  struct Impl;
  explicit Footprints(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dlc
