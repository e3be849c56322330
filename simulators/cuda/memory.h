// The device's memory: allocations, which bytes of them somebody wrote, and what a launch may touch.
//
// An allocation ends at a page that cannot be touched, so that the worst strays end the program even without checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dlc::emu {

struct Allocation {
  uintptr_t begin = 0, end = 0;
  void* mapping = nullptr;
  size_t mapped = 0;
  std::vector<bool> written;  // by byte
};

class Memory {
 public:
  explicit Memory(size_t capacity) : capacity_(capacity) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  void* allocate(size_t bytes);  // null: not enough; filled with bits that are NaN in every float
  bool free(void* p);            // false: p is no allocation
  Allocation* find(uintptr_t at);
  bool holds(uintptr_t at, size_t bytes) { return holder(at, bytes) != nullptr; }

  bool written(uintptr_t at, size_t bytes);  // all of it, in one allocation
  void set_written(uintptr_t at, size_t bytes);
  size_t used() const { return used_; }
  size_t capacity() const { return capacity_; }
  // "allocation of 64 bytes + 80" of the nearest one, which may be freed.
  std::string describe(uintptr_t at, int64_t* offset) const;
  const std::map<uintptr_t, Allocation>& allocations() const { return allocations_; }

 private:
  Allocation* holder(uintptr_t at, size_t bytes);

  size_t capacity_, used_ = 0;
  std::map<uintptr_t, Allocation> allocations_;  // by begin
  std::map<uintptr_t, size_t> freed_;            // begin and size, of those nothing new lies over
  Allocation* last_ = nullptr;
};

// Bytes a launch may touch: what one of its parameters points to, or a whole allocation where that is not known.
struct Region {
  uintptr_t begin = 0, end = 0;
  bool writable = true;
  std::string name;
};

}  // namespace dlc::emu
