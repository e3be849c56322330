// Instructions as field values, as words, and as assembler text.
//
//   mac accum=0 wdir=row zin=-3 in_base=0 n_ow=14 n_oh=14 wai=0x1
//
// Fields left out are 0, or `plus`, or the first enumerator.
//
// decode(encode(i)) == i and encode(decode(w)) == w: a word has one meaning, and bits that no field claims must be 0.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"

namespace dlc {

// insn indexes HwIsa::insns; fields[i] is the value (not the stored bits) of HwInsn::fields[i].
struct Instruction {
  int insn = 0;
  std::vector<int64_t> fields;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// All fields at their default: 0 where the range allows it, otherwise `plus`; the opcode set.
Instruction make_instruction(const HwDescription& hw, int insn);
// By name; the error names the instruction and the nearest field.
Result<> set_field(const HwDescription& hw, Instruction& i, std::string_view field, int64_t value);

// Ranges, units, enumerators and `require`; the error names the field, its value and the range.
Result<> check_instruction(const HwDescription& hw, const Instruction& i);

// One instruction to words32() words, lowest bits first.
Result<std::vector<uint32_t>> encode(const HwDescription& hw, const Instruction& i);
// Fails on an unknown opcode, an unlisted enumerator, a bit outside all fields, a `require` that does not hold.
Result<Instruction> decode(const HwDescription& hw, std::span<const uint32_t> words);

Result<std::vector<uint32_t>> encode_program(const HwDescription& hw, std::span<const Instruction> program);
Result<std::vector<Instruction>> decode_program(const HwDescription& hw, std::span<const uint32_t> words);

// One line; fields at their default are left out.
std::string disassemble(const HwDescription& hw, const Instruction& i);
std::string disassemble(const HwDescription& hw, std::span<const Instruction> program);
// Lines of instructions; `#` begins a comment.
Result<std::vector<Instruction>> assemble(const HwDescription& hw, std::string_view text, const std::string& file = {});

// `cycles` of the description for this instruction; nullopt where it has none or cannot be evaluated.
std::optional<int64_t> instruction_cycles(const HwDescription& hw, const Instruction& i);

// The form of `insn.forms` that holds for these field values, or -1.
int find_form(const HwInsn& insn, std::span<const int64_t> fields);

}  // namespace dlc
