// Large memory in huge pages, where the system gives them: the first touch of a small page costs microseconds, and what
// is walked once per run (weights, activations) costs a tenth of the speed of a large matrix product in small pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "dlc/base/diag.h"

namespace dlc {

inline constexpr size_t kHugePage = size_t{2} << 20;

// For memory that is not touched yet. Advice only; the part between the first and the last boundary is meant.
inline void prefer_huge_pages(void* memory, size_t bytes) {
  const auto begin = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) / kHugePage * kHugePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

// A block of memory of its own.
class HugePages {
 public:
  HugePages() = default;
  HugePages(HugePages&& other) noexcept : base_(std::exchange(other.base_, nullptr)), mapped_(other.mapped_) {}
  HugePages& operator=(HugePages&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~HugePages() {
    if (base_ != nullptr) ::munmap(base_, mapped_);
  }

  // Zero-filled, aligned to a huge page.
  static Result<HugePages> allocate(int64_t bytes) {
    HugePages p;
    p.mapped_ = (static_cast<size_t>(bytes) / kHugePage + 2) * kHugePage;  // room to align
    void* m = ::mmap(nullptr, p.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return fail({}, "out of memory for " + std::to_string(bytes) + " bytes");
    p.base_ = m;
    prefer_huge_pages(m, p.mapped_);
    return p;
  }

  bool is_valid() const { return base_ != nullptr; }
  std::byte* data() const {
    const auto a = reinterpret_cast<uintptr_t>(base_);
    return reinterpret_cast<std::byte*>((a + kHugePage - 1) / kHugePage * kHugePage);
  }

 private:
  void* base_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace dlc
