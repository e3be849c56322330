// DlcPort: the seven functions through which device logic reaches an accelerator, whatever it is: the functional
// simulator, the RTL under Verilator, a board.
//
//   DLC_CHECK(port->mem_wr(0x1000, program));
//   DLC_CHECK(port->wr32(kCtrl, 1));
//   DLC_CHECK(port->wait_irq(1'000'000));
//
// Registers are at the byte offsets of the description's `csr`. Memory addresses are the machine's own; a device has
// memory_bytes() of memory from address 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "dlc/base/diag.h"

namespace dlc {

// What an observer is told. In a race-free program the writes of one queue, in order, do not depend on how the queues
// interleave, so that two devices are compared queue by queue.
struct PortWrite {
  int queue = 0;                    // index into HwDescription::queues
  std::string_view memory;          // name of the state: "acc", "out", "dram"
  uint64_t address = 0;             // word of the memory; for external memory the byte address
  std::span<const std::byte> data;  // one word, or the bytes of one bus beat
  uint64_t cycle = 0;
};
struct PortRetire {
  int queue = 0;
  uint32_t index = 0;  // of the instruction in its program
  uint64_t start = 0;  // the cycle in which its engine took it
  uint64_t cycle = 0;
};

class PortObserver {
 public:
  virtual ~PortObserver() = default;
  virtual void on_write(const PortWrite& write) = 0;
  virtual void on_retire(const PortRetire& retire) = 0;
};

class DlcPort {
 public:
  virtual ~DlcPort() = default;

  virtual Result<uint32_t> rd32(uint32_t offset) = 0;
  virtual Result<> wr32(uint32_t offset, uint32_t value) = 0;
  virtual Result<> mem_rd(uint64_t address, std::span<std::byte> data) = 0;
  virtual Result<> mem_wr(uint64_t address, std::span<const std::byte> data) = 0;
  // Lets the machine run until it raises its interrupt; an error when it does not within `max_cycles`.
  virtual Result<> wait_irq(uint64_t max_cycles) = 0;
  virtual uint64_t now() const = 0;  // cycles since the port was opened; 0 where there is no clock
  virtual Result<> reset() = 0;      // the reset pin; memory keeps its contents

  virtual uint64_t memory_bytes() const = 0;
  // Null switches observation off. Ports that cannot observe ignore it.
  virtual void observe(PortObserver* observer) { (void)observer; }
};

}  // namespace dlc
