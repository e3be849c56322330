// The functions of NVIDIA's driver that dlc calls, by dlopen: libcuda.so.1, or the emulator's library, which has the
// same.
//
//   DLC_TRY(const auto driver, cuda::Driver::open("libcuda.so.1"));
//   DLC_CHECK(driver->check(driver->cuInit(0), "cuInit"));
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "dlc/base/diag.h"

namespace dlc::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;

// Attributes of devices and functions, by their numbers in cuda.h.
enum : int { kMaxThreadsPerBlock = 1, kProcessors = 16, kMajor = 75, kMinor = 76 };

struct Driver {
  // Of the library's names: a `_v2` is part of some.
#define DLC_CUDA_FUNCTIONS(X)                                                                                         \
  X(cuInit, cuInit, unsigned)                                                                                         \
  X(cuDriverGetVersion, cuDriverGetVersion, int*)                                                                     \
  X(cuDeviceGetCount, cuDeviceGetCount, int*)                                                                         \
  X(cuDeviceGet, cuDeviceGet, CUdevice*, int)                                                                         \
  X(cuDeviceGetName, cuDeviceGetName, char*, int, CUdevice)                                                           \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, int*, int, CUdevice)                                                  \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, CUcontext*, CUdevice)                                         \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, CUdevice)                                                \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, CUdevice)                                                    \
  X(cuCtxSetCurrent, cuCtxSetCurrent, CUcontext)                                                                      \
  X(cuMemAlloc, cuMemAlloc_v2, CUdeviceptr*, size_t)                                                                  \
  X(cuMemFree, cuMemFree_v2, CUdeviceptr)                                                                             \
  X(cuMemsetD8Async, cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream)                                   \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, size_t, CUstream)                              \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, size_t, CUstream)                                    \
  X(cuStreamCreate, cuStreamCreate, CUstream*, unsigned)                                                              \
  X(cuStreamDestroy, cuStreamDestroy_v2, CUstream)                                                                    \
  X(cuStreamSynchronize, cuStreamSynchronize, CUstream)                                                               \
  X(cuEventCreate, cuEventCreate, CUevent*, unsigned)                                                                 \
  X(cuEventRecord, cuEventRecord, CUevent, CUstream)                                                                  \
  X(cuEventElapsedTime, cuEventElapsedTime, float*, CUevent, CUevent)                                                 \
  X(cuEventDestroy, cuEventDestroy_v2, CUevent)                                                                       \
  X(cuModuleLoadData, cuModuleLoadData, CUmodule*, const void*)                                                       \
  X(cuModuleUnload, cuModuleUnload, CUmodule)                                                                         \
  X(cuModuleGetFunction, cuModuleGetFunction, CUfunction*, CUmodule, const char*)                                     \
  X(cuLaunchKernel, cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    CUstream, void**, void**)                                                                                         \
  X(cuGetErrorName, cuGetErrorName, CUresult, const char**)                                                           \
  X(cuGetErrorString, cuGetErrorString, CUresult, const char**)
#define DLC_CUDA_MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
  DLC_CUDA_FUNCTIONS(DLC_CUDA_MEMBER)
#undef DLC_CUDA_MEMBER

  // Of the emulator alone; null in a real driver.
  const char* (*dlc_emu_report)() = nullptr;
  CUresult (*dlc_emu_configure)(const char*) = nullptr;
  CUresult (*dlc_emu_extents)(CUfunction, unsigned, const size_t*) = nullptr;

  static Result<std::shared_ptr<const Driver>> open(const std::string& library);
  bool is_emulator() const { return dlc_emu_report != nullptr; }
  Result<> check(CUresult r, const char* what) const;
};

}  // namespace dlc::cuda
