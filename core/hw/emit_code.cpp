// Constants of a description in SystemVerilog, C and C++.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "dlc/hw/emit.h"

namespace dlc {

namespace {

struct Constant {
  std::string name;
  int bits = 0;  // 0: a plain integer
  int64_t value = 0;
  std::string hex;  // when bits > 0
};

std::string upper(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

std::string used_mask(const HwInsn& insn, int bits) {
  std::string hex;
  for (int nibble = bits / 4 - 1; nibble >= 0; --nibble) {
    int v = 0;
    for (const HwField& f : insn.fields)
      for (int b = 0; b < 4; ++b)
        if (nibble * 4 + b >= f.at && nibble * 4 + b < f.at + f.width) v |= 1 << b;
    hex += "0123456789abcdef"[v];
  }
  const size_t first = std::min(hex.find_first_not_of('0'), hex.size() - 1);
  return hex.substr(first);
}

void field_constants(const std::string& prefix, const HwField& f, bool common, std::vector<Constant>& out) {
  const std::string name = prefix + upper(f.name);
  out.push_back({name + "_L", 0, f.at, ""});
  out.push_back({name + "_W", 0, f.width, ""});
  if (!common) out.push_back({name + "_P", 0, f.plus, ""});
  if (f.unit != 1) out.push_back({name + "_U", 0, f.unit, ""});
  for (const HwEnumerator& e : f.enumerators) out.push_back({name + "_E_" + upper(e.name), 0, e.value, ""});
}

std::vector<Constant> constants(const HwDescription& hw) {
  std::vector<Constant> out;
  for (const HwParam& p : hw.params) out.push_back({p.name, 0, p.value, ""});
  if (hw.isa.word_bits > 0) out.push_back({"WORD", 0, hw.isa.word_bits, ""});
  for (size_t q = 0; q < hw.queues.size(); ++q)
    out.push_back({"Q_" + upper(hw.queues[q].name), 0, static_cast<int64_t>(q), ""});
  for (const HwField& f : hw.isa.common) field_constants("", f, true, out);
  for (const HwInsn& insn : hw.isa.insns) {
    out.push_back({"OP_" + upper(insn.name), 0, insn.opcode, ""});
    for (size_t f = hw.isa.common.size(); f < insn.fields.size(); ++f)
      field_constants(upper(insn.name) + "_", insn.fields[f], false, out);
    out.push_back({upper(insn.name) + "_USED", hw.isa.word_bits, 0, used_mask(insn, hw.isa.word_bits)});
  }
  for (const HwFault& f : hw.faults) out.push_back({"FAULT_" + upper(f.name), 0, f.code, ""});
  for (const HwCsr& r : hw.csr) {
    out.push_back({"CSR_" + upper(r.name), 0, r.at, ""});
    if (r.count > 1) out.push_back({"CSR_" + upper(r.name) + "_N", 0, r.count, ""});
    for (const HwCsrBits& b : r.flags) {
      out.push_back({fmt::format("CSR_{}_{}_B", upper(r.name), upper(b.name)), 0, b.at, ""});
      if (b.width > 1) out.push_back({fmt::format("CSR_{}_{}_W", upper(r.name), upper(b.name)), 0, b.width, ""});
    }
    for (size_t i = 0; i < r.names.size(); ++i)
      out.push_back({upper(r.name) + "_" + upper(r.names[i]), 0, static_cast<int64_t>(i), ""});
  }
  for (const HwState& s : hw.state) {
    if (s.timing.boundary) out.push_back({upper(s.name) + "_BOUNDARY", 0, *s.timing.boundary, ""});
    if (s.timing.burst_max) out.push_back({upper(s.name) + "_BURST_MAX", 0, *s.timing.burst_max, ""});
    if (s.kind == HwState::Kind::counter) out.push_back({upper(s.name) + "_BITS", 0, s.counter_bits, ""});
    for (size_t i = 0; i < s.rom.size(); ++i)
      out.push_back({fmt::format("ROM_{}_{}", upper(s.name), i), 0, s.rom[i], ""});
  }
  out.push_back({"ARCH_HASH", 64, 0, fmt::format("{:x}", hw.arch_hash)});
  return out;
}

std::string package_name(const HwDescription& hw, std::string_view given) {
  if (!given.empty()) return std::string(given);
  if (hw.rtl.package.empty()) return hw.name + "_cfg";
  return hw.rtl.package.substr(0, hw.rtl.package.find('.'));
}

std::string note(const HwDescription& hw) {
  const size_t slash = hw.file.rfind('/');
  return fmt::format("// Generated from {}; do not edit. arch_hash {}\n",
                     slash == std::string::npos ? hw.file : hw.file.substr(slash + 1), hash_text(hw.arch_hash));
}

bool fits_int(int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

}  // namespace

std::string emit_systemverilog(const HwDescription& hw, std::string_view package) {
  std::string out = note(hw) + "// verilator lint_off UNUSEDPARAM\npackage " + package_name(hw, package) + ";\n";
  for (const Constant& c : constants(hw)) {
    if (c.bits > 0)
      out += fmt::format("  localparam logic [{}:0] {} = {}'h{};\n", c.bits - 1, c.name, c.bits, c.hex);
    else
      out += fmt::format("  localparam {} {} = {};\n", fits_int(c.value) ? "int" : "longint", c.name, c.value);
  }
  return out + "endpackage\n// verilator lint_on UNUSEDPARAM\n";
}

std::string emit_cpp_header(const HwDescription& hw, std::string_view package) {
  const std::string name = package_name(hw, package);
  std::string out = note(hw) + "#pragma once\n#include <cstdint>\nnamespace " + name + " {\n";
  for (const Constant& c : constants(hw)) {
    if (c.bits == 0)
      out += fmt::format("inline constexpr {} {} = {};\n", fits_int(c.value) ? "int" : "int64_t", c.name, c.value);
    else if (c.bits <= 64)
      out += fmt::format("inline constexpr uint64_t {} = 0x{}u;\n", c.name, c.hex);
  }
  return out + "}  // namespace " + name + "\n";
}

std::string emit_c_header(const HwDescription& hw, std::string_view package) {
  const std::string name = package_name(hw, package), prefix = upper(name) + "_";
  std::string out = note(hw) + fmt::format("#ifndef {0}H\n#define {0}H\n#include <stdint.h>\n", prefix);
  for (const Constant& c : constants(hw)) {
    if (c.bits == 0)
      out += fmt::format("#define {}{} {}\n", prefix, c.name,
                         fits_int(c.value) ? fmt::format("({})", c.value) : fmt::format("INT64_C({})", c.value));
    else if (c.bits <= 64)
      out += fmt::format("#define {}{} UINT64_C(0x{})\n", prefix, c.name, c.hex);
  }
  out += "\n/* Ors the low `width` bits of `value` into bit `low` of an instruction. */\n";
  out += fmt::format(
      "static inline void {}_put(uint32_t* words, int low, int width, uint64_t value) {{\n"
      "  for (int b = 0; b < width; ++b)\n"
      "    words[(low + b) / 32] |= (uint32_t)(value >> b & 1u) << ((low + b) % 32);\n"
      "}}\n",
      name);
  const std::string& op = hw.isa.opcode_field;
  for (const HwInsn& insn : hw.isa.insns) {
    out += fmt::format("\n/* {}{}{} */\ntypedef struct {{\n", insn.name, insn.doc.empty() ? "" : ": ", insn.doc);
    for (const HwField& f : insn.fields)
      if (f.name != op) out += fmt::format("  int64_t {};\n", f.name);
    out += fmt::format("}} {}_{}_t;\n", name, insn.name);
    out += fmt::format("static inline void {0}_{1}(uint32_t words[{2}], const {0}_{1}_t* a) {{\n", name, insn.name,
                       hw.isa.words32());
    out += fmt::format("  for (int i = 0; i < {}; ++i) words[i] = 0;\n", hw.isa.words32());
    for (const HwField& f : insn.fields) {
      std::string value = f.name == op ? std::to_string(insn.opcode) : "a->" + f.name;
      if (f.plus != 0) value = fmt::format("({} - ({}))", value, f.plus);
      if (f.unit != 1) value += fmt::format(" / {}", f.unit);
      out += fmt::format("  {}_put(words, {}, {}, (uint64_t)({}));\n", name, f.at, f.width, value);
    }
    out += "}\n";
  }
  return out + "#endif\n";
}

}  // namespace dlc
