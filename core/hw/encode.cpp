#include "dlc/hw/encode.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/hw/field_code.h"
#include "core/hw/field_values.h"
#include "dlc/base/checked.h"

namespace dlc {

namespace {

const HwInsn& insn_of(const HwDescription& hw, const Instruction& i) {
  return hw.isa.insns[static_cast<size_t>(i.insn)];
}

std::string field_text(const HwInsn& insn, const HwField& f) { return insn.name + "." + f.name; }

// The stored bits of a value, or why it has none.
Result<int64_t> to_raw(const HwInsn& insn, const HwField& f, int64_t value) {
  if (!f.enumerators.empty()) {
    if (f.find(value)) return value;
    std::string names;
    for (const HwEnumerator& e : f.enumerators) names += (names.empty() ? "" : ", ") + e.name;
    return fail({}, fmt::format("{} = {} is none of {}", field_text(insn, f), value, names));
  }
  if (value < f.min() || value > f.max())
    return fail({}, fmt::format("{} = {} is outside {} .. {}", field_text(insn, f), value, f.min(), f.max()));
  if (floor_mod(value - f.plus, f.unit) != 0)
    return fail({}, fmt::format("{} = {} is not {} plus a multiple of {}", field_text(insn, f), value, f.plus, f.unit));
  return (value - f.plus) / f.unit;
}

void put_bits(std::span<uint32_t> words, int at, int width, uint64_t bits) {
  for (int b = 0; b < width;) {
    const int word = (at + b) / 32, shift = (at + b) % 32, n = std::min(32 - shift, width - b);
    const uint64_t mask = n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
    words[static_cast<size_t>(word)] |= static_cast<uint32_t>(((bits >> b) & mask) << shift);
    b += n;
  }
}

uint64_t get_bits(std::span<const uint32_t> words, int at, int width) {
  uint64_t bits = 0;
  for (int b = 0; b < width;) {
    const int word = (at + b) / 32, shift = (at + b) % 32, n = std::min(32 - shift, width - b);
    const uint64_t part = (uint64_t{words[static_cast<size_t>(word)]} >> shift) & ((uint64_t{1} << n) - 1);
    bits |= part << b;
    b += n;
  }
  return bits;
}

int64_t default_value(const HwField& f) {
  if (!f.enumerators.empty()) return f.find(int64_t{0}) ? 0 : f.enumerators.front().value;
  return f.min() <= 0 && f.max() >= 0 && floor_mod(-f.plus, f.unit) == 0 ? 0 : f.plus;
}

Result<> check_size(const HwDescription& hw, const Instruction& i) {
  if (i.insn < 0 || static_cast<size_t>(i.insn) >= hw.isa.insns.size())
    return fail({}, fmt::format("there is no instruction number {}", i.insn));
  if (i.fields.size() != insn_of(hw, i).fields.size())
    return fail({}, fmt::format("{} has {} fields, not {}", insn_of(hw, i).name, insn_of(hw, i).fields.size(),
                                i.fields.size()));
  return {};
}

Result<> check_require(const HwInsn& insn, std::span<const int64_t> fields) {
  for (const HwCondition& c : insn.require) {
    const auto v = evaluate_fields(c.value, insn, fields);
    if (!v)
      return fail({}, fmt::format("{}: '{}' cannot be evaluated (overflow or division by zero)", insn.name, c.text));
    if (*v < 0) return fail({}, fmt::format("{}: '{}' does not hold", insn.name, c.text));
  }
  return {};
}

}  // namespace

std::optional<int64_t> evaluate_fields(const Expr& e, const HwInsn& insn, std::span<const int64_t> fields) {
  const auto code = FieldCode::make(e, insn);
  return code ? code->run(fields) : std::nullopt;
}

Instruction make_instruction(const HwDescription& hw, int insn) {
  Instruction i{insn, {}};
  const HwInsn& d = hw.isa.insns[static_cast<size_t>(insn)];
  for (const HwField& f : d.fields) i.fields.push_back(f.name == hw.isa.opcode_field ? d.opcode : default_value(f));
  return i;
}

Result<> set_field(const HwDescription& hw, Instruction& i, std::string_view field, int64_t value) {
  const HwInsn& insn = insn_of(hw, i);
  const int f = insn.field(field);
  if (f < 0) {
    std::vector<std::string> names;
    for (const HwField& x : insn.fields) names.push_back(x.name);
    const std::string near = nearest(field, names);
    return fail({}, fmt::format("{} has no field '{}'", insn.name, field),
                near.empty() ? "" : "did you mean '" + near + "'?");
  }
  DLC_TRY(const int64_t raw, to_raw(insn, insn.fields[static_cast<size_t>(f)], value));
  (void)raw;
  i.fields[static_cast<size_t>(f)] = value;
  return {};
}

Result<> check_instruction(const HwDescription& hw, const Instruction& i) {
  DLC_CHECK(check_size(hw, i));
  const HwInsn& insn = insn_of(hw, i);
  for (size_t f = 0; f < insn.fields.size(); ++f) {
    DLC_TRY(const int64_t raw, to_raw(insn, insn.fields[f], i.fields[f]));
    (void)raw;
  }
  const int op = insn.field(hw.isa.opcode_field);
  if (i.fields[static_cast<size_t>(op)] != insn.opcode)
    return fail({}, fmt::format("{} has opcode {}, not {}", insn.name, insn.opcode, i.fields[static_cast<size_t>(op)]));
  return check_require(insn, i.fields);
}

Result<std::vector<uint32_t>> encode(const HwDescription& hw, const Instruction& i) {
  DLC_CHECK(check_instruction(hw, i));
  const HwInsn& insn = insn_of(hw, i);
  std::vector<uint32_t> words(static_cast<size_t>(hw.isa.words32()), 0);
  for (size_t f = 0; f < insn.fields.size(); ++f) {
    DLC_TRY(const int64_t raw, to_raw(insn, insn.fields[f], i.fields[f]));
    put_bits(words, insn.fields[f].at, insn.fields[f].width, static_cast<uint64_t>(raw));
  }
  return words;
}

Result<Instruction> decode(const HwDescription& hw, std::span<const uint32_t> words) {
  if (hw.isa.word_bits == 0 || words.size() != static_cast<size_t>(hw.isa.words32()))
    return fail({}, fmt::format("an instruction has {} words of 32 bits, not {}", hw.isa.words32(), words.size()));
  const auto raw_of = [&](const HwField& f) {
    const auto bits = static_cast<int64_t>(get_bits(words, f.at, f.width));
    return f.is_signed ? wrap_to({DType::Kind::signed_int, static_cast<uint8_t>(f.width)}, bits) : bits;
  };
  int64_t opcode = 0;
  for (const HwField& f : hw.isa.common)
    if (f.name == hw.isa.opcode_field) opcode = raw_of(f);
  const int index = hw.isa.find_opcode(opcode);
  if (index < 0) return fail({}, fmt::format("opcode {} is not an instruction", opcode));
  const HwInsn& insn = hw.isa.insns[static_cast<size_t>(index)];
  Instruction out{index, {}};
  std::vector<uint32_t> claimed(words.size(), 0);
  for (const HwField& f : insn.fields) {
    const int64_t raw = raw_of(f);
    if (!f.enumerators.empty() && !f.find(raw))
      return fail({}, fmt::format("{} = {} is not an enumerator", field_text(insn, f), raw));
    out.fields.push_back(raw * f.unit + f.plus);
    put_bits(claimed, f.at, f.width, ~uint64_t{0});
  }
  for (size_t w = 0; w < words.size(); ++w)
    if (const uint32_t stray = words[w] & ~claimed[w]; stray != 0)
      return fail(
          {}, fmt::format("{}: reserved bit {} is 1", insn.name, w * 32 + static_cast<size_t>(__builtin_ctz(stray))));
  DLC_CHECK(check_require(insn, out.fields));
  return out;
}

Result<std::vector<uint32_t>> encode_program(const HwDescription& hw, std::span<const Instruction> program) {
  std::vector<uint32_t> out;
  for (size_t k = 0; k < program.size(); ++k) {
    const auto words = encode(hw, program[k]);
    if (!words) return fail({}, fmt::format("instruction {}: {}", k, words.error().message()));
    out.insert(out.end(), words->begin(), words->end());
  }
  return out;
}

Result<std::vector<Instruction>> decode_program(const HwDescription& hw, std::span<const uint32_t> words) {
  const auto n = static_cast<size_t>(hw.isa.words32());
  if (n == 0 || words.size() % n != 0)
    return fail({}, fmt::format("{} words are no whole number of instructions of {} words", words.size(), n));
  std::vector<Instruction> out;
  for (size_t k = 0; k * n < words.size(); ++k) {
    auto i = decode(hw, words.subspan(k * n, n));
    if (!i) return fail({}, fmt::format("instruction {}: {}", k, i.error().message()));
    out.push_back(std::move(*i));
  }
  return out;
}

std::optional<int64_t> instruction_cycles(const HwDescription& hw, const Instruction& i) {
  const HwInsn& insn = insn_of(hw, i);
  return insn.cycles ? evaluate_fields(*insn.cycles, insn, i.fields) : std::nullopt;
}

int find_form(const HwInsn& insn, std::span<const int64_t> fields) {
  for (size_t k = 0; k < insn.forms.size(); ++k) {
    const auto holds = [&](const auto& w) {
      return std::find(w.second.begin(), w.second.end(), fields[static_cast<size_t>(w.first)]) != w.second.end();
    };
    if (std::all_of(insn.forms[k].when.begin(), insn.forms[k].when.end(), holds)) return static_cast<int>(k);
  }
  return -1;
}

}  // namespace dlc
