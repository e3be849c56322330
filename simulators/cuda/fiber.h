// Fibers: one stack for each thread of the block that is running, and the switch between a stack and the scheduler's.
//
//   Stacks stacks;
//   stacks.grow(64);
//   void* there = stacks.start(5, &entry), *here;
//   fiber_switch(&here, there);   // runs entry() until somebody switches to `here`
#pragma once

#include <cstddef>

namespace dlc::emu {

class Stacks {
 public:
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();

  bool grow(size_t count);                 // false: no memory
  void* start(size_t i, void (*entry)());  // a fresh stack whose first switch calls entry, which never returns
  bool contains(const void* p) const;

 private:
  static constexpr size_t kBytes = 64 * 1024;  // the last page of each is a guard
  unsigned char* memory_ = nullptr;
  size_t count_ = 0;
};

// Saves where this stack is in *save and goes on where `to` was saved.
void fiber_switch(void** save, void* to);

}  // namespace dlc::emu
