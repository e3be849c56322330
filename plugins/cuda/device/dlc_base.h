// What a kernel text and the machine under it agree on: words, places, shared memory, the block's barrier, entry
// points.
#pragma once

#ifndef DLC_HOST_EMU

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;

#define DLC_D __device__ __forceinline__
#define DLC_SHARED(T, name, count) __shared__ T name[count]
#define DLC_SHARED_DYNAMIC(name) extern __shared__ __align__(1024) unsigned char name[]
#define DLC_KERNEL_EXPORT(NAME)
#define DLC_LINE
#define DLC_ONLY_LINE
#define DLC_PASS_LINE

#else

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dlc_emu.h"

#define __global__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__
#define DLC_D inline __attribute__((always_inline))

#define threadIdx (dlc_emu->place->thread)
#define blockIdx (dlc_emu->place->block)
#define blockDim (dlc_emu->place->block_dim)
#define gridDim (dlc_emu->place->grid_dim)
// The line of the kernel text that calls a primitive, which is its last parameter.
#define DLC_LINE , int line = __builtin_LINE()
#define DLC_ONLY_LINE int line = __builtin_LINE()
#define DLC_PASS_LINE , line
#define DLC_SHARED(T, name, count) \
  T* const name = static_cast<T*>(dlc_emu->shared_array(__COUNTER__, sizeof(T) * (count), alignof(T)))
#define DLC_SHARED_DYNAMIC(name) unsigned char* const name = dlc_emu->place->shared

// dlc_emu_thunk_NAME(params) calls the kernel with what params point to; dlc_emu_params_NAME says what they are.
#define DLC_KERNEL_EXPORT(NAME)                                                      \
  extern "C" DLC_EMU_EXPORT DLC_EMU_PLAIN void dlc_emu_thunk_##NAME(void** params) { \
    dlc_emu_host::call(&NAME, params);                                               \
  }                                                                                  \
  extern "C" DLC_EMU_EXPORT const DlcEmuParam* dlc_emu_params_##NAME() { return dlc_emu_host::params(&NAME); }

#endif

namespace dlc {

DLC_D float float_of_bits(uint32_t bits) {
#ifdef DLC_HOST_EMU
  return __builtin_bit_cast(float, bits);
#else
  return __uint_as_float(bits);
#endif
}

DLC_D uint32_t bits_of_float(float x) {
#ifdef DLC_HOST_EMU
  return __builtin_bit_cast(uint32_t, x);
#else
  return __float_as_uint(x);
#endif
}

#ifndef DLC_HOST_EMU
// The address PTX wants of something in shared memory.
DLC_D uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
#endif

// All threads of the block that have not left the kernel, at the same place of the text: they see what any of them
// wrote.
DLC_D void sync_block(DLC_ONLY_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->block_barrier(line);
#else
  __syncthreads();
#endif
}

}  // namespace dlc
