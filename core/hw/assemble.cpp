// Assembler text: "name field=value field=enumerator ...", one instruction a line.
#include <fmt/format.h>

#include <sstream>

#include "core/hw/quantity.h"
#include "dlc/hw/encode.h"

namespace dlc {

namespace {

// Masks read better in hex.
bool is_mask(const HwDescription& hw, const HwField& f) {
  return hw.sync && (f.name == hw.sync->wait_field || f.name == hw.sync->signal_field);
}

Result<int64_t> field_value(const HwField& f, const std::string& text, const Loc& loc) {
  if (const HwEnumerator* e = f.find(text)) return e->value;
  return parse_integer(text, loc);
}

Result<Instruction> assemble_line(const HwDescription& hw, const std::string& line, const Loc& loc) {
  std::istringstream in(line);
  std::string word;
  in >> word;
  const int insn = hw.isa.find(word);
  if (insn < 0) {
    std::vector<std::string> names;
    for (const HwInsn& i : hw.isa.insns) names.push_back(i.name);
    const std::string near = nearest(word, names);
    return fail(loc, "there is no instruction '" + word + "'", near.empty() ? "" : "did you mean '" + near + "'?");
  }
  Instruction out = make_instruction(hw, insn);
  const HwInsn& d = hw.isa.insns[static_cast<size_t>(insn)];
  std::vector<bool> given(d.fields.size(), false);
  while (in >> word) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return fail(loc, "'" + word + "' is not of the form field=value");
    const std::string name = word.substr(0, equals);
    const int f = d.field(name);
    if (f >= 0 && given[static_cast<size_t>(f)]) return fail(loc, "field '" + name + "' is given twice");
    int64_t value = 0;
    if (f >= 0) {
      DLC_TRY(value, field_value(d.fields[static_cast<size_t>(f)], word.substr(equals + 1), loc));
      given[static_cast<size_t>(f)] = true;
    }
    if (auto r = set_field(hw, out, name, value); !r)
      return fail(loc, std::string(r.error().message()), r.error().diagnostics.front().hint);
  }
  if (auto r = check_instruction(hw, out); !r) return fail(loc, std::string(r.error().message()));
  return out;
}

}  // namespace

std::string disassemble(const HwDescription& hw, const Instruction& i) {
  const HwInsn& insn = hw.isa.insns[static_cast<size_t>(i.insn)];
  const Instruction plain = make_instruction(hw, i.insn);
  std::string out = insn.name;
  for (size_t f = 0; f < insn.fields.size() && f < i.fields.size(); ++f) {
    if (i.fields[f] == plain.fields[f]) continue;
    const HwField& field = insn.fields[f];
    const HwEnumerator* e = field.find(i.fields[f]);
    if (e)
      out += fmt::format(" {}={}", field.name, e->name);
    else if (is_mask(hw, field))
      out += fmt::format(" {}=0x{:x}", field.name, i.fields[f]);
    else
      out += fmt::format(" {}={}", field.name, i.fields[f]);
  }
  return out;
}

std::string disassemble(const HwDescription& hw, std::span<const Instruction> program) {
  std::string out;
  for (const Instruction& i : program) out += disassemble(hw, i) + "\n";
  return out;
}

Result<std::vector<Instruction>> assemble(const HwDescription& hw, std::string_view text, const std::string& file) {
  std::vector<Instruction> out;
  std::istringstream in{std::string(text)};
  std::string line;
  Error errors;
  for (int number = 1; std::getline(in, line); ++number) {
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    auto i = assemble_line(hw, line, {file, number, static_cast<int>(first) + 1, {}});
    if (i)
      out.push_back(std::move(*i));
    else if (errors.diagnostics.size() < 20)
      errors.add(std::move(i).error());
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return out;
}

}  // namespace dlc
