// When a call's work is worth more than one thread: the same rule for code in memory and in libraries.
#pragma once

#include "dlc/kernel/access.h"

namespace dlc::cpu {

// Fewer operations than this are done sooner by one thread than they are handed out.
constexpr int64_t kWorthThreads = 200'000;

// Operations, and elements that are only moved.
inline Expr work_of(const Kernel& k) {
  Expr n = flops(k);
  for (const KernelTensor& t : k.tensors)
    if (t.role == Role::output) n += elements(t.shape);
  return n;
}

}  // namespace dlc::cpu
