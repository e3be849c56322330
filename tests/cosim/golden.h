// Golden: nx16 in plain C++, written by hand from docs/accelerator.md. It shares no text with the description's `does`,
// so that a wrong sentence there cannot agree with itself.
//
// Instructions run in program order, which a race-free program cannot tell from its queues.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dlc/hw/description.h"
#include "dlc/hw/encode.h"

namespace dlc::cosim {

// One word of a memory, or one bus beat, that a queue wrote.
struct Word {
  std::string memory;
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
  friend bool operator==(const Word&, const Word&) = default;
};
std::string to_string(const Word& w);

class Golden {
 public:
  explicit Golden(const HwDescription& hw);

  // Address of each segment in dram(), by the enumerators of `seg`.
  std::vector<uint64_t> segments;
  std::vector<uint8_t> dram;
  std::map<std::string, std::vector<uint8_t>> memories;  // by name, words dense

  void run(const std::vector<Instruction>& program);
  const std::vector<std::vector<Word>>& writes() const { return writes_; }  // per queue, in order

 private:
  void ld(const Instruction& i);
  void mac(const Instruction& i);
  void vec(const Instruction& i);
  void vec2(const Instruction& i);
  void row(const Instruction& i);
  void norm(const Instruction& i);
  int32_t accumulator(int64_t word, int64_t lane) const;
  void st(const Instruction& i);
  int64_t f(const Instruction& i, const char* field) const;
  bool is(const Instruction& i, const char* field, const char* enumerator) const;
  std::string name(const Instruction& i, const char* field) const;
  void put(int queue, const std::string& memory, int64_t word, const std::vector<uint8_t>& bytes);
  // A memory whose word is C signed bytes.
  struct Vectors {
    const std::vector<uint8_t>& bytes;
    int64_t lanes;
    int8_t at(int64_t word, int64_t lane) const {
      return static_cast<int8_t>(bytes.at(static_cast<size_t>(word * lanes + lane)));
    }
  };
  Vectors vectors(const std::string& memory) const { return {memories.at(memory), lanes_}; }
  int8_t look_up(const Instruction& i, int64_t y) const;

  const HwDescription& hw_;
  int64_t lanes_;
  std::vector<std::vector<Word>> writes_;
};

}  // namespace dlc::cosim
