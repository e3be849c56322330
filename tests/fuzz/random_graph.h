// Random graphs from the op records, each with inputs on which it can run: a node is kept when the interpreter computes
// numbers of reasonable size that mean something (see oracle.h), and dropped otherwise.
#pragma once

#include <cstdint>

#include "dlc/passes/reduce.h"

namespace dlc::fuzz {

// Nodes 1 to 12 of any record; every 4th graph has empty dims; every 3rd, symbols in place of equal extents.
Sample random_sample(uint64_t seed);

// A network as a quantising exporter writes it: int8 weights and activations between quantize_linear and
// dequantize_linear, of the records that a machine with recipes may commit to integers.
Sample random_quantised_sample(uint64_t seed);

// splitmix64
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  int64_t between(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(next() % static_cast<uint64_t>(hi - lo + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(between(0, static_cast<int64_t>(list.size()) - 1))];
  }

 private:
  uint64_t state_;
};

}  // namespace dlc::fuzz
