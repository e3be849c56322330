// Products of small matrices by a warp: C[16,8] += A[16,K] B[K,8], K = 32 bytes of elements.
//
// With g = lane / 4, t = lane % 4 and E elements in a word (1 tf32, 2 of 16 bits, 4 of 8 bits), lowest bits first:
//   a[r]: row g + 8 (r % 2), columns E (t + 4 (r / 2)) ..     b[r]: rows E (t + 4 r) .., column g
//   c[i]: row g + 8 (i / 2), column 2 t + i % 2
// a is what ldmatrix of four matrices reads from rows of A, b[0..1] what it reads, transposed, from rows of B (16
// bits).
#pragma once

#include "dlc_base.h"

namespace dlc {

// K = 16.
DLC_D void mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuF16, kEmuF16, c, a, b, line);
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// K = 16.
DLC_D void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuBF16, kEmuBF16, c, a, b, line);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// K = 8, of words that tf32() made.
DLC_D void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuTF32, kEmuTF32, c, a, b, line);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// K = 32. Sums wrap.
DLC_D void mma_s8_s8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuS8, kEmuS8, c, a, b, line);
#else
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

DLC_D void mma_s8_u8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuS8, kEmuU8, c, a, b, line);
#else
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

DLC_D void mma_u8_s8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuU8, kEmuS8, c, a, b, line);
#else
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

DLC_D void mma_u8_u8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuU8, kEmuU8, c, a, b, line);
#else
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// K = 32, of the 8-bit floats e4m3fn and e5m2: from sm_89 on.
#if defined(DLC_HOST_EMU) || __CUDA_ARCH__ >= 890
DLC_D void mma_e4m3(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuE4M3, kEmuE4M3, c, a, b, line);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

DLC_D void mma_e5m2(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2] DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->mma(kEmuE5M2, kEmuE5M2, c, a, b, line);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

#endif

}  // namespace dlc
