// NVIDIA's run-time compiler, by dlopen: no CUDA is needed to build dlc, and without NVRTC everything else works.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "plugins/cuda/compile/compile.h"

namespace dlc::cuda {

namespace {

namespace fs = std::filesystem;

constexpr int kOldest = 12;  // the major version that knows every target of ours
constexpr const char* kInstall =
    "install a CUDA toolkit, or `pip install nvidia-cuda-nvrtc` and set DLC_NVRTC to its libnvrtc.so";

using Program = struct Program_st*;

// The functions that dlc calls; a result of 0 is success.
struct Nvrtc {
  int (*version)(int*, int*);
  const char* (*error_string)(int);
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*destroy)(Program*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int major = 0, minor = 0;
  std::string path;
};

std::vector<std::string> places() {
  if (const char* own = std::getenv("DLC_NVRTC"); own != nullptr && *own != 0) return {own};
  std::vector<std::string> all = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::vector<std::string> homes = {"/usr/local/cuda"};
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != 0) homes.insert(homes.begin(), home);
  std::error_code error;
  for (const auto& e : fs::directory_iterator("/usr/local", error))
    if (e.path().filename().string().starts_with("cuda-")) homes.push_back(e.path().string());
  std::sort(homes.begin() + 1, homes.end(), std::greater<>());
  for (const std::string& h : homes) all.push_back(h + "/lib64/libnvrtc.so");
  return all;
}

Result<Nvrtc> load() {
  std::string last;
  for (const std::string& path : places()) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      last = dlerror();
      continue;
    }
    Nvrtc n{};
    n.path = path;
    bool complete = true;
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
      complete = complete && function != nullptr;
    };
    find(n.version, "nvrtcVersion");
    find(n.error_string, "nvrtcGetErrorString");
    find(n.create, "nvrtcCreateProgram");
    find(n.compile, "nvrtcCompileProgram");
    find(n.destroy, "nvrtcDestroyProgram");
    find(n.log_size, "nvrtcGetProgramLogSize");
    find(n.log, "nvrtcGetProgramLog");
    find(n.ptx_size, "nvrtcGetPTXSize");
    find(n.ptx, "nvrtcGetPTX");
    find(n.cubin_size, "nvrtcGetCUBINSize");
    find(n.cubin, "nvrtcGetCUBIN");
    if (!complete) return fail({path, 0, 0, {}}, "this is no NVRTC, or too old a one", kInstall);
    n.version(&n.major, &n.minor);
    if (n.major < kOldest)
      return fail({path, 0, 0, {}},
                  fmt::format("NVRTC {}.{} is too old: {} is the oldest that will do", n.major, n.minor, kOldest),
                  kInstall);
    return n;
  }
  return fail({}, fmt::format("NVRTC is not found ({})", last), kInstall);
}

const Result<Nvrtc>& nvrtc() {
  static const Result<Nvrtc> loaded = load();
  return loaded;
}

// What `--ptxas-options=-v` says of each kernel, and warnings.
void read_log(std::string_view log, DeviceCode& code) {
  const auto number_before = [](std::string_view line, std::string_view word) {
    const size_t at = line.find(word);
    if (at == std::string_view::npos || at == 0) return 0;
    size_t begin = at;
    while (begin > 0 && line[begin - 1] == ' ') --begin;
    const size_t end = begin;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
    int value = 0;
    std::from_chars(line.data() + begin, line.data() + end, value);
    return value;
  };
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (const size_t at = line.find(kEntry); at != std::string_view::npos) {
      const std::string_view name = line.substr(at + kEntry.size());
      code.kernels.push_back({std::string(name.substr(0, name.find('\'')))});
    }
    if (!code.kernels.empty()) {
      KernelFacts& k = code.kernels.back();
      if (line.find("bytes spill stores") != std::string_view::npos) {
        k.stack_bytes = number_before(line, "bytes stack frame");
        k.spill_bytes = number_before(line, "bytes spill stores") + number_before(line, "bytes spill loads");
      }
      if (line.find("Used ") != std::string_view::npos) {
        k.registers = number_before(line, "registers");
        k.shared_bytes = number_before(line, "bytes smem");
      }
    }
    const bool is_loss =
        line.find("(C75") != std::string_view::npos || line.find("Performance Loss") != std::string_view::npos;
    if (is_loss || line.find("warning") != std::string_view::npos) code.warnings.emplace_back(line);
  }
}

}  // namespace

Result<DeviceCode> compile_for_device(const std::string& text, const std::string& target) {
  if (!nvrtc()) return std::unexpected(nvrtc().error());
  const Nvrtc& n = *nvrtc();
  const bool is_ptx = target.starts_with("compute_");
  // Multiplications and additions are contracted where the text says so, dlc::fma, as on the host.
  const std::string arch = "-arch=" + target;
  const std::vector<const char*> options = {arch.c_str(), "-std=c++17", "--fmad=false", "--ptxas-options=-v",
                                            "--diag-suppress=177,186"};
  const std::string version = fmt::format("nvrtc {}.{}", n.major, n.minor);
  std::vector<std::string_view> parts = {version, text};
  parts.insert(parts.end(), options.begin(), options.end());
  std::vector<const char*> names, headers;
  for (const auto& [name, header] : device_headers()) {
    parts.insert(parts.end(), {name, header});
    names.push_back(name.c_str());
    headers.push_back(header.c_str());
  }
  const std::string key = cache_key(parts);
  DeviceCode code;
  const auto image = cached(key + ".image"), notes = cached(key + ".log");
  if (image && notes) {
    code.bytes = *image;
    read_log({reinterpret_cast<const char*>(notes->data()), notes->size()}, code);
    return code;
  }
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Program program = nullptr;
  if (const int r =
          n.create(&program, text.c_str(), "kernels.cu", static_cast<int>(names.size()), headers.data(), names.data());
      r != 0)
    return fail({n.path, 0, 0, {}}, fmt::format("nvrtcCreateProgram: {}", n.error_string(r)));
  const int compiled = n.compile(program, static_cast<int>(options.size()), options.data());
  size_t size = 0;
  std::string log;
  if (n.log_size(program, &size) == 0 && size > 1) {
    log.resize(size);
    n.log(program, log.data());
    log.resize(size - 1);
  }
  int got = 0;
  if (compiled == 0) {
    got = is_ptx ? n.ptx_size(program, &size) : n.cubin_size(program, &size);
    code.bytes.resize(got == 0 ? size : 0);
    if (got == 0)
      got = is_ptx ? n.ptx(program, reinterpret_cast<char*>(code.bytes.data()))
                   : n.cubin(program, reinterpret_cast<char*>(code.bytes.data()));
  }
  n.destroy(&program);
  if (compiled != 0)
    return std::unexpected(does_not_compile(fmt::format("NVRTC {}.{} for {}", n.major, n.minor, target), text, log));
  if (got != 0)
    return fail({n.path, 0, 0, {}}, fmt::format("NVRTC gives no code for {}: {}", target, n.error_string(got)));
  read_log(log, code);
  keep(key + ".image", code.bytes);
  const auto* begin = reinterpret_cast<const std::byte*>(log.data());
  keep(key + ".log", Bytes(begin, begin + log.size()));
  return code;
}

Result<> nvrtc_available() {
  if (!nvrtc()) return std::unexpected(nvrtc().error());
  return {};
}

}  // namespace dlc::cuda
