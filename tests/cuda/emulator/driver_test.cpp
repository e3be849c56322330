// The driver's functions: what they do, and what they refuse.
#include "dlc_test/catch.h"
#include "emu.h"

namespace dlc::test {
namespace {

const std::string& image() { return module_of("kernels/planted.cu", true); }
constexpr int kN = 128;

CUstream new_stream(unsigned flags = kStreamNonBlocking) {
  CUstream s = nullptr;
  REQUIRE(Cuda::call("cuStreamCreate", &s, flags) == CUDA_SUCCESS);
  return s;
}

CUresult copy_out(std::vector<float>& to, Buffer from, CUstream s) {
  return Cuda::call("cuMemcpyDtoHAsync_v2", static_cast<void*>(to.data()), from.at, 4 * to.size(), s);
}

CUresult scale(const Kernels& k, Buffer x, Buffer y, CUstream s) {
  return k.launch("scale_0", {1, 1, 1}, {kN / 4, 1, 1}, 0, {x, y, kN}, s);
}

}  // namespace

TEST_CASE("a device says what it is") {
  const Device device(
      R"({"name": "little", "sms": 3, "major": 8, "minor": 9, "shared_per_block": 101376, "memory": 1000000})");
  char name[64];
  CHECK(Cuda::call("cuDeviceGetName", name, 64, CUdevice{0}) == 0);
  CHECK(std::string(name) == "little");
  const auto attribute = [](int a) {
    int v = -1;
    CHECK(Cuda::call("cuDeviceGetAttribute", &v, a, CUdevice{0}) == 0);
    return v;
  };
  CHECK(attribute(kMultiprocessorCount) == 3);
  CHECK(attribute(kComputeCapabilityMajor) == 8);
  CHECK(attribute(kComputeCapabilityMinor) == 9);
  CHECK(attribute(kMaxSharedPerBlockOptin) == 101376);
  CHECK(attribute(kWarpSize) == 32);
  int v = 0;
  CHECK(Cuda::call("cuDeviceGetAttribute", &v, 100000, CUdevice{0}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuDeviceGetAttribute", &v, int{kWarpSize}, CUdevice{1}) == CUDA_ERROR_INVALID_DEVICE);
  CUdevice d = 0;
  CHECK(Cuda::call("cuDeviceGet", &d, 1) == CUDA_ERROR_INVALID_DEVICE);
  size_t total = 0;
  CHECK(Cuda::call("cuDeviceTotalMem_v2", &total, CUdevice{0}) == 0);
  CHECK(total == 1000000);

  CUdeviceptr p = 0;
  CHECK(Cuda::call("cuMemAlloc_v2", &p, size_t{1000001}) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(Cuda::call("cuMemAlloc_v2", &p, size_t{0}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuMemAlloc_v2", &p, size_t{1000000}) == 0);
  size_t free = 1;
  CHECK(Cuda::call("cuMemGetInfo_v2", &free, &total) == 0);
  CHECK(free == 0);
  CHECK(Cuda::call("cuMemFree_v2", p + 256) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuMemFree_v2", p) == 0);
  CHECK(Cuda::call("cuMemFree_v2", p) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("what a device cannot be is refused") {
  for (const char* text :
       {"", "[]", "{\"seed\": -1}", "{\"checks\": 1}", "{\"threads_per_block\": 2048}", "{\"memory\": \"8\"}"}) {
    CAPTURE(text);
    CHECK(Cuda::call("dlc_emu_configure", text) == CUDA_ERROR_INVALID_VALUE);
  }
  const Device device;
  CHECK(Cuda::call("dlc_emu_configure", "{}") == CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE("without a context nothing is done") {
  {
    const Device device;
    CHECK(Cuda::call("cuCtxSetCurrent", CUcontext{nullptr}) == 0);
    CHECK(Cuda::call("cuCtxSynchronize") == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(Cuda::call("cuCtxSetCurrent", reinterpret_cast<CUcontext>(&Cuda::find)) == CUDA_ERROR_INVALID_CONTEXT);
  }
  CHECK(Cuda::call("cuCtxSynchronize") == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(Cuda::call("cuDevicePrimaryCtxRelease_v2", CUdevice{0}) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("errors have names") {
  const char* name = nullptr;
  CHECK(Cuda::call("cuGetErrorName", CUDA_ERROR_LAUNCH_FAILED, &name) == 0);
  CHECK(std::string(name) == "CUDA_ERROR_LAUNCH_FAILED");
  CHECK(Cuda::call("cuGetErrorName", CUresult{12345}, &name) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("modules and launches that cannot be are refused") {
  const Device device(R"({"threads_per_block": 512, "shared_per_block": 65536})");
  CUmodule m = nullptr;
  const std::string text(256, 'x');
  CHECK(Cuda::call("cuModuleLoadData", &m, static_cast<const void*>(text.data())) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string other = image().substr(0, 64) + text;
  other[16] = 2;  // a program, not a shared object
  CHECK(Cuda::call("cuModuleLoadData", &m, static_cast<const void*>(other.data())) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(Cuda::call("cuModuleUnload", reinterpret_cast<CUmodule>(&m)) == CUDA_ERROR_INVALID_HANDLE);

  REQUIRE(Cuda::call("cuModuleLoadData", &m, static_cast<const void*>(image().data())) == 0);
  CUfunction f = nullptr;
  CHECK(Cuda::call("cuModuleGetFunction", &f, m, "no_such_kernel") == CUDA_ERROR_NOT_FOUND);
  const Kernels kernels(image());
  const Buffer x = device.upload(std::vector<float>(kN, 1)), y = device.buffer(4 * kN);
  const auto launch = [&](Size grid, Size block, unsigned shared) {
    return kernels.launch("scale_0", grid, block, shared, {x, y, kN});
  };
  CHECK(launch({1, 1, 1}, {513, 1, 1}, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch({1, 1, 1}, {1, 1, 65}, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch({1, 1, 1}, {0, 1, 1}, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch({1, 65536, 1}, {1, 1, 1}, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch({0, 1, 1}, {1, 1, 1}, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch({1, 1, 1}, {32, 1, 1}, 65537) == CUDA_ERROR_INVALID_VALUE);
  f = kernels.function("scale_0");
  CHECK(Cuda::call("cuFuncSetAttribute", f, int{kFunctionMaxDynamicShared}, 65537) == CUDA_ERROR_INVALID_VALUE);
  void* none = nullptr;
  CHECK(Cuda::call("cuLaunchKernel", f, 1u, 1u, 1u, 32u, 1u, 1u, 0u, CUstream{nullptr}, static_cast<void**>(nullptr),
                   static_cast<void**>(nullptr)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuLaunchKernel", f, 1u, 1u, 1u, 32u, 1u, 1u, 50000u, CUstream{nullptr}, &none,
                   static_cast<void**>(nullptr)) == CUDA_ERROR_INVALID_VALUE);  // more than 48 KiB without having asked
  CHECK(Cuda::call("cuLaunchKernel", reinterpret_cast<CUfunction>(&f), 1u, 1u, 1u, 32u, 1u, 1u, 0u, CUstream{nullptr},
                   &none, static_cast<void**>(nullptr)) == CUDA_ERROR_INVALID_HANDLE);
  const size_t one = 1;
  CHECK(Cuda::call("dlc_emu_extents", f, 1u, &one) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(Cuda::call("cuModuleGetFunction", &f, m, "scale_0") == 0);
  CHECK(Cuda::call("cuModuleUnload", m) == 0);
  CHECK(Cuda::call("cuFuncSetAttribute", f, int{kFunctionMaxDynamicShared}, 0) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(device.finish() == 0);
}

TEST_CASE("copies are checked") {
  const Device device;
  const Buffer x = device.upload(std::vector<float>(kN, 1));
  std::vector<float> host(2 * kN);
  CHECK(Cuda::call("cuMemcpyHtoD_v2", CUdeviceptr{64}, static_cast<const void*>(host.data()), size_t{4}) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuMemsetD32_v2", x.at + 2, 0u, size_t{1}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuMemsetD8_v2", x.at, static_cast<unsigned char>(0), size_t{513}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuMemcpyDtoH_v2", static_cast<void*>(host.data()), x.at, size_t{4 * kN + 4}) ==
        CUDA_ERROR_LAUNCH_FAILED);
  CHECK(device.first_fault() == "out of bounds");
}

TEST_CASE("what nobody wrote is not copied to the host") {
  const Device device;
  const Buffer x = device.buffer(64);
  char host[64];
  CHECK(Cuda::call("cuMemsetD8_v2", x.at, static_cast<unsigned char>(7), size_t{63}) == 0);
  CHECK(Cuda::call("cuMemcpyDtoH_v2", static_cast<void*>(host), x.at, size_t{64}) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(device.first_fault() == "uninitialised");
}

TEST_CASE("work waits for a synchronisation") {
  const Device device;
  const Kernels kernels(image());
  const CUstream s = new_stream(), t = new_stream();
  const Buffer x = device.upload(std::vector<float>(kN, 1)), y = device.buffer(4 * kN), z = device.buffer(4 * kN);
  void* pinned = nullptr;
  REQUIRE(Cuda::call("cuMemAllocHost_v2", &pinned, size_t{4 * kN}) == 0);
  auto* out = static_cast<float*>(pinned);
  std::fill_n(out, kN, 0.0f);
  REQUIRE(scale(kernels, x, y, s) == 0);
  REQUIRE(Cuda::call("cuMemcpyDtoHAsync_v2", pinned, y.at, size_t{4 * kN}, s) == 0);
  CHECK(Cuda::call("cuStreamQuery", s) == CUDA_ERROR_NOT_READY);
  CHECK(out[0] == 0);
  CUevent first = nullptr, second = nullptr;
  REQUIRE(Cuda::call("cuEventCreate", &first, 0u) == 0);
  REQUIRE(Cuda::call("cuEventCreate", &second, 0u) == 0);
  REQUIRE(Cuda::call("cuEventRecord", first, s) == 0);
  CHECK(Cuda::call("cuEventQuery", first) == CUDA_ERROR_NOT_READY);
  // The other stream goes on only behind the event.
  REQUIRE(Cuda::call("cuStreamWaitEvent", t, first, 0u) == 0);
  REQUIRE(scale(kernels, y, z, t) == 0);
  REQUIRE(Cuda::call("cuEventRecord", second, t) == 0);
  float ms = -1;
  CHECK(Cuda::call("cuEventElapsedTime_v2", &ms, first, second) == CUDA_ERROR_NOT_READY);
  CHECK(Cuda::call("cuStreamSynchronize", t) == 0);
  CHECK(out[0] == 2);
  CHECK(device.download<float>(z) == std::vector<float>(kN, 4));
  CHECK(Cuda::call("cuEventElapsedTime_v2", &ms, first, second) == 0);
  CHECK(ms >= 0);
  CHECK(Cuda::call("cuMemFreeHost", pinned) == 0);
  CHECK(Cuda::call("cuMemFreeHost", pinned) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Cuda::call("cuEventDestroy_v2", first) == 0);
  CHECK(Cuda::call("cuEventRecord", first, s) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(Cuda::call("cuStreamDestroy_v2", s) == 0);
  CHECK(Cuda::call("cuStreamSynchronize", s) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a stream that does not wait for another reads too early") {
  const Device device;
  const Kernels kernels(image());
  const CUstream s = new_stream(), t = new_stream();
  const Buffer x = device.upload(std::vector<float>(kN, 1)), y = device.buffer(4 * kN);
  REQUIRE(scale(kernels, x, y, s) == 0);
  std::vector<float> out(kN);
  CHECK(copy_out(out, y, t) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(device.first_fault() == "uninitialised");
}

TEST_CASE("a captured stream becomes a graph") {
  const Device device;
  const Kernels kernels(image());
  const CUstream s = new_stream();
  const Buffer x = device.upload(std::vector<float>(kN, 1)), y = device.buffer(4 * kN), z = device.buffer(4 * kN);
  CUgraph graph = nullptr;
  CHECK(Cuda::call("cuStreamBeginCapture_v2", CUstream{nullptr}, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(Cuda::call("cuStreamEndCapture", s, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  REQUIRE(Cuda::call("cuStreamBeginCapture_v2", s, 0) == 0);
  CHECK(Cuda::call("cuStreamBeginCapture_v2", s, 0) == CUDA_ERROR_ILLEGAL_STATE);
  REQUIRE(scale(kernels, x, y, s) == 0);
  REQUIRE(scale(kernels, y, z, s) == 0);
  CHECK(Cuda::call("cuStreamSynchronize", s) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(Cuda::call("cuStreamEndCapture", s, &graph) == 0);
  size_t nodes = 0;
  CHECK(Cuda::call("cuGraphGetNodes", graph, static_cast<void**>(nullptr), &nodes) == 0);
  CHECK(nodes == 2);
  CHECK(device.counters("scale_0").is_null());  // nothing has run
  CUgraphExec exec = nullptr;
  REQUIRE(Cuda::call("cuGraphInstantiateWithFlags", &exec, graph, 0ull) == 0);
  CHECK(Cuda::call("cuGraphDestroy", graph) == 0);
  CHECK(Cuda::call("cuGraphInstantiateWithFlags", &exec, graph, 0ull) == CUDA_ERROR_INVALID_HANDLE);
  for (int i = 0; i < 3; ++i) REQUIRE(Cuda::call("cuGraphLaunch", exec, s) == 0);
  CHECK(Cuda::call("cuStreamSynchronize", s) == 0);
  CHECK(device.counters("scale_0")["launches"] == 6);
  CHECK(device.download<float>(z) == std::vector<float>(kN, 4));
  CHECK(Cuda::call("cuGraphExecDestroy", exec) == 0);
  CHECK(Cuda::call("cuGraphLaunch", exec, s) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("memory that was freed is not used") {
  const Device device;
  const Kernels kernels(image());
  const CUstream s = new_stream();
  const Buffer x = device.upload(std::vector<float>(kN, 1)), y = device.buffer(4 * kN);
  REQUIRE(Cuda::call("cuStreamBeginCapture_v2", s, 0) == 0);
  REQUIRE(scale(kernels, x, y, s) == 0);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(Cuda::call("cuStreamEndCapture", s, &graph) == 0);
  REQUIRE(Cuda::call("cuGraphInstantiateWithFlags", &exec, graph, 0ull) == 0);
  REQUIRE(Cuda::call("cuMemFree_v2", y.at) == 0);
  REQUIRE(Cuda::call("cuGraphLaunch", exec, s) == 0);
  CHECK(Cuda::call("cuStreamSynchronize", s) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(device.first_fault() == "out of bounds");
}

TEST_CASE("after a fault every call fails until the context is reset") {
  const Device device;
  {
    const Kernels kernels(image());
    const Buffer x = device.upload(std::vector<float>(kN, 1)), y = device.buffer(4 * kN);
    REQUIRE(kernels.launch("scale_2", {1, 1, 1}, {32, 1, 1}, 0, {x, y, kN}) == 0);
    CHECK(device.finish() == CUDA_ERROR_LAUNCH_FAILED);
    CUdeviceptr p = 0;
    CHECK(Cuda::call("cuMemAlloc_v2", &p, size_t{4}) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(device.finish() == CUDA_ERROR_LAUNCH_FAILED);
  }
  CHECK(Cuda::call("cuDevicePrimaryCtxReset_v2", CUdevice{0}) == 0);
  CHECK(device.first_fault().empty());
  const Kernels kernels(image());
  const Buffer x = device.upload(std::vector<float>(kN, 1)), y = device.buffer(4 * kN);
  REQUIRE(scale(kernels, x, y, nullptr) == 0);
  CHECK(device.download<float>(y) == std::vector<float>(kN, 2));
}

}  // namespace dlc::test
