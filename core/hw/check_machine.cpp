#include "dlc/hw/check_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <random>
#include <ranges>
#include <set>
#include <sstream>

#include "core/hw/constants.h"
#include "core/hw/field_code.h"
#include "dlc/hw/check_generic.h"
#include "dlc/hw/encode.h"
#include "dlc/hw/sim_port.h"
#include "dlc/io/inside.h"

namespace dlc {

namespace {

constexpr uint64_t kSeed = 1;
constexpr int kSamples = 256;
constexpr std::string_view kGeneric = "queue_machine/1";

struct Number {
  std::string what;
  Expr value;
  Loc loc;
};

std::vector<Number> numbers_of(const HwDescription& hw, size_t index) {
  const HwInsn& insn = hw.isa.insns[index];
  std::vector<Number> out;
  for (const Loop& l : insn.loops) out.push_back({fmt::format("loop '{}'", l.var), l.extent, insn.loc});
  if (insn.cycles) out.push_back({"'cycles'", *insn.cycles, insn.loc});
  for (const HwTransferCost& t : hw.cost.transfers) {
    if (t.insn != static_cast<int>(index)) continue;
    out.push_back({"'bursts' of 'transfers'", t.bursts, hw.place("cost")});
    out.push_back({"'words' of 'transfers'", t.words, hw.place("cost")});
  }
  return out;
}

// Each field at its ends as often as somewhere between; an enumerated one at its codes.
Instruction sample(const HwDescription& hw, size_t index, std::mt19937_64& rng) {
  Instruction i = make_instruction(hw, static_cast<int>(index));
  const HwInsn& insn = hw.isa.insns[index];
  for (size_t f = 0; f < insn.fields.size(); ++f) {
    const HwField& field = insn.fields[f];
    if (field.name == hw.isa.opcode_field) continue;
    const auto raw = [&]() -> int64_t {
      if (rng() % 3 == 0) return field.raw_min();
      if (rng() % 2 == 0) return field.raw_max();
      const uint64_t count = static_cast<uint64_t>(field.raw_max()) - static_cast<uint64_t>(field.raw_min());
      return static_cast<int64_t>(static_cast<uint64_t>(field.raw_min()) +
                                  (count == UINT64_MAX ? rng() : rng() % (count + 1)));
    };
    i.fields[f] = field.enumerators.empty() ? raw() * field.unit + field.plus
                                            : field.enumerators[rng() % field.enumerators.size()].value;
  }
  return i;
}

// What the fields of an instruction may be.
Ranges ranges_of(const HwInsn& insn) {
  Ranges out;
  for (const HwField& f : insn.fields) {
    if (f.enumerators.empty()) {
      out.emplace(f.name, Range(f.min(), f.max()));
      continue;
    }
    const auto [lo, hi] = std::ranges::minmax(f.enumerators, {}, &HwEnumerator::value);
    out.emplace(f.name, Range(lo.value, hi.value));
  }
  return out;
}

// A condition that no instruction meets, and an element that is in its memory at no point and for no field.
void check_possible(const HwInsn& insn, Error& errors) {
  Ranges ranges = ranges_of(insn);
  for (const HwCondition& c : insn.require)
    if (bounds(c.value, ranges).hi < 0)
      errors.add(Error(c.loc, fmt::format("insn '{}': '{}' holds for no fields, so that no instruction is legal",
                                          insn.name, c.text)));
  for (const Loop& l : insn.loops) ranges.emplace(l.var, Range(0, bounds(l.extent, ranges).hi));
  std::set<std::string> told;
  for (const HwForm& form : insn.forms) {
    const auto inside = [&](int tensor, size_t d, const Val& index) {
      const KernelTensor& t = form.kernel.tensors[static_cast<size_t>(tensor)];
      const auto e = val::as_expr(index);
      const auto extent = d < t.shape.size() ? t.shape[d].constant() : std::nullopt;
      if (!e || !extent) return;
      const Interval at = bounds(*e, ranges);
      if ((at.hi >= 0 && at.lo < *extent) || !told.insert(t.name + to_string(*e)).second) return;
      errors.add(Error(insn.loc, fmt::format("insn '{}': index {} of {} is {}, which is never within 0 .. {}",
                                             insn.name, d + 1, t.name, to_string(*e), *extent - 1)));
    };
    walk(form.kernel.body, [&](const Stmt& s) {
      if (s.kind != Stmt::Kind::assign) return;
      for (size_t d = 0; d < s.indices.size(); ++d) inside(s.tensor, d, s.indices[d]);
      const auto read = [&](const ValNode& n) {
        if (n.kind != ValKind::read) return;
        for (size_t d = 0; d < n.args.size(); ++d) inside(n.tensor, d, n.args[d]);
      };
      walk(s.value, read);
    });
  }
}

void check_insn(const HwDescription& hw, size_t index, uint64_t seed, int samples, Error& errors) {
  const HwInsn& insn = hw.isa.insns[index];
  check_possible(insn, errors);
  std::mt19937_64 rng(seed);
  std::vector<Number> numbers = numbers_of(hw, index);
  for (int s = 0; s < samples && !numbers.empty(); ++s) {
    const Instruction i = sample(hw, index, rng);
    if (!check_instruction(hw, i)) continue;
    std::erase_if(numbers, [&](const Number& n) {
      const auto code = FieldCode::make(n.value, insn);
      const auto v = code ? code->run(i.fields) : std::nullopt;
      if (v && *v >= 0) return false;
      errors.add(
          Error(n.loc,
                fmt::format("insn '{}': {} is {} for a legal instruction: {}", insn.name, n.what,
                            v ? std::to_string(*v) : "not defined (overflow or division by zero)", disassemble(hw, i)),
                "what it counts is at least 0; a 'require' says where the instruction is illegal"));
      return true;
    });
  }
}

}  // namespace

namespace {

// Where a constant that the RTL uses should have been made: at the nearest that there is, or one of its kind.
Loc nearest_place(const HwDescription& hw, const std::string& name, const std::string& near,
                  const std::vector<HwConstant>& constants) {
  const std::string kind = name.substr(0, name.find('_') + 1);
  Loc loc = hw.place("rtl.files");
  for (const HwConstant& c : std::views::reverse(constants))
    if (near.empty() ? !kind.empty() && c.name.starts_with(kind) : c.name == near) loc = c.loc;
  return loc;
}

// The RTL takes its constants from the package that is emitted: each `package::NAME` of its text must be one of them.
void check_rtl_names(const HwDescription& hw, std::string_view text, const std::string& file,
                     std::set<std::string>& told, Error& errors) {
  const std::vector<HwConstant> constants = emitted_constants(hw);
  const std::vector<std::string> known = names_of(constants);
  const std::string prefix = package_name(hw) + "::";
  for (size_t at = text.find(prefix); at != std::string_view::npos; at = text.find(prefix, at)) {
    at += prefix.size();
    size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    const std::string name(text.substr(at, end - at));
    if (name.empty() || std::ranges::count(known, name) > 0 || !told.insert(name).second) continue;
    const std::string near = nearest(name, known);
    errors.add(Error(nearest_place(hw, name, near, constants),
                     fmt::format("nothing here gives the constant {} that {} uses", name, file),
                     near.empty() ? "" : fmt::format("rename what gives {} here, or what the RTL calls it", near)));
  }
}

void check_rtl(const HwDescription& hw, Error& errors) {
  const Loc where = hw.place("rtl.files");
  const auto list = map_inside(rtl_root(hw), hw.rtl.files, "rtl.files", where);
  if (!list) return errors.add(list.error());
  std::istringstream lines{std::string(list->text())};
  std::set<std::string> told;
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with(".sv") && !line.ends_with(".v")) continue;
    const std::string file = (std::filesystem::path(hw.rtl.files).parent_path() / line).lexically_normal().string();
    const auto rtl = map_inside(rtl_root(hw), file, "the RTL", where);
    if (!rtl) return errors.add(rtl.error());
    check_rtl_names(hw, rtl->text(), line, told, errors);
  }
}

}  // namespace

