#include "core/interp/mac_kernels.h"

#define DLC_VECTOR_BYTES 16
#include "core/interp/mac_kernels.inc"

namespace dlc::interp {

const MacKernels kMacBaseline = {mac<float, float>,     mac<double, double>,   mac<float, double>,
                                 mac<int32_t, int32_t>, mac<int64_t, int64_t>, mac<int32_t, int64_t>};

const MacKernels& mac_kernels() {
#ifdef DLC_INTERP_AVX2
  if (__builtin_cpu_supports("avx2")) return kMacAvx2;
#endif
  return kMacBaseline;
}

}  // namespace dlc::interp
