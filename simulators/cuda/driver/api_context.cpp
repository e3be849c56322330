// cuInit, devices, contexts, names of errors.
#include <cstdio>
#include <cstdlib>

#include "simulators/cuda/driver/driver.h"

using namespace dlc::emu;

namespace {

CUcontext primary() { return reinterpret_cast<CUcontext>(&process()); }

template <class F>
CUresult of_device(CUdevice d, F f) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (!p.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (d != 0) return CUDA_ERROR_INVALID_DEVICE;
  return f(p);
}

}  // namespace

DLC_CUDA_API CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (p.initialised) return CUDA_SUCCESS;
  if (const char* text = std::getenv("DLC_CUDA_EMU"))
    if (!configure(text, p.options)) return CUDA_ERROR_INVALID_VALUE;
  p.initialised = true;
  return CUDA_SUCCESS;
}

DLC_CUDA_API CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

DLC_CUDA_API CUresult cuDeviceGetCount(int* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  return of_device(0, [&](Process&) {
    *count = 1;
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  return of_device(ordinal, [&](Process&) {
    *device = 0;
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  return of_device(device, [&](Process& p) {
    std::snprintf(name, static_cast<size_t>(bytes), "%s", p.options.name.c_str());
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  return of_device(device, [&](Process& p) {
    *bytes = p.options.memory;
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  return of_device(device, [&](Process& p) {
    const Options& o = p.options;
    const std::map<int, int> values = {{kMaxThreadsPerBlock, static_cast<int>(o.threads_per_block)},
                                       {kMaxBlockDimX, 1024},
                                       {kMaxBlockDimY, 1024},
                                       {kMaxBlockDimZ, 64},
                                       {kMaxGridDimX, 0x7fffffff},
                                       {kMaxGridDimY, 65535},
                                       {kMaxGridDimZ, 65535},
                                       {kMaxSharedPerBlock, static_cast<int>(o.default_shared)},
                                       {kWarpSize, 32},
                                       {kMaxRegistersPerBlock, o.registers_per_sm},
                                       {kClockRate, o.clock_khz},
                                       {kMultiprocessorCount, o.sms},
                                       {kL2CacheSize, static_cast<int>(o.l2)},
                                       {kMaxThreadsPerMultiprocessor, 32 * o.warps_per_sm},
                                       {kComputeCapabilityMajor, o.major},
                                       {kComputeCapabilityMinor, o.minor},
                                       {kMaxSharedPerMultiprocessor, static_cast<int>(o.shared_per_sm)},
                                       {kMaxRegistersPerMultiprocessor, o.registers_per_sm},
                                       {kMaxSharedPerBlockOptin, static_cast<int>(o.shared_per_block)},
                                       {kMaxBlocksPerMultiprocessor, 32}};
    const auto it = values.find(attribute);
    if (it == values.end()) return CUDA_ERROR_INVALID_VALUE;
    *value = it->second;
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  return of_device(device, [&](Process& p) {
    if (!p.driver) p.driver = std::make_unique<Driver>(p.options);
    ++p.retained;
    *context = primary();
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return of_device(device, [&](Process& p) {
    if (p.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--p.retained == 0) p.driver.reset();
    return CUDA_SUCCESS;
  });
}

// Everything allocated is gone, and so is a fault.
DLC_CUDA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return of_device(device, [&](Process& p) {
    if (p.driver) p.driver = std::make_unique<Driver>(p.options);
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuCtxSetCurrent(CUcontext context) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (!p.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (context && (context != primary() || !p.driver)) return CUDA_ERROR_INVALID_CONTEXT;
  set_context(context != nullptr);
  return CUDA_SUCCESS;
}

DLC_CUDA_API CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = has_context() ? primary() : nullptr;
  return CUDA_SUCCESS;
}

DLC_CUDA_API CUresult cuCtxSynchronize() {
  return with_driver([](Driver& d) { return d.synchronise_all(); });
}

DLC_CUDA_API CUresult cuGetErrorName(CUresult result, const char** name) {
  static const std::map<CUresult, const char*> names = {
      {CUDA_SUCCESS, "CUDA_SUCCESS"},
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
      {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
      {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
      {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
      {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
      {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"}};
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  const auto it = names.find(result);
  *name = it == names.end() ? nullptr : it->second;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DLC_CUDA_API CUresult cuGetErrorString(CUresult result, const char** text) {
  if (text && result == CUDA_ERROR_LAUNCH_FAILED) {
    *text = "the emulator found a fault: see dlc_emu_report()";
    return CUDA_SUCCESS;
  }
  return cuGetErrorName(result, text);
}
