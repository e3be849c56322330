// RtlPort: a verilated model of an accelerator as a DlcPort.
//
//   DLC_TRY(auto port, RtlPort::open("build/lib/dlc/rtl/nx16_8x8.so", {.seed = 7, .jitter = 32, .backpressure = 30}));
//
// The build also links <arch_hash>.so (as hash_text() writes it) to the model of that description. The library is
// loaded once per path and stays loaded. Same seed, same cycles.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dlc/base/diag.h"
#include "dlc/hw/port.h"

namespace dlc {

inline constexpr uint32_t kOwnLatency = ~uint32_t{0};  // the machine's: `read_latency` of its memory

struct RtlOptions {
  uint64_t seed = 1;
  uint64_t memory_bytes = uint64_t{1} << 28;
  uint32_t latency = kOwnLatency;           // cycles from a read's address to its first beat
  uint32_t jitter = 0;                      // up to so many more
  uint32_t backpressure = 0;                // per cent of cycles in which the memory refuses
  uint32_t outstanding = 16;                // reads the memory takes at once
  uint32_t stall = 0;                       // per cent of cycles in which each engine is held
  uint64_t error_begin = 0, error_end = 0;  // accesses here are answered SLVERR
};

class RtlPort : public DlcPort {
 public:
  static Result<std::unique_ptr<RtlPort>> open(const std::string& library, const RtlOptions& options);

  virtual uint64_t arch_hash() const = 0;
  // Writes the waveform of cycles [begin, end) to `path` (FST); only libraries built with tracing can.
  virtual Result<> trace(const std::string& path, uint64_t begin, uint64_t end) = 0;
};

}  // namespace dlc
