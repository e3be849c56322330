#include "core/hw/canonical.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace dlc {

namespace {

using Lines = std::vector<std::string>;

std::string sorted(Lines lines) {
  std::ranges::sort(lines);
  return fmt::format("[{}]", fmt::join(lines, ","));
}

template <class List, class F>
Lines each(const List& list, const F& f) {
  Lines out;
  for (const auto& item : list) out.push_back(f(item));
  return out;
}

// A blank stays between two words; a new line, which ends a statement, stays a new line.
std::string expression(std::string_view text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string out;
  char gap = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (gap != '\n') gap = c == '\n' ? '\n' : ' ';
      continue;
    }
    if (!out.empty() && (gap == '\n' || (gap == ' ' && is_word(out.back()) && is_word(c)))) out += gap;
    gap = 0;
    out += c;
  }
  return '"' + out + '"';
}

std::string elem(const HwElem& e) { return fmt::format("{}[{}]", to_string(e.dtype), e.lanes); }

template <class T>
std::string maybe(const std::optional<T>& v) {
  return v ? fmt::format("{}", *v) : "-";
}

std::string state(const HwState& s) {
  const HwTiming& t = s.timing;
  const auto view = [](const HwView& v) {
    return fmt::format("{}:{}@{} step {}", v.name, elem(v.elem), v.offset, v.step);
  };
  const auto port = [](const HwPort& p) { return fmt::format("{}:{}", p.name, fmt::join(p.clients, " ")); };
  const auto segment = [](const HwSegment& g) { return g.name + (g.writable ? ":rw" : ":ro"); };
  return fmt::format(
      "{} kind {} {} words {} entries {} views {} segments {} ports {} conflict {} base {} banks {} per {} align {} "
      "reset {} latency {} burst {} boundary {} split {} peak {} {} rom {} counter {} owner {}",
      s.name, static_cast<int>(s.kind), elem(s.elem), s.words, s.entries, sorted(each(s.views, view)),
      fmt::join(each(s.segments, segment), ","), sorted(each(s.ports, port)), s.conflict, s.base, s.banks,
      s.ports_per_bank, s.align, maybe(s.reset), t.read_latency ? t.read_latency->value : -1, maybe(t.burst_max),
      maybe(t.boundary), t.split_by, t.peak ? t.peak->bytes : -1, t.peak && t.peak->per_cycle, fmt::join(s.rom, " "),
      s.counter_bits, s.one_waiting_queue);
}

std::string def(const HwDef& d) {
  const auto arg = [](const HwDefArg& a) { return a.name + ":" + to_string(a.dtype); };
  return fmt::format("{}({})->{} {}", d.name, fmt::join(each(d.args, arg), ","), to_string(d.result),
                     expression(d.body));
}

std::string field(const HwField& f) {
  const auto code = [](const HwEnumerator& e) { return fmt::format("{}={}", e.name, e.value); };
  return fmt::format("{} {}{}@{} unit {} plus {} reloc {} {}", f.name, f.is_signed ? "s" : "u", f.width, f.at, f.unit,
                     f.plus, f.reloc, sorted(each(f.enumerators, code)));
}

std::string insn(const HwDescription& hw, const HwInsn& i) {
  const auto loop = [](const Loop& l) { return l.var + "<" + to_string(l.extent); };
  const auto condition = [](const HwCondition& c) { return expression(c.text); };
  const auto variant = [&](const HwVariant& v) {
    const auto fix = [&](const auto& f) {
      return fmt::format("{}={}", i.fields[static_cast<size_t>(f.first)].name, f.second);
    };
    return fmt::format("{} {} {} {}", v.name, sorted(each(v.fix, fix)), v.staged,
                       fmt::join(each(v.texts, expression), ";"));
  };
  return fmt::format("{} op {} queue {} fields {} loops {} variants {} require {} cycles {}", i.name, i.opcode,
                     i.queue < 0 ? "-" : hw.queues[static_cast<size_t>(i.queue)].name, sorted(each(i.fields, field)),
                     sorted(each(i.loops, loop)), sorted(each(i.variants, variant)), sorted(each(i.require, condition)),
                     i.cycles ? to_string(*i.cycles) : "-");
}

std::string csr(const HwCsr& r) {
  const auto flag = [](const HwCsrBits& b) { return fmt::format("{}:{}@{} {}", b.name, b.width, b.at, b.access); };
  return fmt::format("{} at {} w {} n {} {} {} {} names {}", r.name, r.at, r.bits, r.count, r.access, r.value,
                     sorted(each(r.flags, flag)), fmt::join(r.names, " "));
}

}  // namespace

std::string canonical_text(const HwDescription& hw) {
  const auto param = [](const HwParam& p) { return fmt::format("{}={}", p.name, p.value); };
  const auto queue = [](const HwQueue& q) { return fmt::format("{}:{}", q.name, q.depth); };
  const auto fault = [](const HwFault& f) { return fmt::format("{}={}", f.name, f.code); };
  std::string out = "dlc_hw 1\n";
  out += "params " + sorted(each(hw.params, param)) + "\n";
  out += "state " + sorted(each(hw.state, state)) + "\n";
  out += "def " + sorted(each(hw.defs, def)) + "\n";
  out += fmt::format("queues {}\n", fmt::join(each(hw.queues, queue), ","));  // numbered in the file's order
  if (hw.sync)
    out += fmt::format("sync {} {} {}{}\n", hw.state[static_cast<size_t>(hw.sync->object)].name, hw.sync->wait_field,
                       hw.sync->signal_field, hw.sync->tokens() ? " tokens" : "");
  out += "faults " + sorted(each(hw.faults, fault)) + "\n";
  out += "csr " + sorted(each(hw.csr, csr)) + "\n";
  const auto feature = [](const HwFeature& f) { return f.name; };
  const auto vectors = [&](const HwVectors& v) {
    return fmt::format("{} {} {} needs {}", v.name, v.bytes, v.registers, sorted(each(v.needs, feature)));
  };
  out += fmt::format("isa {} {} {} features {} vectors {}\n", hw.isa.word_bits, hw.isa.opcode_field, hw.isa.transport,
                     sorted(each(hw.features, feature)), sorted(each(hw.vectors, vectors)));
  out += "insns " + sorted(each(hw.isa.insns, [&](const HwInsn& i) { return insn(hw, i); })) + "\n";
  return out;
}

}  // namespace dlc
