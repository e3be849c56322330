// Kernels with mistakes: NAME_0 is right, NAME_i has mistake i. The tests say what must be found of each.
#include "dlc_dev.h"

#define EXPORT(NAME, BUG, PARAMS, ARGS)                                               \
  extern "C" __global__ void __launch_bounds__(1024) NAME##_##BUG PARAMS { NAME<BUG> ARGS; } \
  DLC_KERNEL_EXPORT(NAME##_##BUG)

// ---- C[M,N] = A[M,K] B[K,N] in tiles of 32 x 32 x 32, three stages of cp.async, 4 warps of 16 x 16; K and N are
// multiples of 8.

constexpr int kTile = 32, kRow = kTile + 8, kStages = 3, kStageBytes = 2 * 2 * kTile * kRow;

template <int bug>
DLC_D void gemm(const f16* a, const f16* b, float* c, int m, int n, int k) {
  DLC_SHARED_DYNAMIC(bytes);
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  const int m0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile, wm = warp % 2 * 16, wn = warp / 2 * 16;
  const int steps = (k + kTile - 1) / kTile;
  const auto load = [&](int step, int stage) {
    f16* sa = reinterpret_cast<f16*>(bytes + stage * kStageBytes);
    f16* sb = sa + kTile * kRow;
    const int row = tid / 4, column = tid % 4 * 8, k0 = step * kTile;
    const bool in_a = (bug == 5 || m0 + row < m) && k0 + column < k;
    dlc::cp_async<16>(sa + row * kRow + column, in_a ? a + (m0 + row) * k + k0 + column : a, in_a);
    const bool in_b = (bug == 6 || k0 + row < k) && n0 + column < n;
    dlc::cp_async<16>(sb + row * kRow + column, in_b ? b + (k0 + row) * n + n0 + column : b, in_b);
  };
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) load(s, s);
    dlc::cp_async_commit();
  }
  float sum[2][4] = {};
  for (int step = 0; step < steps; ++step) {
    if (bug == 1)
      dlc::cp_async_wait<kStages - 1>();
    else if (bug != 2)
      dlc::cp_async_wait<kStages - 2>();
    if (bug != 3) dlc::sync_block();
    if (step + kStages - 1 < steps) load(step + kStages - 1, (step + kStages - (bug == 4 ? 0 : 1)) % kStages);
    dlc::cp_async_commit();
    const f16* sa = reinterpret_cast<const f16*>(bytes + step % kStages * kStageBytes);
    const f16* sb = sa + kTile * kRow;
    for (int kk = 0; kk < kTile; kk += 16) {
      uint32_t fa[4], fb[4];
      dlc::ldmatrix(fa, sa + (wm + lane % 16) * kRow + kk + lane / 16 * 8);
      dlc::ldmatrix_transposed(fb, sb + (kk + lane % 16) * kRow + wn + lane / 16 * 8);
      for (int j = 0; j < 2; ++j) {
        const uint32_t pair[2] = {fb[2 * j], fb[2 * j + 1]};
        dlc::mma_f16(sum[j], fa, pair);
      }
    }
  }
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 4; ++i) {
      const int row = m0 + wm + lane / 4 + i / 2 * 8, column = n0 + wn + 8 * j + lane % 4 * 2 + i % 2;
      if ((bug == 7 || row < m) && (bug == 8 || column < n)) c[row * n + column] = sum[j][i];
    }
}
#define GEMM(BUG) \
  EXPORT(gemm, BUG, (const f16* a, const f16* b, float* c, int m, int n, int k), (a, b, c, m, n, k))
GEMM(0) GEMM(1) GEMM(2) GEMM(3) GEMM(4) GEMM(5) GEMM(6) GEMM(7) GEMM(8)

// ---- y[row] = sum of a row of x, a block a row; 256 threads

template <int bug>
DLC_D void row_sum(const float* x, float* y, int n) {
  DLC_SHARED(float, parts, 8);
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const float* row = x + blockIdx.x * n;
  float sum = 0;
  for (int i = tid; bug == 1 ? i <= n : i < n; i += 256) sum += row[i];
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    if (bug == 2 && lane >= 16)
      sum += 0;
    else
      sum += dlc::shuffle_xor(sum, lanes);
  }
  if (lane == 0) parts[bug == 3 ? warp + 1 : warp] = sum;
  if (bug == 4) {
    if (warp < 4) dlc::sync_block();
  } else if (bug == 5) {
    if (warp < 4)
      dlc::sync_block();
    else
      dlc::sync_block();
  } else if (bug != 6) {
    dlc::sync_block();
  }
  if (tid == 0) {
    float total = 0;
    for (int w = 0; w < (bug == 7 ? 9 : 8); ++w) total += parts[w];
    y[bug == 8 ? 0 : blockIdx.x] = total;
  }
  if (bug == 9) parts[warp] = 0;  // thread 0 may still read them
  if (bug == 4) dlc::sync_block();
}
#define ROW_SUM(BUG) EXPORT(row_sum, BUG, (const float* x, float* y, int n), (x, y, n))
ROW_SUM(0) ROW_SUM(1) ROW_SUM(2) ROW_SUM(3) ROW_SUM(4) ROW_SUM(5) ROW_SUM(6) ROW_SUM(7) ROW_SUM(8) ROW_SUM(9)

