// The devices of the asic plugin: asic:func, asic:rtl, and asic:cosim, which runs both and compares them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugins/asic/runtime/driver.h"
#include "simulators/port/rtl_device.h"

namespace dlc::asic {

struct DeviceUri {
  bool rtl = false, cosim = false;
  bool track = true;    // func ?track=0: reads of words never written are not looked for, which is faster
  RtlOptions options;   // seed 0, the default of func: its fixed order
                        // ?seed= ?latency= ?jitter= ?backpressure= ?stall=
  bool times = false;   // rtl, cosim ?times=1: the counters have the times of every instruction
  std::string bundle;   // cosim ?bundle=: folder for what is needed to replay a difference
  bool each = false;    // cosim ?bundles=: a folder in it for each program and its inputs, by their hash
  std::string library;  // ?library=: of the verilated model; otherwise found by arch_hash
};
Result<DeviceUri> parse_device_uri(const std::string& uri);
std::string to_string(const DeviceUri& uri);  // asic:cosim; without the bundle

// How many times slower than its description these make a machine at most: the driver's patience.
double slowness(const RtlOptions& options);

// The verilated model of this architecture: in DLC_RTL_PATH, in lib/dlc/rtl beside the plugin, then among those that
// `dlc hw build-rtl` keeps for this user.
Result<std::string> find_rtl(const Loaded& loaded);
// Libraries that may be this model with tracing: itself, and those beside it and in the other folders.
std::vector<std::string> traced_models(const std::string& library, const HwDescription& hw);

// Whether there is any verilated model to be found.
bool has_rtl();

// With memory for the program that is loaded.
Result<std::unique_ptr<DlcPort>> open_port(const DeviceUri& uri, const Loaded& loaded);
Result<std::unique_ptr<RtlPort>> open_rtl(const DeviceUri& uri, const Loaded& loaded);

}  // namespace dlc::asic
