// The manual page of a description.
#include <fmt/format.h>

#include <algorithm>

#include "dlc/hw/emit.h"

namespace dlc {

namespace {

// Text of the file in one line, which ends neither a paragraph nor a cell of a table.
std::string line(std::string_view text, bool is_cell = false) {
  std::string out;
  for (const char c : text) {
    if (c == '|' && is_cell) out += '\\';
    out += c == '\n' || c == '\t' ? ' ' : c;
  }
  return out;
}

std::string elem_text(const HwElem& e) {
  return e.lanes == 0 ? to_string(e.dtype) : fmt::format("{}[{}]", to_string(e.dtype), e.lanes);
}

std::string timing_text(const HwTiming& t) {
  std::string out;
  if (t.read_latency)
    out += fmt::format("; read latency {} {}", t.read_latency->value, t.read_latency->in_cycles ? "cycles" : "s");
  if (t.burst_max) out += fmt::format("; bursts of at most {}", *t.burst_max);
  if (t.boundary) out += fmt::format("; no burst crosses {} bytes", *t.boundary);
  if (!t.split_by.empty()) out += fmt::format("; split by {}", t.split_by);
  if (t.peak) out += fmt::format("; peak {} bytes per {}", t.peak->bytes, t.peak->per_cycle ? "cycle" : "second");
  return out;
}

std::string memory_row(const HwState& s) {
  std::string what;
  switch (s.kind) {
    case HwState::Kind::table:
      what = fmt::format("{} tables of {} {}", s.words, s.entries, to_string(s.elem.dtype));
      break;
    case HwState::Kind::rom:
      what = fmt::format("ROM of {} {}", s.words, to_string(s.elem.dtype));
      break;
    case HwState::Kind::counter:
      what = fmt::format("{} counters of {} bits", s.words, s.counter_bits);
      break;
    case HwState::Kind::external:
      what = "external memory, segments";
      for (const HwSegment& g : s.segments) what += fmt::format(" {} ({})", g.name, g.writable ? "rw" : "ro");
      break;
    default:
      what = fmt::format("{} words of {}", s.words, elem_text(s.elem));
  }
  for (const HwView& v : s.views)
    what += fmt::format("; view {}: {} at word {}{}", v.name, elem_text(v.elem), v.offset,
                        v.step == 1 ? "" : fmt::format(", every {} words", v.step));
  if (s.banks > 1) what += fmt::format("; {} banks", s.banks);
  if (s.align > 1) what += fmt::format("; addresses are multiples of {}", s.align);
  if (!s.base.empty()) what += fmt::format("; segments begin at `{}`", s.base);
  what += timing_text(s.timing);
  std::string ports;
  for (const HwPort& p : s.ports) {
    ports += (ports.empty() ? "" : ", ") + p.name + ":";
    for (const std::string& c : p.clients) ports += " " + c;
  }
  return fmt::format("| `{}` | {} | {} | {} |\n", s.name, what, ports.empty() ? "-" : ports,
                     s.conflict.empty() ? "-" : s.conflict);
}

std::string field_row(const HwField& f) {
  std::string range = fmt::format("{} .. {}", f.min(), f.max());
  if (!f.enumerators.empty()) {
    range.clear();
    for (const HwEnumerator& e : f.enumerators)
      range += (range.empty() ? "" : ", ") + fmt::format("{} = {}", e.value, e.name);
  }
  std::string stored;
  if (f.plus != 0) stored = fmt::format("value - {}", f.plus);
  if (f.unit != 1) stored = fmt::format("{} / {}", stored.empty() ? "value" : "(" + stored + ")", f.unit);
  return fmt::format("| {} .. {} | `{}` | {} | {} | {}{} |\n", f.at, f.at + f.width - 1, f.name, range,
                     stored.empty() ? "value" : stored, line(f.doc, true), f.reloc ? " (relocatable)" : "");
}

std::string insn_section(const HwDescription& hw, const HwInsn& insn) {
  std::string out = fmt::format("### {}\n\n", insn.name);
  if (!insn.doc.empty()) out += line(insn.doc) + "\n\n";
  out += fmt::format("Opcode {}, queue `{}`.\n\n| bits | field | values | stored | |\n|---|---|---|---|---|\n",
                     insn.opcode, insn.queue < 0 ? "-" : hw.queues[static_cast<size_t>(insn.queue)].name);
  std::vector<const HwField*> fields;
  for (const HwField& f : insn.fields) fields.push_back(&f);
  std::sort(fields.begin(), fields.end(), [](const HwField* a, const HwField* b) { return a->at < b->at; });
  for (const HwField* f : fields) out += field_row(*f);
  if (!insn.loops.empty()) {
    out += "\nLoops:";
    for (size_t i = 0; i < insn.loops.size(); ++i)
      out += fmt::format("{} `{} < {}`", i ? "," : "", insn.loops[i].var, to_string(insn.loops[i].extent));
    out += ".\n";
  }
  for (const HwVariant& v : insn.variants) {
    out += "\n";
    if (!v.name.empty()) {
      out += fmt::format("Variant {}:", v.name);
      for (const auto& [f, value] : v.fix) {
        const HwField& field = insn.fields[static_cast<size_t>(f)];
        const HwEnumerator* e = field.find(value);
        out += fmt::format(" `{} = {}`", field.name, e ? e->name : std::to_string(value));
      }
      out += "\n\n";
    }
    for (const std::string& t : v.texts) out += "    " + t + "\n";
  }
  for (const HwCondition& c : insn.require) out += fmt::format("\nLegal only where `{}`.\n", c.text);
  if (insn.cycles) out += fmt::format("\nCycles: `{}`.\n", to_string(*insn.cycles));
  return out + "\n";
}

}  // namespace

std::string emit_manual(const HwDescription& hw) {
  std::string out = fmt::format("# {}\n\n", hw.name);
  if (!hw.doc.empty()) out += line(hw.doc) + "\n\n";
  out += fmt::format("arch_hash {}\n\n", hash_text(hw.arch_hash));
  for (const auto& [name, hertz] : hw.clocks) out += fmt::format("Clock {}: {} MHz\n\n", name, hertz / 1e6);
  if (!hw.params.empty()) {
    out += "| param | value |\n|---|---|\n";
    for (const HwParam& p : hw.params) out += fmt::format("| {} | {} |\n", p.name, p.value);
  }
  if (!hw.state.empty()) {
    out += "\n## State\n\n| name | what | ports | conflict |\n|---|---|---|---|\n";
    for (const HwState& s : hw.state) out += memory_row(s);
  }
  if (!hw.defs.empty()) out += "\n## Functions\n\n";
  for (const HwDef& d : hw.defs) {
    std::string args;
    for (const HwDefArg& a : d.args) args += (args.empty() ? "" : ", ") + a.name + ": " + to_string(a.dtype);
    out += fmt::format("    {}({}) -> {} = {}\n", d.name, args, to_string(d.result), d.body);
    for (const HwExample& e : d.examples) {
      std::string values;
      for (const int64_t a : e.args) values += (values.empty() ? "" : ", ") + std::to_string(a);
      out += fmt::format("        {}({}) = {}\n", d.name, values, e.result);
    }
  }
  if (!hw.isa.insns.empty()) out += fmt::format("\n## Instructions ({} bits)\n\n", hw.isa.word_bits);
  for (const HwInsn& i : hw.isa.insns) out += insn_section(hw, i);
  if (!hw.csr.empty()) {
    out += "## Registers\n\n| offset | name | bits | what |\n|---|---|---|---|\n";
    for (const HwCsr& r : hw.csr) {
      std::string what = r.value.empty() ? r.access : r.access + ", " + r.value;
      for (const HwCsrBits& b : r.flags) what += fmt::format("; {}: bit {} ({})", b.name, b.at, b.access);
      for (size_t i = 0; i < r.names.size(); ++i) what += fmt::format("; [{}] {}", i, r.names[i]);
      out += fmt::format("| 0x{:x} | {}{} | {} | {} |\n", r.at, r.name, r.count > 1 ? fmt::format("[{}]", r.count) : "",
                         r.bits, what);
    }
  }
  if (hw.sync && !hw.sync->visible.empty()) {
    out += "\n## When stores are visible\n\n";
    for (const auto& [queue, when] : hw.sync->visible) out += fmt::format("* {}: {}\n", queue, line(when));
  }
  if (!hw.faults.empty()) {
    out += "\n## Faults\n\n";
    for (const HwFault& f : hw.faults) out += fmt::format("* {} = {}\n", f.name, f.code);
    if (!hw.fault_effect.empty()) out += "\n" + line(hw.fault_effect) + "\n";
  }
  return out;
}

}  // namespace dlc
