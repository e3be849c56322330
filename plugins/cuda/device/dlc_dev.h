// The device primitives that generated kernels are written with: all a kernel text includes.
//
// Every primitive stands once and has two bodies. On the device (NVRTC, nvcc) it is inline PTX or a built-in of CUDA;
// under DLC_HOST_EMU it is C++ that the emulator runs (simulators/cuda). No header of CUDA is needed for either.
//
//   #include "dlc_dev.h"
//   extern "C" __global__ void __launch_bounds__(256) scale(const float* x, float* y, long long n) {
//     const long long i = blockIdx.x * 256ll + threadIdx.x;
//     if (i < n) y[i] = 2.0f * x[i];
//   }
//   DLC_KERNEL_EXPORT(scale)
//
// A kernel text uses of CUDA itself: __global__, __launch_bounds__, __restrict__, threadIdx, blockIdx, blockDim,
// gridDim and #pragma unroll. DLC_SHARED(float, parts, 32) is an array in shared memory, DLC_SHARED_DYNAMIC(bytes) what
// the launch asked for. Lanes that wait for each other wait at the same line of the text.
#pragma once

#include "dlc_base.h"
#include "dlc_copy.h"
#include "dlc_mma.h"
#include "dlc_num.h"
#include "dlc_pack.h"
#include "dlc_warp.h"
