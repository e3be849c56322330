#include "plugins/asic/runtime/devices.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "dlc/hw/sim_port.h"

namespace dlc::asic {

namespace fs = std::filesystem;

namespace {

// The folder of the library that this code is in.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_rtl), &info) == 0 || info.dli_fname == nullptr) return {};
  return fs::path(info.dli_fname).parent_path();
}

std::vector<fs::path> folders() {
  std::vector<fs::path> out;
  if (const char* path = std::getenv("DLC_RTL_PATH"); path != nullptr && *path != 0) out.emplace_back(path);
  const fs::path own = own_folder();
  out.push_back(own / ".." / "rtl");
  out.push_back(own / ".." / "lib" / "dlc" / "rtl");
  return out;
}

}  // namespace

Result<DeviceUri> parse_device_uri(const std::string& uri) {
  DeviceUri out;
  const size_t question = uri.find('?');
  const std::string device = uri.substr(0, question);
  if (device != "asic:func" && device != "asic:rtl" && device != "asic:cosim")
    return fail({}, fmt::format("device {} is not known: the plugin has asic:func, asic:rtl and asic:cosim", uri));
  out.cosim = device == "asic:cosim";
  out.rtl = out.cosim || device == "asic:rtl";
  std::string rest = question == std::string::npos ? "" : uri.substr(question + 1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string item = rest.substr(0, end);
    rest = rest.substr(std::min(end + 1, rest.size()));
    const size_t equals = std::min(item.find('='), item.size());
    const std::string key = item.substr(0, equals), value = item.substr(std::min(equals + 1, item.size()));
    if (key == "library" && out.rtl) {
      out.library = value;
      continue;
    }
    if (key == "bundle" && out.cosim) {
      out.bundle = value;
      continue;
    }
    uint64_t n = 0;
    const auto [p, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc() || p != value.data() + value.size())
      return fail({}, fmt::format("device {}: '{}' needs a number", uri, key));
    if (key == "track" && !out.rtl)
      out.track = n != 0;
    else if (key == "seed")
      out.options.seed = n;
    else if (key == "latency" && out.rtl)
      out.options.latency = static_cast<uint32_t>(n);
    else if (key == "jitter" && out.rtl)
      out.options.jitter = static_cast<uint32_t>(n);
    else if (key == "backpressure" && out.rtl)
      out.options.backpressure = static_cast<uint32_t>(n);
    else if (key == "stall" && out.rtl)
      out.options.stall = static_cast<uint32_t>(n);
    else
      return fail({}, fmt::format("device {} has no option '{}'", device, key),
                  "seed; for asic:func track; for asic:rtl latency, jitter, backpressure, stall, library");
  }
  return out;
}

bool has_rtl() {
  for (const fs::path& folder : folders()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".so") return true;
  }
  return false;
}

Result<std::string> find_rtl(const HwDescription& hw) {
  std::string looked;
  for (const fs::path& folder : folders()) {
    std::error_code error;
    looked += (looked.empty() ? "" : ", ") + folder.lexically_normal().string();
    const fs::path named = folder / (hash_text(hw.arch_hash) + ".so");
    if (fs::exists(named, error)) return named.string();
    std::vector<fs::path> libraries;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".so") libraries.push_back(entry.path());
    std::ranges::sort(libraries);
    for (const fs::path& library : libraries) {
      const auto port = RtlPort::open(library.string(), {.memory_bytes = 4096});
      if (port && (*port)->arch_hash() == hw.arch_hash) return library.string();
    }
  }
  return fail({}, fmt::format("no RTL model of {} ({}) in {}", hw.name, hash_text(hw.arch_hash), looked),
              "build the target dlc_nx16_16x16 or dlc_nx16_8x8, or set DLC_RTL_PATH");
}

Result<std::unique_ptr<DlcPort>> open_port(const DeviceUri& uri, const HwDescription& hw, uint64_t memory_bytes) {
  if (!uri.rtl)
    return open_sim_port(hw, {.seed = uri.options.seed == 1 ? 0 : uri.options.seed,
                              .memory_bytes = memory_bytes,
                              .track_undefined = uri.track});
  std::string library = uri.library;
  if (library.empty()) {
    DLC_TRY(library, find_rtl(hw));
  }
  RtlOptions options = uri.options;
  options.memory_bytes = std::max(options.memory_bytes, memory_bytes);
  DLC_TRY(std::unique_ptr<RtlPort> port, RtlPort::open(library, options));
  return std::unique_ptr<DlcPort>(std::move(port));
}

}  // namespace dlc::asic
