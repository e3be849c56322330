// Device logic over a DlcPort: segments, registers, start, wait, faults. It is the same for the functional simulator,
// the RTL and a board.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dlc/hw/port.h"
#include "plugins/asic/runtime/container.h"

namespace dlc::asic {

struct LayerCount {
  std::string name;
  int64_t macs = 0, predicted_cycles = 0;
  int64_t measured_cycles = 0;  // layer_cycles()
  double mac_utilization = 0;
};

struct RunCounts {
  bool timed = false;  // the port has a clock
  int64_t cycles = 0;
  double mac_utilization = 0;  // MACs of the model / (cycles * MACs the array does in one)
  double sim_seconds = 0;
  std::vector<LayerCount> layers;
  std::vector<InstructionTime> times;  // of every instruction, from the start of the run
};
// `with_times`: also those of the instructions, "times": [[start, retire], ...].
std::string to_json(const RunCounts& c, bool with_times = false);

// Whether these are the tensors that the program takes.
Result<> check_inputs(const AcceleratorImage& image, std::span<const Tensor> inputs);

class Driver {
 public:
  // `slowness`: how many times slower than the description the device is at most; the watchdog waits as long.
  static Result<Driver> make(std::shared_ptr<const Loaded> loaded, std::unique_ptr<DlcPort> port, double slowness = 1);

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, PortObserver* observer = nullptr);
  const RunCounts& counts() const { return counts_; }
  // Whether the last run failed by the device's own doing: a fault, or no end. Any other error is of this side. The
  // next run resets the device first.
  bool stopped() const { return stopped_; }
  DlcPort& port() { return *port_; }
  const std::vector<uint64_t>& bases() const { return bases_; }

 private:
  Driver(std::shared_ptr<const Loaded> loaded, std::unique_ptr<DlcPort> port, double slowness)
      : loaded_(std::move(loaded)), port_(std::move(port)), slowness_(slowness) {}
  Result<> set_up();
  Result<> write(const char* csr, uint64_t value, int64_t index = 0);
  Result<uint32_t> read(const char* csr, int64_t index = 0);
  Result<> reset();
  // Why the device stopped; empty when it is done.
  Result<std::string> fault(uint32_t status);
  uint32_t bit(const char* csr, const char* flag) const;

  std::shared_ptr<const Loaded> loaded_;
  std::unique_ptr<DlcPort> port_;
  double slowness_;
  std::vector<uint64_t> bases_;
  RunCounts counts_;
  bool stopped_ = false;
  bool clean_ = true;  // the device is as set_up() or a run to its end leaves it
};

}  // namespace dlc::asic
