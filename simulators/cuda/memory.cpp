#include "simulators/cuda/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace dlc::emu {
namespace {

constexpr size_t kPage = 4096, kAlignment = 256;  // that of cuMemAlloc

}  // namespace

Memory::~Memory() {
  for (auto& [begin, a] : allocations_) munmap(a.mapping, a.mapped);
}

void* Memory::allocate(size_t bytes) {
  if (bytes == 0 || bytes > capacity_ - used_) return nullptr;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t pages = (rounded + kPage - 1) / kPage * kPage;
  Allocation a;
  a.mapped = pages + kPage;
  a.mapping = mmap(nullptr, a.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (a.mapping == MAP_FAILED) return nullptr;
  auto* first = static_cast<unsigned char*>(a.mapping);
  mprotect(first + pages, kPage, PROT_NONE);
  std::memset(first, 0xff, pages);
  a.begin = reinterpret_cast<uintptr_t>(first) + pages - rounded;
  a.end = a.begin + bytes;
  a.written.assign(bytes, false);
  used_ += bytes;
  std::erase_if(freed_, [&](const auto& f) { return f.first < a.end && a.begin < f.first + f.second; });
  const uintptr_t begin = a.begin;
  allocations_.emplace(begin, std::move(a));
  return reinterpret_cast<void*>(begin);
}

bool Memory::free(void* p) {
  const auto it = allocations_.find(reinterpret_cast<uintptr_t>(p));
  if (it == allocations_.end()) return false;
  used_ -= it->second.end - it->second.begin;
  freed_[it->first] = it->second.end - it->second.begin;
  munmap(it->second.mapping, it->second.mapped);
  allocations_.erase(it);
  last_ = nullptr;
  return true;
}

Allocation* Memory::find(uintptr_t at) {
  if (last_ && at >= last_->begin && at < last_->end) return last_;
  auto it = allocations_.upper_bound(at);
  if (it == allocations_.begin()) return nullptr;
  --it;
  if (at >= it->second.end) return nullptr;
  return last_ = &it->second;
}

Allocation* Memory::holder(uintptr_t at, size_t bytes) {
  Allocation* a = find(at);
  return a && bytes <= a->end - at ? a : nullptr;
}

bool Memory::written(uintptr_t at, size_t bytes) {
  const Allocation* a = holder(at, bytes);
  if (!a) return false;
  const auto first = a->written.begin() + static_cast<ptrdiff_t>(at - a->begin),
             last = first + static_cast<ptrdiff_t>(bytes);
  return std::find(first, last, false) == last;
}

void Memory::set_written(uintptr_t at, size_t bytes) {
  if (Allocation* a = holder(at, bytes)) {
    const auto first = a->written.begin() + static_cast<ptrdiff_t>(at - a->begin);
    std::fill(first, first + static_cast<ptrdiff_t>(bytes), true);
  }
}

std::string Memory::describe(uintptr_t at, int64_t* offset) const {
  constexpr uintptr_t kNear = 1 << 20;
  std::string name = "no allocation";
  *offset = static_cast<int64_t>(at);
  uintptr_t nearest = kNear;
  const auto consider = [&](uintptr_t begin, size_t size, const char* what) {
    const uintptr_t distance = at < begin ? begin - at : at < begin + size ? 0 : at - begin - size;
    if (distance >= nearest) return;
    nearest = distance;
    name = fmt::format("{} of {} bytes", what, size);
    *offset = static_cast<int64_t>(at - begin);
  };
  for (const auto& [begin, a] : allocations_) consider(begin, a.end - begin, "allocation");
  for (const auto& [begin, size] : freed_) consider(begin, size, "freed allocation");
  return name;
}

}  // namespace dlc::emu
