// Every device primitive once, on one warp or block, from words in memory to words in memory. The host's bodies are compared
// with references written out in conformance_test.cpp; on a GPU the same text shows whether the device's bodies agree.
#include "dlc_dev.h"

#define KERNEL(NAME, ...)                                           \
  extern "C" __global__ void __launch_bounds__(1024) NAME(__VA_ARGS__); \
  DLC_KERNEL_EXPORT(NAME)                                           \
  extern "C" __global__ void __launch_bounds__(1024) NAME(__VA_ARGS__)

// ---- lanes

KERNEL(shuffles, const uint32_t* x, uint32_t* y) {  // y: 5 rows of 32
  const int lane = dlc::lane();
  y[lane] = dlc::shuffle_xor(x[lane], 5);
  y[32 + lane] = dlc::shuffle_down(x[lane], 3);
  y[64 + lane] = dlc::shuffle_up(x[lane], 4);
  y[96 + lane] = dlc::shuffle(x[lane], 7 * lane);
  y[128 + lane] = dlc::ballot(x[lane] % 3 == 0);
}

template <class T>
DLC_D void shuffle_type(const unsigned long long* x, unsigned long long* y) {
  const int lane = dlc::lane();
  y[lane] = static_cast<unsigned long long>(dlc::shuffle_xor(static_cast<T>(x[lane]), 9));
}
KERNEL(shuffle_types, const unsigned long long* x, unsigned long long* y) {  // y: 7 rows of 32
  shuffle_type<float>(x, y);
  shuffle_type<double>(x, y + 32);
  shuffle_type<int>(x, y + 64);
  shuffle_type<unsigned>(x, y + 96);
  shuffle_type<long long>(x, y + 128);
  shuffle_type<unsigned long long>(x, y + 160);
  shuffle_type<bool>(x, y + 192);
}

KERNEL(block_sum, const int* x, int* y) {
  DLC_SHARED(int, parts, 32);
  const int tid = threadIdx.x;
  y[blockIdx.x * blockDim.x + tid] = dlc::of_block(x[blockIdx.x * blockDim.x + tid], parts, [](int a, int b) { return a + b; });
}

KERNEL(atomics, float* sum, unsigned* counter, unsigned* before, unsigned* status) {
  dlc::atomic_add(sum, 1.5f);
  before[blockIdx.x * blockDim.x + threadIdx.x] = dlc::counter_add(counter, 2);
  if (threadIdx.x % 32 == 3) dlc::report(status, threadIdx.x + 1);
}

// ---- memory

template <class T, int N>
DLC_D void move(const uint32_t* x, uint32_t* y, int words) {
  const T* from = reinterpret_cast<const T*>(x);
  T* to = reinterpret_cast<T*>(y);
  const int i = N * static_cast<int>(threadIdx.x);
  if (i * static_cast<int>(sizeof(T)) < 4 * words) dlc::store<N>(to + i, dlc::load<N>(from + i));
}
KERNEL(move_u8_2, const uint32_t* x, uint32_t* y, int words) { move<uint8_t, 2>(x, y, words); }
KERNEL(move_u8_16, const uint32_t* x, uint32_t* y, int words) { move<uint8_t, 16>(x, y, words); }
KERNEL(move_f16_2, const uint32_t* x, uint32_t* y, int words) { move<f16, 2>(x, y, words); }
KERNEL(move_f16_8, const uint32_t* x, uint32_t* y, int words) { move<f16, 8>(x, y, words); }
KERNEL(move_f32_2, const uint32_t* x, uint32_t* y, int words) { move<float, 2>(x, y, words); }
KERNEL(move_f32_4, const uint32_t* x, uint32_t* y, int words) { move<float, 4>(x, y, words); }
KERNEL(move_s64_2, const uint32_t* x, uint32_t* y, int words) { move<long long, 2>(x, y, words); }

// Lanes below 24 bring 4, 8 and 16 bytes each, the others zeros.
KERNEL(copies, const unsigned char* x, unsigned char* y) {
  DLC_SHARED_DYNAMIC(bytes);
  const int lane = dlc::lane();
  const bool there = lane < 24;
  dlc::cp_async<16>(bytes + 16 * lane, x + 16 * lane, there);
  dlc::cp_async_commit();
  dlc::cp_async<8>(bytes + 512 + 8 * lane, x + 8 * lane, there);
  dlc::cp_async_commit();
  dlc::cp_async<4>(bytes + 768 + 4 * lane, x + 4 * lane, there);
  dlc::cp_async_commit();
  dlc::cp_async_wait<1>();
  dlc::sync_block();
  for (int i = lane; i < 768; i += 32) y[i] = bytes[i];
  dlc::cp_async_wait<0>();
  dlc::sync_block();
  for (int i = 768 + lane; i < 896; i += 32) y[i] = bytes[i];
}

