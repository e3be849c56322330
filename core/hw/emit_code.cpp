// Constants of a description in SystemVerilog, C and C++.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/hw/constants.h"
#include "dlc/hw/emit.h"

namespace dlc {

namespace {

std::string package_or(const HwDescription& hw, std::string_view given) {
  return given.empty() ? package_name(hw) : std::string(given);
}

// Inside a comment of C: one line, which does not end the comment.
std::string comment(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '/' && out.ends_with('*')) out += ' ';
    if (c == '*' && out.ends_with('/')) out += ' ';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string note(const HwDescription& hw) {
  const size_t slash = hw.file.rfind('/');
  return fmt::format("// Generated from {}; do not edit. arch_hash {}\n",
                     comment(slash == std::string::npos ? hw.file : hw.file.substr(slash + 1)),
                     hash_text(hw.arch_hash));
}

// The queue whose instructions write external memory; -1: none.
int storing_queue(const HwDescription& hw) {
  for (const HwInsn& insn : hw.isa.insns)
    for (const HwForm& f : insn.forms)
      for (const int t : f.kernel.outputs) {
        const HwOperand& o = f.operands[static_cast<size_t>(t)];
        int space = o.space;
        if (o.selector >= 0) space = insn.fields[static_cast<size_t>(o.selector)].enumerators.front().space;
        if (space >= 0 && hw.state_of(space).kind == HwState::Kind::external) return insn.queue;
      }
  return -1;
}

// Names and sizes, for a port that shows what any machine writes (simulators/port).
std::string machine_tables(const HwDescription& hw) {
  std::string names, bytes;
  int external = -1;
  int64_t latency = 0;
  for (size_t i = 0; i < hw.state.size(); ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", hw.state[i].name);
    bytes += fmt::format("{}{}", i == 0 ? "" : ", ", hw.state[i].word_bytes());
    if (hw.state[i].kind != HwState::Kind::external) continue;
    external = static_cast<int>(i);
    if (const auto& l = hw.state[i].timing.read_latency; l && l->in_cycles) latency = static_cast<int64_t>(l->value);
  }
  if (external < 0 || hw.queues.empty()) return {};
  return fmt::format(
      "namespace machine {{\n"
      "inline constexpr const char* STATES[] = {{{}}};  // M_NAME is the index\n"
      "inline constexpr int WORD_BYTES[] = {{{}}};\n"
      "inline constexpr int QUEUES = {}, EXTERNAL = {}, STORES = {}, BUS_BYTES = {};  // STORES: the queue that writes "
      "it\n"
      "inline constexpr int READ_LATENCY = {};\n"
      "}}  // namespace machine\n",
      names, bytes, hw.queues.size(), external, storing_queue(hw), hw.rtl.bus_bytes.value_or(0), latency);
}

bool fits_int(int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

}  // namespace

std::string emit_systemverilog(const HwDescription& hw, std::string_view package) {
  std::string out = note(hw) + "// verilator lint_off UNUSEDPARAM\npackage " + package_or(hw, package) + ";\n";
  for (const HwConstant& c : emitted_constants(hw)) {
    if (c.bits > 0)
      out += fmt::format("  localparam logic [{}:0] {} = {}'h{};\n", c.bits - 1, c.name, c.bits, c.hex);
    else
      out += fmt::format("  localparam {} {} = {};\n", fits_int(c.value) ? "int" : "longint", c.name,
                         fits_int(c.value) ? std::to_string(c.value)
                                           : fmt::format("{}64'sd{}", c.value < 0 ? "-" : "", std::abs(c.value)));
  }
  return out + "endpackage\n// verilator lint_on UNUSEDPARAM\n";
}

std::string emit_cpp_header(const HwDescription& hw, std::string_view package) {
  const std::string name = package_or(hw, package);
  std::string out = note(hw) + "#pragma once\n#include <cstdint>\nnamespace " + name + " {\n";
  for (const HwConstant& c : emitted_constants(hw)) {
    if (c.bits == 0)
      out += fmt::format("inline constexpr {} {} = {};\n", fits_int(c.value) ? "int" : "int64_t", c.name, c.value);
    else if (c.bits <= 64)
      out += fmt::format("inline constexpr uint64_t {} = 0x{}u;\n", c.name, c.hex);
  }
  return out + machine_tables(hw) + "}  // namespace " + name + "\n";
}

std::string emit_c_header(const HwDescription& hw, std::string_view package) {
  const std::string name = package_or(hw, package);
  std::string prefix = name + "_";
  std::ranges::transform(prefix, prefix.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string out = note(hw) + fmt::format("#ifndef {0}H\n#define {0}H\n#include <stdint.h>\n", prefix);
  for (const HwConstant& c : emitted_constants(hw)) {
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
    out +=
        fmt::format("\n/* {}{}{} */\ntypedef struct {{\n", insn.name, insn.doc.empty() ? "" : ": ", comment(insn.doc));
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
