// The contraction skeleton: sums of products of two reads as a register-blocked kernel over packed weights.
//
// It matches by loop classes, never by an op's name. A loop in lhs and rhs but not in the result is k; in one operand
// and the result it is m or n; in all three, batch. The n operand is the one that has the loop along which the result
// is contiguous: it becomes vectors, and the m operand is read in place, one broadcast scalar at a time, with whatever
// strides it has. GEMM, 1x1, KxK, strided, dilated and grouped convolutions, with activations row-major or in blocks of
// 16 channels, are the same thing here.
//
//   for m < 512, n < 512: Y[m, n] = max(B[n] + (sum[k < 512] A[m, k] * W[k, n]), 0)
//   -> for n_p < 11 (panels of 48), m (tiles of 8), n_i < 48:
//        Y[m, 48*n_p + n_i] = max(B[48*n_p + n_i] + (sum[k < 512] A[m, k] * W_packed[n_p, k, n_i]), 0)
//      the last 32 columns apart, and a kernel that packs W: run it once when W is a constant.
//
// An accumulator that is stored and read once (acc[m, n] = sum ...; Y[m, n] = f(acc[m, n])) stays in registers: f
// becomes the epilogue. A padded m operand (`X[...] ?: 0`) is copied into a temporary with a halo first.
#pragma once

#include <string>
#include <vector>

#include "codegen.h"

namespace dlc::cpu {

// The register tile; zeros are chosen. rows x cols points of m by `vectors` vectors of n.
struct ContractionTile {
  int vectors = 0;
  int64_t rows = 0, cols = 0;
  int64_t unroll = 0;       // of the innermost k loop
  int64_t block_bytes = 0;  // of the m operand that one pass over the panels walks (cache blocking)
  bool prefetch = true;     // of the next panel
};

struct PackedTensor {
  int source = -1, packed = -1;  // tensors of Plan::kernel
  Kernel pack;                   // in: source, out: packed
};

struct Plan {
  Kernel kernel;                     // the same function; constants of PackedTensor::packed are new tensors at the end
  std::vector<Schedule> schedules;   // of its assignments in program order
  std::vector<PackedTensor> packed;  // constants to pack before the first run
  std::vector<std::string> notes;    // one per statement of the result: the tile, or why it does not match
  Unit unit() const { return {&kernel, schedules}; }
};

// Always gives a plan; statements that do not match keep the default schedule, and the notes say why.
Result<Plan> plan_contractions(const Kernel& k, const Target& target, const ContractionTile& tile = {});

}  // namespace dlc::cpu