std::string rtl_root(const HwDescription& hw) {
  std::error_code error;
  return std::filesystem::weakly_canonical(hw.file, error).parent_path().parent_path().string();
}

Result<> check_numbers(const HwDescription& hw, uint64_t seed, int samples) {
  Error errors;
  for (size_t i = 0; i < hw.isa.insns.size(); ++i) check_insn(hw, i, seed, samples, errors);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return {};
}

bool has_rtl(const HwDescription& hw) {
  std::error_code ec;
  return !hw.rtl.files.empty() && std::filesystem::exists(std::filesystem::path(rtl_root(hw)) / hw.rtl.files, ec);
}

Result<> check_machine(const HwDescription& hw) {
  Error errors;
  if (hw.family.empty() && hw.plugin.empty())
    errors.add(Error(hw.place("name"), "neither 'family' nor 'plugin': nothing compiles for this machine",
                     fmt::format("family: {}, or plugin: NAME (`dlc plugins` lists them)", kGeneric)));
  if (hw.family == kGeneric) {
    for (Diagnostic& d : check_generic(hw))
      if (d.severity == Severity::error) errors.diagnostics.push_back(std::move(d));
    if (errors.empty())
      if (auto port = open_sim_port(hw, {.memory_bytes = 1}); !port) errors.add(std::move(port).error());
  }
  if (auto numbers = check_numbers(hw, kSeed, kSamples); !numbers) errors.add(std::move(numbers).error());
  if (!hw.rtl.files.empty())
    if (auto path = check_inside(hw.rtl.files, "rtl.files", hw.place("rtl.files")); !path)
      errors.add(std::move(path).error());
  if (errors.empty() && has_rtl(hw)) check_rtl(hw, errors);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return {};
}

}  // namespace dlc
