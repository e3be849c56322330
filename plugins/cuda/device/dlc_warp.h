// Threads together: shuffles and votes of a warp, reductions of a block, atomics, which order blocks.
//
// All lanes of a warp that have not left the kernel call these at the same place of the text.
#pragma once

#include "dlc_base.h"

namespace dlc {

DLC_D int lane() { return static_cast<int>(threadIdx.x & 31u); }  // of blocks of one dimension

// Lanes see what others of the warp wrote to memory before it.
DLC_D void sync_warp(DLC_ONLY_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->warp_barrier(line);
#else
  __syncwarp();
#endif
}

DLC_D uint32_t shuffle_xor(uint32_t x, int mask DLC_LINE) {
#ifdef DLC_HOST_EMU
  return dlc_emu->shuffle(kEmuShuffleXor, x, static_cast<uint32_t>(mask), line);
#else
  return __shfl_xor_sync(0xffffffffu, x, mask);
#endif
}

// From the lane that is `by` further; the last lanes keep their own.
DLC_D uint32_t shuffle_down(uint32_t x, int by DLC_LINE) {
#ifdef DLC_HOST_EMU
  return dlc_emu->shuffle(kEmuShuffleDown, x, static_cast<uint32_t>(by), line);
#else
  return __shfl_down_sync(0xffffffffu, x, by);
#endif
}

DLC_D uint32_t shuffle_up(uint32_t x, int by DLC_LINE) {
#ifdef DLC_HOST_EMU
  return dlc_emu->shuffle(kEmuShuffleUp, x, static_cast<uint32_t>(by), line);
#else
  return __shfl_up_sync(0xffffffffu, x, by);
#endif
}

// From lane `from` modulo 32.
DLC_D uint32_t shuffle(uint32_t x, int from DLC_LINE) {
#ifdef DLC_HOST_EMU
  return dlc_emu->shuffle(kEmuShuffleIndex, x, static_cast<uint32_t>(from), line);
#else
  return __shfl_sync(0xffffffffu, x, from);
#endif
}

DLC_D float shuffle_xor(float x, int mask DLC_LINE) {
  return float_of_bits(shuffle_xor(bits_of_float(x), mask DLC_PASS_LINE));
}
DLC_D int32_t shuffle_xor(int32_t x, int mask DLC_LINE) {
  return static_cast<int32_t>(shuffle_xor(static_cast<uint32_t>(x), mask DLC_PASS_LINE));
}
DLC_D long long shuffle_xor(long long x, int mask DLC_LINE) {
  const unsigned long long bits = static_cast<unsigned long long>(x);
  const unsigned long long low = shuffle_xor(static_cast<uint32_t>(bits), mask DLC_PASS_LINE);
  return static_cast<long long>(
      static_cast<unsigned long long>(shuffle_xor(static_cast<uint32_t>(bits >> 32), mask DLC_PASS_LINE)) << 32 | low);
}
DLC_D unsigned long long shuffle_xor(unsigned long long x, int mask DLC_LINE) {
  return static_cast<unsigned long long>(shuffle_xor(static_cast<long long>(x), mask DLC_PASS_LINE));
}
DLC_D double shuffle_xor(double x, int mask DLC_LINE) {
#ifdef DLC_HOST_EMU
  return __builtin_bit_cast(double, shuffle_xor(__builtin_bit_cast(long long, x), mask, line));
#else
  return __longlong_as_double(shuffle_xor(static_cast<long long>(__double_as_longlong(x)), mask));
#endif
}

// Bit i: whether lane i's value is true.
DLC_D uint32_t ballot(bool x DLC_LINE) {
#ifdef DLC_HOST_EMU
  return dlc_emu->vote(x, line);
#else
  return __ballot_sync(0xffffffffu, x);
#endif
}

DLC_D bool shuffle_xor(bool x, int mask DLC_LINE) {
  return shuffle_xor(static_cast<uint32_t>(x), mask DLC_PASS_LINE) != 0;
}

// f over the x of all threads of the block, whole warps of them; every thread gets it. `parts`: 32 of shared memory.
template <class T, class F>
DLC_D T of_block(T x, T* parts, F f) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = f(x, shuffle_xor(x, lanes));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  sync_block();
  x = parts[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) x = f(x, parts[warp]);
  sync_block();  // the parts are free again
  return x;
}

// Keeps the first number that is not 0: which statement stored an undefined value.
DLC_D void report(unsigned* status, unsigned number DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->atomic_set_if_zero(status, number, line);
#else
  atomicCAS(status, 0u, number);
#endif
}

DLC_D void atomic_add(float* p, float x DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->atomic_add_f32(p, x, line);
#else
  ::atomicAdd(p, x);
#endif
}

// The value before. What this block wrote before it is seen by a block that then adds to the same counter: the last of
// the blocks that share a tile can sum what all of them wrote.
DLC_D uint32_t counter_add(uint32_t* p, uint32_t x DLC_LINE) {
#ifdef DLC_HOST_EMU
  return dlc_emu->atomic_add_u32(p, x, line);
#else
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(x) : "memory");
  return before;
#endif
}

}  // namespace dlc
