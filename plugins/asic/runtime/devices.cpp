#include "plugins/asic/runtime/devices.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "dlc/hw/load.h"
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
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0)
    out.push_back(fs::path(cache) / "dlc" / "rtl");
  else if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
    out.push_back(fs::path(home) / ".cache" / "dlc" / "rtl");
  return out;
}

struct NumberOption {
  std::string_view name;
  uint32_t RtlOptions::* value;
  uint32_t most;  // cycles, which the driver waits for; per cent: at 100 nothing would ever move
};
constexpr NumberOption kNumbers[] = {{"latency", &RtlOptions::latency, 10'000},
                                     {"jitter", &RtlOptions::jitter, 10'000},
                                     {"backpressure", &RtlOptions::backpressure, 99},
                                     {"stall", &RtlOptions::stall, 99}};

uint64_t memory_bytes(const Loaded& loaded) {
  uint64_t end = 0;
  segment_bases(*loaded.hw, loaded.image, loaded.words.size() * 4, &end);
  return end;
}

}  // namespace

std::string to_string(const DeviceUri& uri) {
  const RtlOptions& o = uri.options;
  const std::string latency = o.latency == kOwnLatency ? "" : fmt::format("&latency={}", o.latency);
  return fmt::format("asic:cosim?seed={}{}&jitter={}&backpressure={}&stall={}&library={}", o.seed, latency, o.jitter,
                     o.backpressure, o.stall, uri.library);
}

double slowness(const RtlOptions& o) {
  constexpr double kQuick = 16;  // cycles of a read that every read waits for in the description's own time
  const double waits = static_cast<double>(o.jitter) + (o.latency == kOwnLatency ? 0 : static_cast<double>(o.latency));
  return (1 + waits / kQuick) * 100 / (100 - static_cast<double>(o.backpressure)) * 100 /
         (100 - static_cast<double>(o.stall));
}

Result<DeviceUri> parse_device_uri(const std::string& uri) {
  DeviceUri out;
  const size_t question = uri.find('?');
  const std::string device = uri.substr(0, question);
  if (device != "asic:func" && device != "asic:rtl" && device != "asic:cosim")
    return fail({}, fmt::format("device {} is not known: the plugin has asic:func, asic:rtl and asic:cosim", device));
  out.cosim = device == "asic:cosim";
  out.rtl = out.cosim || device == "asic:rtl";
  if (!out.rtl) out.options.seed = 0;
  std::set<std::string> given;
  std::string rest = question == std::string::npos ? "" : uri.substr(question + 1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string item = rest.substr(0, end);
    rest = rest.substr(std::min(end + 1, rest.size()));
    const size_t equals = std::min(item.find('='), item.size());
    const std::string key = item.substr(0, equals), value = item.substr(std::min(equals + 1, item.size()));
    if (!given.insert(key).second) return fail({}, fmt::format("device {}: '{}' is given twice", device, key));
    if (key == "library" && out.rtl) {
      out.library = value;
      continue;
    }
    if ((key == "bundle" || key == "bundles") && out.cosim) {  // the last one: it may have any character
      out.each = key == "bundles";
      out.bundle = rest.empty() ? value : value + "&" + rest;
      break;
    }
    uint64_t n = 0;
    const auto [p, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc() || p != value.data() + value.size())
      return fail({}, fmt::format("device {}: '{}' needs a number, not '{}'", device, key, value));
    const auto numbered = std::ranges::find(kNumbers, key, &NumberOption::name);
    if (key == "track" && !out.rtl) {
      out.track = n != 0;
    } else if (key == "times" && out.rtl) {
      out.times = n != 0;
    } else if (key == "seed") {
      out.options.seed = n;
    } else if (numbered != std::end(kNumbers) && out.rtl) {
      if (n > numbered->most)
        return fail({}, fmt::format("device {}: '{}' is at most {}", device, key, numbered->most));
      out.options.*numbered->value = static_cast<uint32_t>(n);
    } else {
      return fail({}, fmt::format("device {} has no option '{}'", device, key),
                  "seed; for asic:func track; for asic:rtl latency, jitter, backpressure, stall, times, "
                  "library; for asic:cosim also bundle, bundles");
    }
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

namespace {

// The description that the model was compiled for may be another one by now: its RTL would not be the model's.
std::string how_to_make(const Loaded& loaded) {
  const std::string installed = (own_folder() / "../../../share/dlc/hwdesc").lexically_normal().string();
  std::error_code error;
  HwLoadOptions options{.search = {"hwdesc"}};
  if (!fs::equivalent("hwdesc", installed, error)) options.search.push_back(installed);
  const auto today = load_hw(loaded.hardware, options);
  if (today && today->arch_hash != loaded.hw->arch_hash)
    return fmt::format("{} is another machine by now (arch_hash {}): compile the model again", today->file,
                       hash_text(today->arch_hash));
  return fmt::format("`dlc hw build-rtl {}` makes it", loaded.hardware);
}

}  // namespace

Result<std::string> find_rtl(const Loaded& loaded) {
  const HwDescription& hw = *loaded.hw;
  std::string looked, params;
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
  for (const HwParam& p : hw.params) params += fmt::format("{}{}={}", params.empty() ? "" : ", ", p.name, p.value);
  return fail(
      {},
      fmt::format("no RTL model of {} with {} (arch_hash {}) in {}", hw.name, params, hash_text(hw.arch_hash), looked),
      how_to_make(loaded));
}

std::vector<std::string> traced_models(const std::string& library, const HwDescription& hw) {
  std::error_code error;
  const fs::path given = library, real = fs::weakly_canonical(given, error);
  const std::string by_hash = hash_text(hw.arch_hash) + "_trace.so";
  std::vector<fs::path> candidates{given, real.parent_path() / (real.stem().string() + "_trace.so"),
                                   given.parent_path() / by_hash};
  for (const fs::path& folder : folders()) candidates.push_back(folder / by_hash);
  std::vector<std::string> out;
  for (const fs::path& p : candidates)
    if (fs::exists(p, error)) out.push_back(p.string());
  return out;
}

Result<std::unique_ptr<RtlPort>> open_rtl(const DeviceUri& uri, const Loaded& loaded) {
  std::string library = uri.library;
  if (library.empty()) {
    DLC_TRY(library, find_rtl(loaded));
  }
  RtlOptions options = uri.options;
  options.memory_bytes = std::max(options.memory_bytes, memory_bytes(loaded));
  return RtlPort::open(library, options);
}

Result<std::unique_ptr<DlcPort>> open_port(const DeviceUri& uri, const Loaded& loaded) {
  if (!uri.rtl)
    return open_sim_port(
        *loaded.hw, {.seed = uri.options.seed, .memory_bytes = memory_bytes(loaded), .track_undefined = uri.track});
  DLC_TRY(std::unique_ptr<RtlPort> port, open_rtl(uri, loaded));
  return std::unique_ptr<DlcPort>(std::move(port));
}

}  // namespace dlc::asic
