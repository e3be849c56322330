#include "emu.h"

#include <dlfcn.h>

#include <fstream>
#include <map>
#include <sstream>

#include "dlc_test/catch.h"
#include "plugins/cuda/compile/compile.h"

namespace dlc::test {

void* Cuda::find(const char* name) {
  static void* const library = dlopen(DLC_BINARY_DIR "/lib/dlc/libdlc_cuda_emu.so", RTLD_NOW | RTLD_LOCAL);
  INFO(name);
  REQUIRE(library);
  void* const f = dlsym(library, name);
  REQUIRE(f);
  return f;
}

std::string text_of(const std::string& file) {
  std::ifstream in(DLC_SOURCE_DIR "/tests/cuda/emulator/" + file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::string& module_of(const std::string& file, bool checks) {
  static std::map<std::pair<std::string, bool>, std::string> modules;
  const auto [it, fresh] = modules.try_emplace({file, checks});
  if (!fresh) return it->second;
  REQUIRE_OK(const cuda::Bytes bytes, cuda::compile_for_host(text_of(file), {.checks = checks}));
  return it->second = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Device::Device(const std::string& options) {
  REQUIRE(Cuda::call("dlc_emu_configure", options.c_str()) == CUDA_SUCCESS);
  REQUIRE(Cuda::call("cuInit", 0u) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  REQUIRE(Cuda::call("cuDevicePrimaryCtxRetain", &context, CUdevice{0}) == CUDA_SUCCESS);
  REQUIRE(Cuda::call("cuCtxSetCurrent", context) == CUDA_SUCCESS);
}

Device::~Device() { Cuda::call("cuDevicePrimaryCtxRelease_v2", CUdevice{0}); }

Buffer Device::buffer(size_t bytes) const {
  Buffer b{0, bytes};
  REQUIRE(Cuda::call("cuMemAlloc_v2", &b.at, bytes) == CUDA_SUCCESS);
  return b;
}

void Device::write(Buffer b, const void* from) const {
  REQUIRE(Cuda::call("cuMemcpyHtoD_v2", b.at, from, b.bytes) == CUDA_SUCCESS);
}

void Device::read(Buffer b, void* to) const {
  const CUresult r = Cuda::call("cuMemcpyDtoH_v2", to, b.at, b.bytes);
  INFO(report().dump(1));
  REQUIRE(r == CUDA_SUCCESS);
}

nlohmann::json Device::report() const {
  return nlohmann::json::parse(reinterpret_cast<const char* (*)()>(Cuda::find("dlc_emu_report"))());
}

std::string Device::first_fault() const {
  const nlohmann::json faults = report()["faults"];
  return faults.empty() ? "" : faults[0]["kind"].get<std::string>();
}

std::string Device::first_text() const {
  const nlohmann::json faults = report()["faults"];
  return faults.empty() ? "" : faults[0]["text"].get<std::string>();
}

nlohmann::json Device::counters(const std::string& kernel) const {
  const nlohmann::json all = report();
  for (const auto& k : all["kernels"])
    if (k["kernel"] == kernel) return k;
  return {};
}

Kernels::Kernels(const std::string& image) {
  const CUresult r = Cuda::call("cuModuleLoadData", &module_, static_cast<const void*>(image.data()));
  INFO(reinterpret_cast<const char* (*)()>(Cuda::find("dlc_emu_report"))());
  REQUIRE(r == CUDA_SUCCESS);
}

CUfunction Kernels::function(const std::string& name) const {
  CUfunction f = nullptr;
  INFO(name);
  REQUIRE(Cuda::call("cuModuleGetFunction", &f, module_, name.c_str()) == CUDA_SUCCESS);
  return f;
}

CUresult Kernels::launch(const std::string& name, Size grid, Size block, unsigned shared,
                         const std::vector<Param>& params, CUstream stream) const {
  const CUfunction f = function(name);
  std::vector<size_t> extents;
  std::vector<const void*> values;
  for (const Param& p : params) {
    extents.push_back(std::holds_alternative<Buffer>(p) ? std::get<Buffer>(p).bytes : 0);
    values.push_back(std::visit(
        [](const auto& v) -> const void* {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, Buffer>)
            return &v.at;
          else
            return &v;
        },
        p));
  }
  REQUIRE(Cuda::call("dlc_emu_extents", f, static_cast<unsigned>(extents.size()),
                     static_cast<const size_t*>(extents.data())) == CUDA_SUCCESS);
  if (shared > 48 * 1024) Cuda::call("cuFuncSetAttribute", f, int{kFunctionMaxDynamicShared}, static_cast<int>(shared));
  return Cuda::call("cuLaunchKernel", f, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream,
                    const_cast<void**>(values.data()), static_cast<void**>(nullptr));
}

}  // namespace dlc::test
