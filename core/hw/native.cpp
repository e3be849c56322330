// The machine this runs on, as YAML: what CPUID says it can do, and the size of its second level cache.
#include <cpuid.h>
#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>

#include "dlc/hw/load.h"

namespace dlc {

namespace {

struct CpuidBit {
  const char* feature;
  unsigned leaf, subleaf;
  char reg;  // a b c d
  int bit;
  int level;  // the lowest x86-64 level that has it; 5: above v4
};

constexpr CpuidBit kBits[] = {
    {"sse2", 1, 0, 'd', 26, 1},       {"sse3", 1, 0, 'c', 0, 2},         {"ssse3", 1, 0, 'c', 9, 2},
    {"sse4_1", 1, 0, 'c', 19, 2},     {"sse4_2", 1, 0, 'c', 20, 2},      {"popcnt", 1, 0, 'c', 23, 2},
    {"avx", 1, 0, 'c', 28, 3},        {"f16c", 1, 0, 'c', 29, 3},        {"fma", 1, 0, 'c', 12, 3},
    {"avx2", 7, 0, 'b', 5, 3},        {"bmi1", 7, 0, 'b', 3, 3},         {"bmi2", 7, 0, 'b', 8, 3},
    {"avx512f", 7, 0, 'b', 16, 4},    {"avx512dq", 7, 0, 'b', 17, 4},    {"avx512cd", 7, 0, 'b', 28, 4},
    {"avx512bw", 7, 0, 'b', 30, 4},   {"avx512vl", 7, 0, 'b', 31, 4},    {"avx512_vnni", 7, 0, 'c', 11, 5},
    {"avx512_bf16", 7, 1, 'a', 5, 5}, {"avx512_fp16", 7, 0, 'd', 23, 5}, {"avx512_vbmi", 7, 0, 'c', 1, 5},
    {"avx_vnni", 7, 1, 'a', 4, 5},    {"amx_tile", 7, 0, 'd', 24, 5},    {"amx_int8", 7, 0, 'd', 25, 5},
    {"amx_bf16", 7, 0, 'd', 22, 5}};

uint64_t xgetbv0() {
  uint32_t lo = 0, hi = 0;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t{hi} << 32) | lo;
}

// What the operating system saves on a context switch decides as much as CPUID does.
uint64_t saved_state() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return 0;
  return xgetbv0();
}

bool os_allows(std::string_view feature, uint64_t saved) {
  if (feature.starts_with("amx")) return (saved & 0x60000) == 0x60000;
  if (feature.starts_with("avx512")) return (saved & 0xe6) == 0xe6;
  if (feature.starts_with("avx") || feature == "fma" || feature == "f16c") return (saved & 0x6) == 0x6;
  return true;
}

bool cpuid_has(const CpuidBit& f) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(f.leaf, f.subleaf, &a, &b, &c, &d)) return false;
  const unsigned r = f.reg == 'a' ? a : f.reg == 'b' ? b : f.reg == 'c' ? c : d;
  return (r >> f.bit) & 1u;
}

std::vector<std::string> features_up_to(int level) {
  std::vector<std::string> out;
  const uint64_t saved = saved_state();
  for (const CpuidBit& f : kBits)
    if (f.level <= level && cpuid_has(f) && os_allows(f.feature, saved)) out.emplace_back(f.feature);
  std::sort(out.begin(), out.end());
  return out;
}

// Bytes of a second level cache; 0: not known.
uint64_t l2_bytes() {
  uint64_t size = 0;
  hwloc_topology_t t = nullptr;
  if (hwloc_topology_init(&t) != 0) return 0;
  if (hwloc_topology_load(t) == 0 && hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_L2CACHE) > 0) {
    const hwloc_obj_t l2 = hwloc_get_obj_by_type(t, HWLOC_OBJ_L2CACHE, 0);
    if (l2 && l2->attr) size = l2->attr->cache.size;
  }
  hwloc_topology_destroy(t);
  return size;
}

}  // namespace

std::vector<std::string> native_features() { return features_up_to(5); }

Result<std::string> native_yaml(std::string_view max) {
  int level = 5;
  if (!max.empty()) {
    if (max.size() != 2 || max[0] != 'v' || max[1] < '1' || max[1] > '4')
      return fail({}, "--hw=native: max=" + std::string(max) + " is not one of v1, v2, v3, v4");
    level = max[1] - '0';
  }
  const auto features = features_up_to(level);
  std::string list;
  for (const auto& f : features) list += (list.empty() ? "" : ", ") + f;
  std::string out = "dlc_hw: 1\nname: native\nplugin: cpu\n";
  if (const uint64_t size = l2_bytes(); size > 0) out += fmt::format("memories: {{l2: {{size: {}}}}}\n", size);
  out += fmt::format("isa: {{features: [{}]}}\n", list);
  return out;
}

}  // namespace dlc
