// Large memory in huge pages, where the system gives them: the first touch of a small page costs microseconds.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace dlc {

inline constexpr size_t kHugePage = size_t{2} << 20;

// For memory that is not touched yet. Advice only; the part between the first and the last boundary is meant.
inline void prefer_huge_pages(void* memory, size_t bytes) {
  const auto begin = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) / kHugePage * kHugePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace dlc
