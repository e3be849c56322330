#include "plugins/cuda/runtime/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace dlc::cuda {

namespace {

constexpr const char* kRealDriver = "libcuda.so.1";
constexpr const char* kEmulator = "libdlc_cuda_emu.so";

// The emulator lies in the folder above the plugins', wherever dlc is installed.
std::string emulator_path() {
  Dl_info about{};
  if (dladdr(reinterpret_cast<const void*>(&emulator_path), &about) == 0 || about.dli_fname == nullptr)
    return kEmulator;
  const auto folder = std::filesystem::path(about.dli_fname).parent_path();
  for (const auto& f :
       {folder / kEmulator, folder.parent_path() / kEmulator, folder.parent_path().parent_path() / kEmulator}) {
    std::error_code error;
    if (std::filesystem::exists(f, error)) return f.string();
  }
  return kEmulator;
}

Result<int> number(std::string_view text, const std::string& uri) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return fail({}, fmt::format("device {}: '{}' is no number", uri, text), "--device cuda:0, --device cuda:emu");
  return value;
}

}  // namespace

Result<DeviceChoice> parse_uri(const std::string& uri) {
  DeviceChoice choice;
  std::string_view rest = uri;
  rest.remove_prefix(std::min<size_t>(rest.size(), std::string_view("cuda:").size()));
  const size_t question = std::min(rest.find('?'), rest.size());
  const std::string_view which = rest.substr(0, question);
  choice.is_emulator = which == "emu";
  if (!choice.is_emulator && !which.empty()) {
    DLC_TRY(choice.ordinal, number(which, uri));
  }
  std::string_view options = question < rest.size() ? rest.substr(question + 1) : std::string_view();
  while (!options.empty()) {
    const size_t end = std::min(options.find('&'), options.size());
    const std::string_view one = options.substr(0, end);
    options.remove_prefix(std::min(end + 1, options.size()));
    const size_t equals = std::min(one.find('='), one.size());
    const std::string_view key = one.substr(0, equals), value = one.substr(std::min(equals + 1, one.size()));
    if (!choice.is_emulator || (key != "checks" && key != "seed"))
      return fail({}, fmt::format("device {} has no option '{}'", uri, key), "--device cuda:emu?checks=0&seed=3");
    DLC_TRY(const int n, number(value, uri));
    if (key == "checks") choice.checks = n != 0;
    if (key == "seed") choice.seed = n;
  }
  return choice;
}

Result<std::shared_ptr<Gpu>> Gpu::open(const DeviceChoice& choice) {
  static std::mutex opening;
  static std::map<DeviceChoice, std::weak_ptr<Gpu>> all;
  const std::lock_guard lock(opening);
  if (auto gpu = all[choice].lock()) return gpu;
  for (const auto& [other, gpu] : all)
    if (choice.is_emulator && other.is_emulator && other != choice && !gpu.expired())
      return fail({}, "cuda:emu is open with other options", "give all partitions the same checks and seed");
  DLC_TRY(auto gpu, open_new(choice));
  all[choice] = gpu;
  return gpu;
}

Result<std::shared_ptr<Gpu>> Gpu::open_new(const DeviceChoice& choice) {
  const std::string library = choice.is_emulator ? emulator_path() : kRealDriver;
  auto opened = Driver::open(library);
  if (!opened) {
    const std::string why(opened.error().message());
    return choice.is_emulator ? fail({}, "cuda:emu is not available: " + why,
                                     "install dlc with its emulator, " + std::string(kEmulator))
                              : fail({}, "no NVIDIA driver: " + why, "install the driver, or use --device cuda:emu");
  }
  auto gpu = std::shared_ptr<Gpu>(new Gpu);
  gpu->driver_ = std::move(*opened);
  gpu->choice_ = choice;
  const Driver& d = *gpu->driver_;
  if (d.dlc_emu_configure != nullptr) {
    const std::string options =
        fmt::format(R"({{"checks":{},"seed":{}}})", choice.checks ? "true" : "false", choice.seed);
    DLC_CHECK(d.check(d.dlc_emu_configure(options.c_str()), "dlc_emu_configure"));
  }
  DLC_CHECK(d.check(d.cuInit(0), "cuInit"));
  int count = 0;
  DLC_CHECK(d.check(d.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (choice.ordinal >= count)
    return fail({}, fmt::format("there is no device cuda:{}: the driver has {}", choice.ordinal, count),
                "`dlc devices`");
  DLC_CHECK(d.check(d.cuDeviceGet(&gpu->device_, choice.ordinal), "cuDeviceGet"));
  char name[256] = {};
  DLC_CHECK(d.check(d.cuDeviceGetName(name, sizeof name, gpu->device_), "cuDeviceGetName"));
  gpu->name_ = name;
  int major = 0, minor = 0;
  for (const auto& [attribute, to] : {std::pair(kMajor, &major), {kMinor, &minor}, {kProcessors, &gpu->processors_}})
    DLC_CHECK(d.check(d.cuDeviceGetAttribute(to, attribute, gpu->device_), "cuDeviceGetAttribute"));
  gpu->capability_ = 10 * major + minor;
  DLC_CHECK(d.check(d.cuDevicePrimaryCtxRetain(&gpu->context_, gpu->device_), "cuDevicePrimaryCtxRetain"));
  DLC_CHECK(gpu->enter());
  return gpu;
}

Gpu::~Gpu() {
  if (context_ != nullptr) driver_->cuDevicePrimaryCtxRelease(device_);
}

Result<> Gpu::enter() const { return driver_->check(driver_->cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

Result<DeviceMemory> DeviceMemory::allocate(const std::shared_ptr<Gpu>& gpu, size_t bytes) {
  DeviceMemory m;
  m.gpu_ = gpu;
  DLC_CHECK(gpu->driver().check(gpu->driver().cuMemAlloc(&m.at_, std::max<size_t>(bytes, 256)),
                                fmt::format("{} bytes of {}", bytes, gpu->name()).c_str()));
  return m;
}

DeviceMemory::~DeviceMemory() {
  if (at_ != 0 && gpu_->enter()) gpu_->driver().cuMemFree(at_);
}

}  // namespace dlc::cuda
