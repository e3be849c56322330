#include "core/hw/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace dlc {

namespace {

// Words that cannot be the name of a field or param: fields are members of a C struct, params are constants of all
// three languages as they are written.
constexpr std::string_view kC =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int "
    "int64_t long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct "
    "switch template this thread_local throw true try typedef typeid typename typeof uint32_t uint64_t union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq linux unix ";
constexpr std::string_view kSystemVerilog =
    " accept_on alias always always_comb always_ff always_latch assert assign assume automatic before begin bind bins "
    "binsof bit buf bufif0 bufif1 byte casex casez cell chandle checker clocking cmos config constraint context cover "
    "covergroup coverpoint cross deassign defparam design disable dist edge end endcase endchecker endclass "
    "endclocking endconfig endfunction endgenerate endgroup endinterface endmodule endpackage endprimitive endprogram "
    "endproperty endspecify endsequence endtable endtask event eventually expect extends final first_match force "
    "foreach forever fork forkjoin function generate genvar global highz0 highz1 iff ifnone ignore_bins illegal_bins "
    "implements implies import incdir include initial inout input inside instance integer interconnect interface "
    "intersect join join_any join_none large let liblist library local localparam logic longint macromodule matches "
    "medium modport module nand negedge nettype nexttime nmos nor noshowcancelled notif0 notif1 null output package "
    "packed parameter pmos posedge primitive priority program property pull0 pull1 pulldown pullup "
    "pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg "
    "reject_on release repeat restrict rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime s_until "
    "s_until_with scalared sequence shortint shortreal showcancelled small soft solve specify specparam string strong "
    "strong0 strong1 super supply0 supply1 sync_accept_on sync_reject_on table tagged task throughout time "
    "timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type unique unique0 until "
    "until_with untyped use uwire var vectored wait wait_order wand weak weak0 weak1 wildcard wire with within wor "
    "xnor ";

bool is_among(std::string_view name, std::string_view words) {
  return words.find(" " + std::string(name) + " ") != std::string_view::npos;
}
bool is_c(std::string_view name) { return is_among(name, kC); }
bool is_reserved(std::string_view name) { return is_c(name) || is_among(name, kSystemVerilog); }

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

void field_constants(const std::string& prefix, const HwField& f, bool common, std::vector<HwConstant>& out) {
  const std::string name = prefix + upper(f.name);
  out.push_back({name + "_L", 0, f.at, "", f.loc});
  out.push_back({name + "_W", 0, f.width, "", f.loc});
  if (!common) out.push_back({name + "_P", 0, f.plus, "", f.loc});
  if (f.unit != 1) out.push_back({name + "_U", 0, f.unit, "", f.loc});
  for (const HwEnumerator& e : f.enumerators) out.push_back({name + "_E_" + upper(e.name), 0, e.value, "", f.loc});
}

}  // namespace

