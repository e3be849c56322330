#include "core/interp/mac_kernels.h"

#ifdef DLC_INTERP_AVX2
#define DLC_VECTOR_BYTES 32
#include "core/interp/mac_kernels.inc"

namespace dlc::interp {

const MacKernels kMacAvx2 = {mac<float, float>,     mac<double, double>,   mac<float, double>,
                             mac<int32_t, int32_t>, mac<int64_t, int64_t>, mac<int32_t, int64_t>};

}  // namespace dlc::interp
#endif
