// Whether the points of a statement's loops are independent: what one of them reads of the tensor that they write is
// the element that it writes itself, alone, or one that none of them writes. Others would be read before or after they
// are written, as a device pleases.
//
//   for i < N: Y[i] = Y[i] + 1                      its own
//   for i < 8: Y[2*i] = Y[2*i + 1]                  written by none
//   for i < N: Y[i] = Y[i + 1] ?: 0                 another's: a seq says which is first
//   for i < N, j < M: Y[i] = Y[i] + X[i, j]         its own, and that of M - 1 others
//
// Symbols that are no dims (the fields of an instruction) are not known here, so what they alone decide is not refused.
#pragma once

#include <optional>

#include "dlc/kernel/kernel.h"

namespace dlc {

struct DependentRead {
  Val read;
  bool own = false;  // the element that the point writes, which is not provably its alone
};
// The first that is not proved independent. `seqs` are the loops around s; its tensors and operands are right.
std::optional<DependentRead> dependent_read(const Kernel& k, const Stmt& s, const std::vector<Loop>& seqs);

}  // namespace dlc
