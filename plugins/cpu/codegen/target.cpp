// What the machine offers, by feature bits.
#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <map>

#include "codegen.h"
#include "dlc/hw/description.h"

namespace dlc::cpu {

namespace {

// A description's name of a feature as LLVM spells it.
std::string llvm_name(std::string name) {
  if (name.starts_with("sse4_")) name[4] = '.';
  if (name.starts_with("amx_")) name[3] = '-';
  if (name == "bmi1") name = "bmi";
  std::erase(name, '_');
  return name;
}

// All features that a machine can be asked for, with whether this one has them.
std::map<std::string, bool> host_features() {
  std::map<std::string, bool> sorted;
  for (const auto& f : llvm::sys::getHostCPUFeatures()) sorted[f.first().str()] = f.second;
  return sorted;
}

Result<> check_names(const HwDescription& hw) {
  std::vector<std::string> known;
  for (const auto& [name, on] : host_features()) known.push_back(name);
  Error errors;
  const auto check = [&](const HwFeature& f) {
    if (std::ranges::binary_search(known, llvm_name(f.name))) return;
    const std::string near = nearest(llvm_name(f.name), known);
    errors.add(Error(f.loc, fmt::format("x86-64 has no feature '{}'", f.name),
                     near.empty() ? "`dlc hw explain native` names those of this machine"
                                  : fmt::format("did you mean '{}'?", near)));
  };
  std::ranges::for_each(hw.features, check);
  for (const HwVectors& v : hw.vectors) std::ranges::for_each(v.needs, check);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return {};
}

}  // namespace

bool Target::has(std::string_view feature) const {
  size_t at = 0;
  const std::string wanted = "+" + std::string(feature);
  while ((at = features.find(wanted, at)) != std::string::npos) {
    const size_t end = at + wanted.size();
    if (end == features.size() || features[end] == ',') return true;
    at = end;
  }
  return false;
}

Result<Target> Target::of(const HwDescription& hw) {
  DLC_CHECK(check_names(hw));
  const auto allowed = [&](const HwVectors& v) {
    return std::ranges::all_of(v.needs, [&](const HwFeature& f) { return hw.has_feature(f.name); });
  };
  Target t;
  for (const HwVectors& v : hw.vectors) {
    if (v.bytes != 16 && v.bytes != 32 && v.bytes != 64)
      return fail(v.loc, fmt::format("vectors '{}' have {} bytes: code is made for 16, 32 and 64", v.name, v.bytes));
    if (!allowed(v) || v.bytes <= t.vector_bytes) continue;
    t.vector_bytes = static_cast<int>(v.bytes);
    t.registers = static_cast<int>(v.registers);
  }
  if (t.vector_bytes == 0)
    return fail({hw.file, 0, 0, {}}, "'isa' has no vectors that its features allow",
                "`like: x86-64.yaml` has those of every x86-64");
  for (const HwMemory& m : hw.memories)
    if (m.name == "l2") t.l2_bytes = m.size;
  if (t.l2_bytes <= 0)
    return fail({hw.file, 0, 0, {}}, "'memories' has no l2, which tiles are made for", "memories: {l2: {size: 1MiB}}");
  for (const HwFeature& f : hw.features) t.features += (t.features.empty() ? "+" : ",+") + llvm_name(f.name);
  return t;
}

std::string Target::missing_here() const {
  const auto host = host_features();
  std::string missing;
  size_t at = 0;
  while (at < features.size()) {
    const size_t end = std::min(features.find(',', at), features.size());
    const std::string name = features.substr(at + 1, end - at - 1);
    const auto it = host.find(name);
    if (it == host.end() || !it->second) missing += (missing.empty() ? "" : ", ") + name;
    at = end + 1;
  }
  return missing;
}

}  // namespace dlc::cpu
