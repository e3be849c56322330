// What the machine offers, by feature bits.
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Host.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "codegen.h"
#include "machine.h"

namespace dlc::cpu {

namespace {

constexpr std::string_view kV3 =
    "+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+sahf,+avx,+avx2,+bmi,+bmi2,+f16c,+"
    "fma,"
    "+lzcnt,+movbe,+xsave";

std::string llvm_name(std::string f) {
  if (f.starts_with("sse4_")) f[4] = '.';
  if (f.starts_with("amx_")) f[3] = '-';
  if (f == "bmi1") return "bmi";
  std::erase(f, '_');
  return f;
}

std::map<std::string, bool> host_features() {
  std::map<std::string, bool> sorted;
  for (const auto& f : llvm::sys::getHostCPUFeatures()) sorted[f.first().str()] = f.second;
  return sorted;
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

Target Target::baseline() { return {.features = "+cx8,+fxsr,+mmx,+sse,+sse2"}; }
Target Target::avx2() { return {.features = std::string(kV3), .vector_bytes = 32}; }
Target Target::avx512() {
  return {.features = std::string(kV3) + ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+evex512",
          .vector_bytes = 64,
          .registers = 32};
}

std::vector<std::string> Target::unknown(std::span<const std::string> features, std::string* near) {
  initialise_llvm();
  std::string problem;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  if (t == nullptr) return {};  // machine() says so
  const std::unique_ptr<llvm::MCSubtargetInfo> info(t->createMCSubtargetInfo(kTriple, "", ""));
  std::vector<std::string> known, out;
  for (const auto& f : info->getAllProcessorFeatures()) known.emplace_back(f.Key);
  for (const std::string& f : features)
    if (std::ranges::count(known, llvm_name(f)) == 0) out.push_back(f);
  if (!out.empty()) *near = nearest(llvm_name(out.front()), known);
  return out;
}

Target Target::with(std::span<const std::string> features) {
  const auto has = [&](std::string_view f) { return std::ranges::count(features, f) > 0; };
  Target t = baseline();
  if (has("avx2") && has("fma")) t = avx2();
  if (t.vector_bytes == 32 && has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")) t = avx512();
  for (const std::string& given : features)
    if (const std::string f = llvm_name(given); !t.has(f)) t.features += ",+" + f;
  return t;
}

Target Target::host() {
  std::vector<std::string> features;
  for (const auto& [name, on] : host_features())
    if (on) features.push_back(name);
  Target t = with(features);
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) t.l2_bytes = bytes;
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
    if (name != "evex512" && (it == host.end() || !it->second)) missing += (missing.empty() ? "" : ", ") + name;
    at = end + 1;
  }
  return missing;
}

}  // namespace dlc::cpu
