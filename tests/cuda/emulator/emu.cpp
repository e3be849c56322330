#include "emu.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "dlc_test/catch.h"

namespace dlc::test {
namespace {

namespace fs = std::filesystem;

std::string compiler() {
  for (const char* name : {"clang++-19", "clang++", "g++"})
    if (std::system(("command -v " + std::string(name) + " >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("dlc_emu_" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

void* Cuda::find(const char* name) {
  static void* const library = dlopen(DLC_BINARY_DIR "/lib/dlc/libdlc_cuda_emu.so", RTLD_NOW | RTLD_LOCAL);
  INFO(name);
  REQUIRE(library);
  void* const f = dlsym(library, name);
  REQUIRE(f);
  return f;
}

const std::string& module_of(const std::string& file, bool checks, const std::string& defines) {
  static const Folder folder;
  static const std::string cxx = compiler();
  static std::map<std::string, std::string> modules;
  const auto [it, fresh] = modules.try_emplace(file + (checks ? " checked " : " ") + defines);
  if (!fresh) return it->second;
  REQUIRE(!cxx.empty());
  const std::string stem = (folder.path / std::to_string(modules.size())).string();
  const std::string source = DLC_SOURCE_DIR "/tests/cuda/emulator/" + file;
  std::string flags = "-x c++ -std=c++17 -DDLC_HOST_EMU -I" DLC_SOURCE_DIR
                      "/plugins/cuda/device -fPIC -fvisibility=hidden "
                      "-fno-exceptions -fwrapv -ffp-contract=off -w " +
                      defines;
  flags += checks ? " -O1 -fsanitize=thread -DDLC_EMU_CHECKS" : " -O2";
  if (checks && cxx.starts_with("clang"))
    flags += " -fno-vectorize -fno-slp-vectorize -mllvm -tsan-instrument-read-before-write=1";
  const std::string command = cxx + " " + flags + " -c " + source + " -o " + stem + ".o && " + cxx + " -shared " +
                              stem + ".o -o " + stem + ".so";
  INFO(command);
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream in(stem + ".so", std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return it->second = text.str();
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
