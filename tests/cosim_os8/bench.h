// Bench: a program of os8 as text, on its RTL and on the simulator that comes from the description, write by write.
//
//   Bench b;
//   b.data(0, words);                                     // into segment weights, at word 0
//   b.run("load to=act seg=weights nx=1 y1=1 x1=1 ...");  // tokens are put in between
//   b.arena(0, 1)[0]                                      // what a store left
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dlc/hw/timing.h"
#include "plugins/asic/runtime/cosim.h"
#include "tests/unit/asic/support.h"

namespace dlc::asic {

using Lanes = std::array<int, 8>;  // a word
constexpr Lanes every(int v) { return {v, v, v, v, v, v, v, v}; }

const TestMachine& os8();

class Bench {
 public:
  explicit Bench(RtlOptions options = {});

  void data(size_t word, const std::vector<Lanes>& words);
  std::vector<std::byte>& weights() { return weights_; }

  // The tokens that make a straight program right on queues, by what its instructions touch.
  std::vector<Instruction> synchronised(std::vector<Instruction> program) const;
  std::vector<Instruction> assemble(const std::string& text) const;
  // Both must write the same words; the program must end.
  CosimReport run(const std::string& text);
  CosimReport run(const std::vector<Instruction>& program);
  // As it is, on the RTL alone: what stops it, or "".
  std::string stops(const std::vector<Instruction>& program,
                    const std::vector<std::pair<size_t, uint32_t>>& words = {});
  // Some thousand cycles, after a run.
  void pass_time();
  std::vector<Lanes> arena(size_t word, size_t count);
  // When each instruction started and retired, from the cycle of the machine's start on.
  std::vector<InstructionTime> times(const std::vector<Instruction>& program);

 private:
  std::shared_ptr<Loaded> loaded(const std::vector<Instruction>& program) const;

  RtlOptions options_;
  std::vector<std::byte> weights_;
  std::shared_ptr<const Loaded> last_;
  std::unique_ptr<Driver> driver_;
};

}  // namespace dlc::asic