std::vector<HwConstant> emitted_constants(const HwDescription& hw) {
  std::vector<HwConstant> out;
  for (const HwParam& p : hw.params) out.push_back({p.name, 0, p.value, "", p.loc});
  if (hw.isa.word_bits > 0) out.push_back({"WORD", 0, hw.isa.word_bits, "", hw.place("isa")});
  for (size_t q = 0; q < hw.queues.size(); ++q)
    out.push_back({"Q_" + upper(hw.queues[q].name), 0, static_cast<int64_t>(q), "", hw.place("queues")});
  for (const HwField& f : hw.isa.common) field_constants("", f, true, out);
  for (const HwInsn& insn : hw.isa.insns) {
    out.push_back({"OP_" + upper(insn.name), 0, insn.opcode, "", insn.loc});
    for (size_t f = hw.isa.common.size(); f < insn.fields.size(); ++f)
      field_constants(upper(insn.name) + "_", insn.fields[f], false, out);
    out.push_back({upper(insn.name) + "_USED", hw.isa.word_bits, 0, used_mask(insn, hw.isa.word_bits), insn.loc});
  }
  for (const HwFault& f : hw.faults)
    out.push_back({"FAULT_" + upper(f.name), 0, f.code, "", hw.place("faults." + f.name)});
  for (const HwCsr& r : hw.csr) {
    out.push_back({"CSR_" + upper(r.name), 0, r.at, "", r.loc});
    if (r.count > 1) out.push_back({"CSR_" + upper(r.name) + "_N", 0, r.count, "", r.loc});
    for (const HwCsrBits& b : r.flags) {
      out.push_back({fmt::format("CSR_{}_{}_B", upper(r.name), upper(b.name)), 0, b.at, "", r.loc});
      if (b.width > 1) out.push_back({fmt::format("CSR_{}_{}_W", upper(r.name), upper(b.name)), 0, b.width, "", r.loc});
    }
    for (size_t i = 0; i < r.names.size(); ++i)
      out.push_back({upper(r.name) + "_" + upper(r.names[i]), 0, static_cast<int64_t>(i), "",
                     hw.place("csr." + r.name + "." + r.names[i])});
  }
  for (size_t i = 0; i < hw.state.size(); ++i)
    if (hw.state[i].kind != HwState::Kind::rom && hw.state[i].kind != HwState::Kind::counter)
      out.push_back({"M_" + upper(hw.state[i].name), 0, static_cast<int64_t>(i), "", hw.state[i].loc});
  for (const HwState& s : hw.state) {
    const bool addressed = s.kind == HwState::Kind::memory || s.kind == HwState::Kind::table;
    if (addressed) out.push_back({upper(s.name) + "_WORDS", 0, s.words, "", s.loc});
    for (const HwView& v : s.views) {
      out.push_back({fmt::format("{}_{}_AT", upper(s.name), upper(v.name)), 0, v.offset, "", s.loc});
      if (v.step != 1) out.push_back({fmt::format("{}_{}_STEP", upper(s.name), upper(v.name)), 0, v.step, "", s.loc});
    }
    if (s.timing.read_latency && s.timing.read_latency->in_cycles)
      out.push_back(
          {upper(s.name) + "_READ_LATENCY", 0, static_cast<int64_t>(s.timing.read_latency->value), "", s.loc});
    if (s.timing.boundary) out.push_back({upper(s.name) + "_BOUNDARY", 0, *s.timing.boundary, "", s.loc});
    if (s.timing.burst_max) out.push_back({upper(s.name) + "_BURST_MAX", 0, *s.timing.burst_max, "", s.loc});
    if (s.kind == HwState::Kind::counter) out.push_back({upper(s.name) + "_BITS", 0, s.counter_bits, "", s.loc});
    for (size_t i = 0; i < s.rom.size(); ++i)
      out.push_back({fmt::format("ROM_{}_{}", upper(s.name), i), 0, s.rom[i], "", s.loc});
  }
  if (hw.isa.word_bits > 0) {
    const Loc cost = hw.place("cost");
    out.push_back({"ISSUE_AHEAD", 0, hw.cost.issue.ahead, "", cost});
    out.push_back({"ISSUE_LOOK", 0, hw.cost.issue.look, "", cost});
    out.push_back({"ISSUE_IN_FLIGHT", 0, hw.cost.issue.in_flight, "", cost});
  }
  for (const HwTransferCost& t : hw.cost.transfers)
    out.push_back({upper(hw.isa.insns[static_cast<size_t>(t.insn)].name) + "_OPEN", 0, t.open, "", hw.place("cost")});
  out.push_back({"ARCH_HASH", 64, 0, fmt::format("{:x}", hw.arch_hash), {}});
  return out;
}

std::string package_name(const HwDescription& hw) {
  if (hw.rtl.package.empty()) return hw.name + "_cfg";
  return hw.rtl.package.substr(0, hw.rtl.package.find('.'));
}

void check_emitted_names(ReadContext& cx) {
  const HwDescription& hw = cx.hw;
  const auto keyword = [&](const Loc& loc, const std::string& what, const std::string& name) {
    cx.error(loc, what + " '" + name + "' is a keyword of C, C++ or SystemVerilog, which are written from this file",
             "call it otherwise");
  };
  for (const HwParam& p : hw.params)
    if (is_reserved(p.name)) keyword(p.loc, "param", p.name);
  if (is_reserved(package_name(hw))) keyword(hw.place("rtl.package"), "package", package_name(hw));
  for (const HwField& f : hw.isa.common)
    if (is_c(f.name)) keyword(f.loc, "field", f.name);
  for (const HwInsn& i : hw.isa.insns)
    for (size_t f = hw.isa.common.size(); f < i.fields.size(); ++f)
      if (is_c(i.fields[f].name)) keyword(i.fields[f].loc, "field", i.fields[f].name);
  std::map<std::string, Loc> taken;
  const auto take = [&](const std::string& name, const Loc& loc) {
    const auto [it, is_new] = taken.emplace(name, loc);
    if (is_new) return;
    const std::string first = it->second.line > 0 ? ", first at line " + std::to_string(it->second.line) : "";
    cx.error(loc.line > 0 ? loc : it->second,
             "two things would be called " + name + " in the emitted constants" + first, "call one of them otherwise");
  };
  for (const HwConstant& c : emitted_constants(hw)) take(c.name, c.loc);
  // Of the C++ header: what a port needs. Of the C header: a function and a type for each instruction.
  take("machine", {});
  take(package_name(hw) + "_put", {});
  for (const HwInsn& i : hw.isa.insns)
    for (const char* suffix : {"", "_t"}) take(package_name(hw) + "_" + i.name + suffix, i.loc);
}

}  // namespace dlc
