// Co-simulation: one program on the RTL and on the functional simulator, compared write by write.
//
// In a race-free program the writes of one queue, in order, do not depend on how the queues interleave, so the streams
// are compared queue by queue, and the words of one instruction as a set: it may write them in any order. The first
// difference names the instruction, its layer and its tile.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/tensor.h"
#include "plugins/asic/runtime/driver.h"

namespace dlc::asic {

struct Difference {
  int64_t instruction = -1;
  std::string queue, text;  // the instruction as assembler text
  std::string layer;
  int64_t tile = 0;
  std::string memory;
  uint64_t address = 0;        // word; for external memory the byte
  uint64_t cycle = 0;          // of the RTL, since its port was opened
  std::string rtl, simulator;  // the word in hexadecimal; "none" where there is no write
};

struct CosimReport {
  bool bit_exact = false;
  int64_t writes = 0;  // words compared
  std::optional<Difference> first;
  std::string stopped;  // why the RTL did not come to its end, if it did not
  RunCounts counts;
  std::vector<Tensor> outputs;  // of the RTL; of the simulator when the RTL stopped
  uint64_t end = 0;             // the RTL's clock after the run
};

Result<CosimReport> cosimulate(const Loaded& loaded, Driver& rtl, std::span<const Tensor> inputs);
std::string to_json(const CosimReport& r, bool with_times = false);

}  // namespace dlc::asic
