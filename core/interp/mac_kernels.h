// The innermost loops of contractions: C[s][v] += sum over k of S[s][k] * V[k][v] on dense panels, one version per
// instruction set. Sums run over k in order and products are not fused, so every version gives the same bits.
#pragma once

#include <cstdint>

namespace dlc::interp {

// Rows of V are padded to a multiple of this many lanes.
inline constexpr int64_t kLanePadding = 32;

template <class Panel, class Acc>
using MacKernel = void (*)(const Panel* s, int64_t s_stride, int64_t s_count, const Panel* v, int64_t v_stride,
                           int64_t v_count, int64_t k_count, Acc* c, int64_t c_stride);

struct MacKernels {
  MacKernel<float, float> f32;
  MacKernel<double, double> f64;
  MacKernel<float, double> f32_to_f64;     // products rounded to f32
  MacKernel<int32_t, int32_t> s32;         // wraps
  MacKernel<int64_t, int64_t> s64;         // wraps
  MacKernel<int32_t, int64_t> s32_to_s64;  // products must fit in 32 bits
};

extern const MacKernels kMacBaseline;
#ifdef DLC_INTERP_AVX2
extern const MacKernels kMacAvx2;
#endif

// The best this processor runs.
const MacKernels& mac_kernels();

}  // namespace dlc::interp