// ---- y[i] = 2 x[i], four at a time

template <int bug>
DLC_D void scale(const float* x, float* y, int n) {
  const int i = 4 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (bug == 1 ? i > n : i >= n) return;
  if (bug == 2) return const_cast<float*>(x)[i] = 2, void();
  if (bug == 3) return y[i] += x[i], void();  // y was never written
  if (bug == 4) return y[i - 4] = x[i], void();
  auto v = dlc::load<4>(x + (bug == 5 ? i / 2 + 1 : i));
  for (int j = 0; j < 4; ++j) v[j] *= 2;
  dlc::store<4>(y + (bug == 6 ? i / 8 * 4 : i), v);
}
#define SCALE(BUG) EXPORT(scale, BUG, (const float* x, float* y, int n), (x, y, n))
SCALE(0) SCALE(1) SCALE(2) SCALE(3) SCALE(4) SCALE(5) SCALE(6)

// ---- y[i] = x[i'] with i' the mirror of i in its group of 32, through shared memory and without the block's barrier

template <int bug>
DLC_D void mirror(const unsigned char* x, unsigned char* y, int n) {
  DLC_SHARED_DYNAMIC(bytes);
  const int tid = threadIdx.x;
  if (bug == 1 && tid >= n) return;
  bytes[bug == 2 ? tid + 1 : tid] = x[tid];
  if (bug != 3) dlc::sync_warp();
  if (bug == 4 && tid % 32 == 7) return;
  if (tid % 32 < 16 || bug != 5) y[tid] = bytes[bug == 6 ? tid ^ 63 : tid ^ 31];
  if (bug == 5) dlc::atomic_add(reinterpret_cast<float*>(y), 1.0f);
  if (bug == 4) y[tid] = static_cast<unsigned char>(dlc::shuffle(bytes[tid], 7));
}
#define MIRROR(BUG) EXPORT(mirror, BUG, (const unsigned char* x, unsigned char* y, int n), (x, y, n))
MIRROR(0) MIRROR(1) MIRROR(2) MIRROR(3) MIRROR(4) MIRROR(5) MIRROR(6)

// ---- y[0] = sum over all blocks: each writes its part, the last one adds them

template <int bug>
DLC_D void all_sum(const float* x, float* parts, unsigned* counter, float* y, int n) {
  DLC_SHARED(float, warps, 32);
  DLC_SHARED(unsigned, last, 1);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const float part = dlc::of_block(i < n ? x[i] : 0.0f, warps, [](float a, float b) { return a + b; });
  if (bug == 1) {
    if (threadIdx.x == 0) y[0] = blockIdx.x == 0 ? part : y[0] + part;
    return;
  }
  if (bug == 2) {
    dlc::atomic_add(y, part);  // all threads, to what was never written
    return;
  }
  const unsigned writer = bug == 3 ? 40u : 0u;
  if (threadIdx.x == writer) parts[blockIdx.x] = part;
  if (bug == 4)
    last[0] = blockIdx.x == gridDim.x - 1;  // all threads write, and nobody waits for the other blocks
  else if (threadIdx.x == 0)
    last[0] = dlc::counter_add(counter, 1) == gridDim.x - 1;
  if (bug != 5) dlc::sync_block();
  if (last[0] && threadIdx.x == 0) {
    float total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += parts[b];
    y[0] = total;
  }
}
#define ALL_SUM(BUG)                                                                                 \
  EXPORT(all_sum, BUG, (const float* x, float* parts, unsigned* counter, float* y, int n), (x, parts, counter, y, n))
ALL_SUM(0) ALL_SUM(1) ALL_SUM(2) ALL_SUM(3) ALL_SUM(4) ALL_SUM(5)

// ---- a warp's operations with lanes or alignments that they do not take

template <int bug>
DLC_D void operations(const f16* x, float* y) {
  DLC_SHARED(f16, tile, 8 * 16);
  const int lane = threadIdx.x;
  for (int i = lane; i < 8 * 16; i += 32) tile[i] = x[i];
  dlc::sync_block();
  uint32_t r[2] = {0, 0}, a[4] = {0, 0, 0, 0};
  float c[4] = {};
  if (bug == 1 && lane == 31) return;
  if (bug == 2 && lane < 16) dlc::sync_warp();
  dlc::ldmatrix(r, tile + lane % 16 * 8 + (bug == 3 ? 1 : 0) + (bug == 4 && lane == 15 ? 8 : 0));
  dlc::mma_f16(c, a, r);
  if (bug == 5) dlc::cp_async<16>(y, x);
  if (bug == 6) {
    DLC_SHARED(float, large, 60000);
    large[lane] = 0;
  }
  if (bug == 7) {
    if (lane % 2) r[0] = dlc::shuffle_xor(r[0], 1);
    else r[0] = dlc::ballot(r[1] != 0);
  }
  y[lane] = static_cast<float>(r[0] & 255u) + c[0];
}
#define OPERATIONS(BUG) EXPORT(operations, BUG, (const f16* x, float* y), (x, y))
OPERATIONS(0) OPERATIONS(1) OPERATIONS(2) OPERATIONS(3) OPERATIONS(4) OPERATIONS(5) OPERATIONS(6) OPERATIONS(7)
