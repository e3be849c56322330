#include "dlc_dev.h"

// ---- kernel k0_conv: layer1/conv, layer1/relu

// for n < 1, o < 32, y < 8, x < 8: Y[n, o, y, x] = max((sum[c < 16, kh < 3, kw < 3] (X[n, c, kh + y - 1, kw + x - 1] ?: 0.0) * W[o, c, kh, kw]) + B[o], 0.0)
extern "C" __global__ void __launch_bounds__(256) dlc_k0_conv(
    const f16* __restrict__ X, const f16* __restrict__ W, const float* __restrict__ B,
    f16* __restrict__ Y) {
  for (unsigned p = blockIdx.x * blockDim.x + threadIdx.x; p < 2048u; p += gridDim.x * blockDim.x) {
    const int n = 0;
    const int o = (int)(p / 64u % 32u);
    const int y = (int)(p / 8u % 8u);
    const int x = (int)(p % 8u);
    float sum = 0.0f;
    for (int c = 0; c < 16; ++c) {
      for (int kh = 0; kh < 3; ++kh) {
        for (int kw = 0; kw < 3; ++kw) {
          const bool inside = (dlc::inside(kh + y - 1, 8) && dlc::inside(kw + x - 1, 8));
          const float x_1 = inside ? dlc::to_float(X[c * 64 + kh * 8 + kw + n * 1024 + x + y * 8 - 9]) : 0.0f;
          const float w = dlc::to_float(W[c * 9 + kh * 3 + kw + o * 144]);
          sum = dlc::fma(x_1, w, sum);
        }
      }
    }
    const float b = B[o];
    Y[n * 2048 + o * 64 + x + y * 8] = dlc::to_f16(dlc::max(sum + b, 0.0f));
  }
}
DLC_KERNEL_EXPORT(dlc_k0_conv)
