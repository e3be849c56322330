// What the machine offers, by feature bits.
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "codegen.h"

namespace dlc::cpu {

namespace {

constexpr std::string_view kV3 =
    "+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+sahf,+avx,+avx2,+bmi,+bmi2,+f16c,+"
    "fma,"
    "+lzcnt,+movbe,+xsave";

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

Target Target::host() {
  Target t;
  for (const auto& [name, on] : host_features())
    if (on) t.features += (t.features.empty() ? "+" : ",+") + name;
  if (t.has("avx512f") && t.has("avx512bw") && t.has("avx512dq") && t.has("avx512vl")) {
    t.features += ",+evex512";
    t.vector_bytes = 64;
    t.registers = 32;
  } else if (t.has("avx2") && t.has("fma")) {
    t.vector_bytes = 32;
  }
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) t.l2_bytes = bytes;
  return t;
}

bool Target::runs_here() const {
  const auto host = host_features();
  size_t at = 0;
  while (at < features.size()) {
    const size_t end = std::min(features.find(',', at), features.size());
    const std::string name = features.substr(at + 1, end - at - 1);
    const auto it = host.find(name);
    if (name != "evex512" && (it == host.end() || !it->second)) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace dlc::cpu
