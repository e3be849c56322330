// Several narrow elements in a word of 32 bits, as mma and 4-byte stores want them.
#pragma once

#include "dlc_base.h"
#include "dlc_num.h"

namespace dlc {

// Two 16-bit floats, the first in the low half.
DLC_D uint32_t pack_f16(float low, float high) {
#ifdef DLC_HOST_EMU
  return to_f16(low).bits | static_cast<uint32_t>(to_f16(high).bits) << 16;
#else
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#endif
}

DLC_D uint32_t pack_bf16(float low, float high) {
#ifdef DLC_HOST_EMU
  return to_bf16(low).bits | static_cast<uint32_t>(to_bf16(high).bits) << 16;
#else
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#endif
}

// The f32 nearest to x of the 19 bits that mma_tf32 reads; ties away from zero.
DLC_D uint32_t tf32(float x) {
#ifdef DLC_HOST_EMU
  const uint32_t word = bits_of_float(x);
  return (word & 0x7fffffffu) >= 0x7f800000u ? word : (word + 0x1000u) & ~0x1fffu;
#else
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
#endif
}

// Element i of a word of eight integers of 4 bits, the first in the lowest bits.
DLC_D int s4(uint32_t word, int i) { return static_cast<int32_t>(word << (28 - 4 * i)) >> 28; }
DLC_D int u4(uint32_t word, int i) { return static_cast<int>(word >> (4 * i) & 15u); }

}  // namespace dlc
