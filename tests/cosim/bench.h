// Bench: one program on the RTL and on Golden, compared write by write per queue, then the device's memory.
//
//   Bench b(8, {.jitter = 32, .backpressure = 30});
//   b.fill_dram(1);
//   b.run(R"(ld to=in seg=arena off=0x400 nx=16 ny=2 y1=2 x1=16 sig=1
//            end wai=1)");
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/hw/description.h"
#include "dlc/hw/port.h"
#include "simulators/port/rtl_device.h"
#include "tests/cosim/golden.h"

namespace dlc::cosim {

// The machine with these parameters: "R=8".
const HwDescription& description(const std::string& params);
const HwDescription& description(int size);  // "R=size"

struct Outcome {
  bool done = false;
  uint32_t cause = 0, queue = 0;  // of a fault
  std::vector<uint32_t> epc;
  std::vector<std::vector<Word>> writes;  // per queue
  std::vector<std::vector<uint32_t>> retired;
  uint64_t cycles = 0;
};

class Bench {
 public:
  explicit Bench(int size, RtlOptions options = {});  // one of the built models: 8 or 16
  Bench(const std::string& params, const std::string& model, RtlOptions options);

  const HwDescription& hw() const { return hw_; }
  Golden& golden() { return golden_; }
  RtlPort& port() { return *port_; }
  int64_t lanes() const { return *hw_.param("C"); }

  void fill_dram(uint64_t seed);  // segments weights .. io4 with noise, on both sides
  void write_dram(uint64_t address, const void* data, size_t bytes);
  uint64_t segment(std::string_view name) const;  // address

  std::vector<Instruction> assemble(const std::string& text) const;
  // Starts the program and waits for its end or a fault; no comparison.
  Outcome run_rtl(const std::vector<uint32_t>& words, uint64_t max_cycles = 1000000);
  Outcome run_rtl(const std::vector<Instruction>& program, uint64_t max_cycles = 1000000);
  // Runs it on both and compares; the program must end by itself.
  Outcome run(const std::string& text);
  Outcome run(const std::vector<Instruction>& program);

  uint32_t read_csr(std::string_view name, int64_t index = 0);
  void write_csr(std::string_view name, uint32_t value, int64_t index = 0);
  const HwCsrBits& flag(std::string_view name, std::string_view bit) const;
  void start(const std::vector<uint32_t>& words);
  void soft_reset();
  void configure();  // segments, interrupts and watchdog, as the constructor does

 private:
  uint32_t offset(std::string_view name, int64_t index) const;

  const HwDescription& hw_;
  Golden golden_;
  std::unique_ptr<RtlPort> port_;
};

}  // namespace dlc::cosim
