// The devices of the asic plugin: asic:func, asic:rtl, and asic:cosim, which runs both and compares them.
#pragma once

#include <memory>
#include <string>

#include "plugins/asic/runtime/driver.h"
#include "simulators/asic/port/rtl_device.h"

namespace dlc::asic {

struct DeviceUri {
  bool rtl = false, cosim = false;
  bool track = true;    // func ?track=0: reads of words never written are not looked for, which is faster
  RtlOptions options;   // ?seed= ?latency= ?jitter= ?backpressure= ?stall=
  std::string bundle;   // cosim ?bundle=: folder for what is needed to replay a difference
  std::string library;  // ?library=: of the verilated model; otherwise found by arch_hash
};
Result<DeviceUri> parse_device_uri(const std::string& uri);

// The verilated model of this architecture: in DLC_RTL_PATH, then in lib/dlc/rtl beside the plugin.
Result<std::string> find_rtl(const HwDescription& hw);

// Whether there is any verilated model to be found.
bool has_rtl();

Result<std::unique_ptr<DlcPort>> open_port(const DeviceUri& uri, const HwDescription& hw, uint64_t memory_bytes);

}  // namespace dlc::asic