// x: 32 rows of 8 halves; y: of each lane the words of x1, x2, x4 and, transposed, x2, x4.
KERNEL(matrices, const uint16_t* x, uint32_t* y) {
  DLC_SHARED(uint16_t, tile, 32 * 8);
  const int lane = dlc::lane();
  for (int i = lane; i < 256; i += 32) tile[i] = x[i];
  dlc::sync_block();
  uint32_t a[1], b[2], c[4], d[2], e[4];
  const uint16_t* row = tile + 8 * lane;
  dlc::ldmatrix(a, row);
  dlc::ldmatrix(b, row);
  dlc::ldmatrix(c, row);
  dlc::ldmatrix_transposed(d, row);
  dlc::ldmatrix_transposed(e, row);
  uint32_t* out = y + 13 * lane;
  *out++ = a[0];
  for (int i = 0; i < 2; ++i) *out++ = b[i];
  for (int i = 0; i < 4; ++i) *out++ = c[i];
  for (int i = 0; i < 2; ++i) *out++ = d[i];
  for (int i = 0; i < 4; ++i) *out++ = e[i];
}

// ---- products: fragments of each lane as words

#define MMA(NAME, SUM)                                                                              \
  KERNEL(NAME, const uint32_t* a, const uint32_t* b, const SUM* c, SUM* y) {                        \
    const int lane = dlc::lane();                                                                   \
    uint32_t fa[4], fb[2];                                                                          \
    SUM sum[4];                                                                                     \
    for (int i = 0; i < 4; ++i) fa[i] = a[4 * lane + i], sum[i] = c[4 * lane + i];                  \
    for (int i = 0; i < 2; ++i) fb[i] = b[2 * lane + i];                                            \
    dlc::NAME(sum, fa, fb);                                                                         \
    for (int i = 0; i < 4; ++i) y[4 * lane + i] = sum[i];                                           \
  }
MMA(mma_f16, float)
MMA(mma_bf16, float)
MMA(mma_tf32, float)
MMA(mma_s8_s8, int)
MMA(mma_s8_u8, int)
MMA(mma_u8_s8, int)
MMA(mma_u8_u8, int)
#if defined(DLC_HOST_EMU) || __CUDA_ARCH__ >= 890
MMA(mma_e4m3, float)
MMA(mma_e5m2, float)
#endif

// ---- words of several numbers

KERNEL(packs, const float* x, uint32_t* y, int n) {  // y: 3 rows of n
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float next = x[i + 1 < n ? i + 1 : 0];
    y[i] = dlc::pack_f16(x[i], next);
    y[n + i] = dlc::pack_bf16(x[i], next);
    y[2 * n + i] = dlc::tf32(x[i]);
  }
}

KERNEL(nibbles, const uint32_t* x, int* y) {  // of each lane's word the 8 signed, then the 8 unsigned
  const int lane = dlc::lane();
  for (int i = 0; i < 8; ++i) {
    y[16 * lane + i] = dlc::s4(x[lane], i);
    y[16 * lane + 8 + i] = dlc::u4(x[lane], i);
  }
}

// ---- narrow floats: all bit patterns to f32, and f32 to bits

#define NARROW(TYPE, WORD)                                                                         \
  KERNEL(decode_##TYPE, const WORD* x, float* y, int n) {                                          \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)        \
      y[i] = dlc::to_float(TYPE{x[i]});                                                            \
  }                                                                                                \
  KERNEL(encode_##TYPE, const float* x, WORD* y, int n) {                                          \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)        \
      y[i] = dlc::to_##TYPE(x[i]).bits;                                                            \
  }
NARROW(f16, unsigned short)
NARROW(bf16, unsigned short)
NARROW(f8e4m3fn, unsigned char)
NARROW(f8e4m3fnuz, unsigned char)
NARROW(f8e5m2, unsigned char)
NARROW(f8e5m2fnuz, unsigned char)
NARROW(f8e8m0, unsigned char)
NARROW(f4e2m1, unsigned char)
