// A program on the functional simulator with every write kept: what a run of the RTL is compared with, by `cosimulate`
// and by a test bench that reads exported vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "dlc/base/tensor.h"
#include "plugins/asic/runtime/container.h"

namespace dlc::asic {

struct WrittenWord {
  std::string memory;
  uint64_t address = 0;  // word; for external memory the byte
  std::vector<std::byte> bytes;
  uint64_t cycle = 0;  // of a device with a clock
  friend bool operator==(const WrittenWord& a, const WrittenWord& b) {
    return a.memory == b.memory && a.address == b.address && a.bytes == b.bytes;
  }
  bool before(const WrittenWord& o) const { return std::tie(memory, address) < std::tie(o.memory, o.address); }
};

struct InstructionWrites {
  int64_t instruction = 0;
  std::vector<WrittenWord> words;
};

struct ReferenceRun {
  std::vector<std::vector<InstructionWrites>> writes;  // per queue, in its order
  std::vector<Tensor> outputs;
};

// External memory is laid out as the driver does it for a device.
Result<ReferenceRun> run_reference(const Loaded& loaded, std::span<const Tensor> inputs);

}  // namespace dlc::asic
