// One kernel under new layouts: splitting loops, rewriting accesses, filling halos.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dlc/kernel/kernel.h"

namespace dlc::detail {

// The layout of a tensor of rank r: dim `channel` is split into blocks, the blocks' insides become the last dim; every
// other dim d is padded by lo[d], hi[d] elements that hold `fill`.
struct Blocked {
  size_t channel = 1;
  int64_t block = 16;
  std::vector<int64_t> lo, hi;  // halo; 0 for dims without
};

// What a kernel asks of a tensor it accesses, when its channel dim is split by `block`.
struct Demand {
  bool can_split = true;        // every channel index is a loop of a multiple of block, plus a multiple of block
  std::vector<int64_t> lo, hi;  // how far reads with default 0 reach outside, per dim
};
Demand demand_on(const Kernel& k, int tensor, size_t channel, int64_t block, const Ranges& symbols);

// The kernel with `layouts` (by tensor index) applied. Output tensors with a halo get statements that fill it with 0.
// Constants named in `layouts` have no halo.
Result<Kernel> apply_layouts(const Kernel& k, const std::map<int, Blocked>& layouts, const Ranges& symbols);

std::vector<Expr> physical_shape(const std::vector<Expr>& shape, const Blocked& b);

}  // namespace dlc::detail
