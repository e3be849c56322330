#include "dlc_dev.h"

// ---- kernel k1_mean: mean

// for i < 12: Y[i] = (sum[k < 1000] X[I[i], k]) / 1000.0
extern "C" __global__ void __launch_bounds__(256) dlc_k1_mean_s1(
    const float* __restrict__ X, const signed long long* __restrict__ I, float* __restrict__ Y,
    long long N, unsigned* status) {
  for (unsigned p = blockIdx.x; p < 12u; p += gridDim.x) {
    const int i = p;
    float sum = 0.0f;
    bool defined = true;
    for (int k = threadIdx.x; k < 1000; k += blockDim.x) {
      const long long i_1 = I[i];
      const float x = dlc::inside(i_1, N) ? X[k + i_1 * 1000] : 0.0f;
      sum = sum + x;
      defined = defined && dlc::inside(i_1, N);
    }
    DLC_SHARED(float, sum_parts, 32);
    sum = dlc::of_block(sum, sum_parts, [](float a, float b) -> float { return a + b; });
    DLC_SHARED(bool, defined_parts, 32);
    defined = dlc::of_block(defined, defined_parts, [](bool a, bool b) -> bool { return a && b; });
    const float t = sum / 1000.0f;
    if (threadIdx.x == 0) {
      if (defined) {
        Y[i] = t;
      } else {
        dlc::report(status, 1u);
      }
    }
  }
}
DLC_KERNEL_EXPORT(dlc_k1_mean_s1)

// for i < 1: Z[t] = (max[k < 3] X[t, k]) - 1.0
extern "C" __global__ void __launch_bounds__(32) dlc_k1_mean_s2(
    const float* __restrict__ X, f16* __restrict__ Z, long long N, long long t) {
  for (unsigned p = blockIdx.x * blockDim.x + threadIdx.x; p < 1u; p += gridDim.x * blockDim.x) {
    const int i = 0;
    float largest = (-dlc::infinity());
    for (int k = 0; k < 3; ++k) {
      const float x = X[(long long)k + t * 1000];
      largest = dlc::max(largest, x);
    }
    Z[t] = dlc::to_f16(largest - 1.0f);
  }
}
DLC_KERNEL_EXPORT(dlc_k1_mean_s2)
