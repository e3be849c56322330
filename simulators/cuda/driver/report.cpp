// What the emulator tells beside the driver's interface: its faults and counters, and what it is to be.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "simulators/cuda/driver/driver.h"

namespace dlc::emu {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const DlcEmuIndex& i) { return Json::array({i.x, i.y, i.z}); }

Json to_json(const Fault& f) {
  Json j{{"kind", to_string(f.kind)},
         {"text", to_string(f)},
         {"kernel", f.kernel},
         {"block", to_json(f.block)},
         {"thread", to_json(f.thread)}};
  if (!f.buffer.empty()) {
    j["buffer"] = f.buffer;
    j["offset"] = f.offset;
    j["bytes"] = f.bytes;
  }
  if (f.line) j["line"] = f.line;
  return j;
}

Json to_json(const Traffic& t) { return {{"requests", t.requests}, {"sectors", t.sectors}, {"bytes", t.bytes}}; }

Json to_json(const SharedTraffic& t) { return {{"phases", t.phases}, {"wavefronts", t.wavefronts}}; }

Json to_json(const std::string& kernel, const Counters& c) {
  return {{"kernel", kernel},
          {"launches", c.launches},
          {"blocks", c.blocks},
          {"loads", to_json(c.loads)},
          {"stores", to_json(c.stores)},
          {"shared_loads", to_json(c.shared_loads)},
          {"shared_stores", to_json(c.shared_stores)},
          {"mma", c.mma},
          {"ldmatrix", c.ldmatrix},
          {"async_copies", c.async_copies},
          {"shuffles", c.shuffles},
          {"barriers", c.barriers},
          {"atomics", c.atomics}};
}

template <class T>
bool read(const Json& j, const char* key, T& into) {
  if (!j.contains(key)) return true;
  const Json& v = j[key];
  if constexpr (std::is_same_v<T, bool>) {
    if (!v.is_boolean()) return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!v.is_string()) return false;
  } else {
    if (!v.is_number_integer() || v.get<int64_t>() < 0 || v.get<int64_t>() > (int64_t{1} << 50)) return false;
  }
  into = v.get<T>();
  return true;
}

}  // namespace

std::string Driver::report() const {
  Json faults = Json::array(), kernels = Json::array();
  for (const Fault& f : machine.faults) faults.push_back(to_json(f));
  for (const auto& [name, c] : machine.counters) kernels.push_back(to_json(name, c));
  return Json{{"problem", problem}, {"faults", faults}, {"kernels", kernels}}.dump(1);
}

bool configure(const std::string& text, Options& o) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) return false;
  Options n;
  const bool ok = read(j, "checks", n.checks) && read(j, "seed", n.seed) && read(j, "name", n.name) &&
                  read(j, "major", n.major) && read(j, "minor", n.minor) && read(j, "sms", n.sms) &&
                  read(j, "warps_per_sm", n.warps_per_sm) && read(j, "registers_per_sm", n.registers_per_sm) &&
                  read(j, "clock_khz", n.clock_khz) && read(j, "threads_per_block", n.threads_per_block) &&
                  read(j, "shared_per_block", n.shared_per_block) && read(j, "shared_per_sm", n.shared_per_sm) &&
                  read(j, "default_shared", n.default_shared) && read(j, "memory", n.memory) && read(j, "l2", n.l2);
  constexpr uint32_t kMostShared = 1 << 20, kMostThreads = 1024;
  if (!ok || n.shared_per_block > kMostShared || n.threads_per_block > kMostThreads || n.threads_per_block == 0)
    return false;
  o = n;
  return true;
}

}  // namespace dlc::emu

using namespace dlc::emu;

// The faults and counters since the context was made, as JSON; valid until the next call.
DLC_CUDA_API const char* dlc_emu_report() {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  p.last_report = p.driver ? p.driver->report() : R"({"problem": "", "faults": [], "kernels": []})";
  return p.last_report.c_str();
}

// What the device is that the next context finds; null: as it was at first. Keys: the fields of Options.
DLC_CUDA_API CUresult dlc_emu_configure(const char* json) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (p.driver) return CUDA_ERROR_ILLEGAL_STATE;
  if (!json) {
    p.options = Options();
    return CUDA_SUCCESS;
  }
  return configure(json, p.options) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
