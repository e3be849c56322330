#include "simulators/cuda/fiber.h"

#include <sys/mman.h>

#include <cstdint>

extern "C" {
void dlc_emu_fiber_switch(void** save, void* to);
// Of AddressSanitizer, where it is linked in: a stack that is used anew carries the marks of whoever left it.
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void*, size_t);  // NOLINT: its own name
}

// The six registers a function must preserve, then the stack.
asm(R"(.text
.hidden dlc_emu_fiber_switch
.globl dlc_emu_fiber_switch
.type dlc_emu_fiber_switch, @function
dlc_emu_fiber_switch:
 pushq %rbp
 pushq %rbx
 pushq %r12
 pushq %r13
 pushq %r14
 pushq %r15
 movq %rsp, (%rdi)
 movq %rsi, %rsp
 popq %r15
 popq %r14
 popq %r13
 popq %r12
 popq %rbx
 popq %rbp
 ret
.size dlc_emu_fiber_switch, .-dlc_emu_fiber_switch
)");

namespace dlc::emu {

void fiber_switch(void** save, void* to) { dlc_emu_fiber_switch(save, to); }

Stacks::~Stacks() {
  if (memory_) munmap(memory_, count_ * kBytes);
}

bool Stacks::grow(size_t count) {
  if (count <= count_) return true;
  if (memory_) munmap(memory_, count_ * kBytes);
  count_ = 0;
  void* p = mmap(nullptr, count * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  memory_ = p == MAP_FAILED ? nullptr : static_cast<unsigned char*>(p);
  if (!memory_) return false;
  count_ = count;
  for (size_t i = 0; i < count; ++i)
    if (mprotect(memory_ + i * kBytes, 4096, PROT_NONE) != 0) return false;
  return true;
}

bool Stacks::contains(const void* p) const {
  const auto* at = static_cast<const unsigned char*>(p);
  return at >= memory_ && at < memory_ + count_ * kBytes;
}

void* Stacks::start(size_t i, void (*entry)()) {
  unsigned char* const bottom = memory_ + i * kBytes + 4096;
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(bottom, kBytes - 4096);
  auto** top = reinterpret_cast<void**>(memory_ + (i + 1) * kBytes - 64);
  *--top = nullptr;  // what entry would return to; it also aligns the stack as a call does
  *--top = reinterpret_cast<void*>(entry);
  for (int r = 0; r < 6; ++r) *--top = nullptr;
  return static_cast<void*>(top);
}

}  // namespace dlc::emu
