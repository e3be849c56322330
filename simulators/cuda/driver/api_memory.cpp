// Memory of the device and pinned memory of the host; copies and fills.
#include <cstring>

#include "simulators/cuda/driver/driver.h"

using namespace dlc::emu;

namespace {

void* pointer(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

// Memory that is not pinned is copied before the call returns, as a real driver may; other copies wait in the queue.
CUresult copy(void* to, const void* from, size_t bytes, CUstream stream, const void* host) {
  return with_driver([=](Driver& d) {
    Stream* s = d.stream(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (bytes == 0) return CUDA_SUCCESS;
    if ((to != host && !d.is_device(to)) || (from != host && !d.is_device(from)) || (host && d.is_device(host)))
      return CUDA_ERROR_INVALID_VALUE;
    const CUresult r = d.put(*s, [=](Driver& then) { return then.copy(to, from, bytes); });
    return r == CUDA_SUCCESS && host && !s->capturing && !d.is_pinned(host, bytes) ? d.synchronise(*s) : r;
  });
}

CUresult copy_now(void* to, const void* from, size_t bytes, const void* host) {
  const CUresult r = copy(to, from, bytes, nullptr, host);
  return r != CUDA_SUCCESS ? r : with_driver([](Driver& d) { return d.synchronise(d.default_stream); });
}

template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count, CUstream stream) {
  return with_driver([=](Driver& d) {
    Stream* s = d.stream(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (count == 0) return CUDA_SUCCESS;
    if (to % sizeof(T) != 0 || !d.machine.memory.holds(to, count * sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
    return d.put(*s, [=](Driver& then) {
      if (!then.machine.memory.holds(to, count * sizeof(T)))
        return then.fail(FaultKind::out_of_bounds, "fill", "its memory was freed");
      std::fill_n(reinterpret_cast<T*>(to), count, value);
      then.machine.memory.set_written(to, count * sizeof(T));
      return CUDA_SUCCESS;
    });
  });
}

template <class T>
CUresult fill_now(CUdeviceptr to, T value, size_t count) {
  const CUresult r = fill(to, value, count, nullptr);
  return r != CUDA_SUCCESS ? r : with_driver([](Driver& d) { return d.synchronise(d.default_stream); });
}

}  // namespace

DLC_CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t bytes) {
  if (!p || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    void* memory = d.machine.memory.allocate(bytes);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    *p = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuMemFree_v2(CUdeviceptr p) {
  return with_driver([&](Driver& d) {
    if (const CUresult r = d.synchronise_all()) return r;
    return p == 0 || d.machine.memory.free(pointer(p)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

DLC_CUDA_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    *total = d.machine.memory.capacity();
    *free = *total - d.machine.memory.used();
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  if (!p || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    std::unique_ptr<unsigned char[]> memory(new (std::nothrow) unsigned char[bytes]);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    *p = memory.get();
    const auto at = reinterpret_cast<uintptr_t>(*p);
    d.pinned_bytes[at] = bytes;
    d.pinned[at] = std::move(memory);
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuMemAllocHost_v2(void** p, size_t bytes) { return cuMemHostAlloc(p, bytes, 0); }

DLC_CUDA_API CUresult cuMemFreeHost(void* p) {
  return with_driver([&](Driver& d) {
    if (const CUresult r = d.synchronise_all()) return r;
    d.pinned_bytes.erase(reinterpret_cast<uintptr_t>(p));
    return d.pinned.erase(reinterpret_cast<uintptr_t>(p)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

DLC_CUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return from ? copy(pointer(to), from, bytes, stream, from) : CUDA_ERROR_INVALID_VALUE;
}

DLC_CUDA_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return to ? copy(to, pointer(from), bytes, stream, to) : CUDA_ERROR_INVALID_VALUE;
}

DLC_CUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(pointer(to), pointer(from), bytes, stream, nullptr);
}

DLC_CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return from ? copy_now(pointer(to), from, bytes, from) : CUDA_ERROR_INVALID_VALUE;
}

DLC_CUDA_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return to ? copy_now(to, pointer(from), bytes, to) : CUDA_ERROR_INVALID_VALUE;
}

DLC_CUDA_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now(pointer(to), pointer(from), bytes, nullptr);
}

DLC_CUDA_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill(to, value, count, stream);
}

DLC_CUDA_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return fill(to, value, count, stream);
}

DLC_CUDA_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return fill_now(to, value, count);
}
DLC_CUDA_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return fill_now(to, value, count);
}
