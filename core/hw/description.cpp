#include "dlc/hw/description.h"

#include <fmt/format.h>

namespace dlc {

namespace {
template <class List>
int index_of(const List& list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name) return static_cast<int>(i);
  return -1;
}
}  // namespace

const HwEnumerator* HwField::find(std::string_view enumerator) const {
  for (const HwEnumerator& e : enumerators)
    if (e.name == enumerator) return &e;
  return nullptr;
}

const HwEnumerator* HwField::find(int64_t value) const {
  for (const HwEnumerator& e : enumerators)
    if (e.value == value) return &e;
  return nullptr;
}

uint32_t HwCsrBits::mask() const {
  return static_cast<uint32_t>(((uint64_t{1} << std::min(width, 32)) - 1) << std::min(at, 32));
}

const HwCsrBits* HwCsr::find(std::string_view flag) const {
  const int i = index_of(flags, flag);
  return i < 0 ? nullptr : &flags[static_cast<size_t>(i)];
}

int HwOperand::space_for(const HwInsn& insn, std::span<const int64_t> fields) const {
  if (selector < 0) return space;
  const auto s = static_cast<size_t>(selector);
  const HwEnumerator* e = insn.fields[s].find(fields[s]);
  return e ? e->space : -1;
}

int HwInsn::field(std::string_view field_name) const { return index_of(fields, field_name); }

uint64_t HwSync::waits(uint64_t mask, int queue) const {
  if (!tokens()) return mask;
  uint64_t counters = 0;
  for (int from = 0; from < queues; ++from) counters |= (mask >> from & 1) << token(from, queue);
  return counters;
}

uint64_t HwSync::signals(uint64_t mask, int queue) const {
  return tokens() ? (mask & ((uint64_t{1} << queues) - 1)) << token(queue, 0) : mask;
}

int HwIsa::find(std::string_view name) const { return index_of(insns, name); }

int HwIsa::find_opcode(int64_t opcode) const {
  for (size_t i = 0; i < insns.size(); ++i)
    if (insns[i].opcode == opcode) return static_cast<int>(i);
  return -1;
}

std::optional<int64_t> HwDescription::param(std::string_view param_name) const {
  const int i = index_of(params, param_name);
  return i < 0 ? std::nullopt : std::optional<int64_t>(params[static_cast<size_t>(i)].value);
}
int HwDescription::find_state(std::string_view n) const { return index_of(state, n); }
int HwDescription::find_space(std::string_view n) const { return index_of(spaces, n); }
int HwDescription::find_queue(std::string_view n) const { return index_of(queues, n); }
int HwDescription::find_csr(std::string_view n) const { return index_of(csr, n); }

std::optional<int64_t> HwDescription::fault_code(std::string_view cause) const {
  const int i = index_of(faults, cause);
  return i < 0 ? std::nullopt : std::optional<int64_t>(faults[static_cast<size_t>(i)].code);
}

Loc HwDescription::place(std::string_view key) const {
  const auto it = places.find(key);
  return it == places.end() ? Loc{file, 0, 0, {}} : it->second;
}

std::vector<std::string> HwDescription::feature_names() const {
  std::vector<std::string> names;
  for (const HwFeature& f : features) names.push_back(f.name);
  return names;
}
bool HwDescription::has_feature(std::string_view feature) const { return index_of(features, feature) >= 0; }

std::string hash_text(uint64_t hash) { return fmt::format("0x{:016x}", hash); }

}  // namespace dlc
