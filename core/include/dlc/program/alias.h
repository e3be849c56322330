// Alias sets: buffers that need no bytes of their own, found from what the kernels access.
//
//   @relu:    a[n, c] = max(x[n, c], 0)               @relu:    y[n, c]      = max(x[n, c], 0)
//   @scale:   b[n, c] = z[n, c] * 2             ->    @scale:   y[n, c + 16] = z[n, c] * 2
//   @concat:  y[n, c] = a[n, c] ?: b[n, c - 16]
//
// 1. What only moves elements is not done where its result can be a *view*: the operand of a concat is written where
//    the concat wants it, a slice or a transpose is read where it comes from. A view whose bytes follow each other is
//    an alias (`temp a: f32[...] in y at 4096`); any other is written into the kernels that access it, as index
//    arithmetic. Views keep their vectors: the last dim stays contiguous. A kernel that chooses between operands by the
//    place (`f(a ?: b)`, a concat fused with what follows) gets a statement for each, so that its reads need no guard.
// 2. An element-wise result takes the bytes of an operand that nobody reads afterwards (`temp b: f32[...] over a`).
//
// An output over the input that it is the next value of: dlc/program/state.h.
//
// Run it after layouts were chosen: they give buffers between kernels a form of their own, aliases tie forms together.
#pragma once

#include "dlc/program/program.h"

namespace dlc {

struct AliasStats {
  int views = 0;     // buffers that became part of another one
  int in_place = 0;  // results that took the bytes of an operand
  int calls = 0;     // that are gone
  int refused = 0;   // views and results that could not be proved right, and are not done
};

struct AliasOptions {
  int64_t align = 64;
  // Buffers lie in blocks of so many elements of dim 1, as [n][c / lanes][h][w][lanes]: a view has whole blocks.
  int64_t lanes = 1;
  bool in_place = true;  // also 2.
};

// Rewrites kernels, calls, buffers and the memory plan. What cannot be proved right is left out.
Result<AliasStats> alias_sets(Program& p, const AliasOptions& options = {});

// Bytes that calls write which do nothing but move elements: what alias_sets is there to reduce.
Expr copied_bytes(const Program& p);

// The proof, part of verify(): nothing is read before it is written, and no bytes are written while a value in them is
// still to be read.
Result<> check_aliases(const Program& p);

}  // namespace dlc
