// The machine this runs on, as YAML: CPUID facts, cache sizes and core counts.
//
// CPUID states neither widths of pipes nor latencies nor clocks: those here are common to the cores that have the
// feature, not measured.
#include <cpuid.h>
#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <thread>

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

struct Cache {
  uint64_t size = 0;
  int ways = 0;
  unsigned line = 64;
};
struct Machine {
  int cores = 1;
  uint64_t memory = uint64_t{4} << 30;
  std::array<Cache, 4> cache;  // by level; [0] unused
};

Machine machine() {
  Machine m;
  m.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  hwloc_topology_t t = nullptr;
  if (hwloc_topology_init(&t) != 0) return m;
  if (hwloc_topology_load(t) == 0) {
    const int cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    if (cores > 0) m.cores = cores;
    if (const hwloc_obj_t root = hwloc_get_root_obj(t); root && root->total_memory > 0) m.memory = root->total_memory;
    const std::pair<int, hwloc_obj_type_t> levels[] = {
        {1, HWLOC_OBJ_L1CACHE}, {2, HWLOC_OBJ_L2CACHE}, {3, HWLOC_OBJ_L3CACHE}};
    for (const auto& [level, type] : levels) {
      const hwloc_obj_t o = hwloc_get_nbobjs_by_type(t, type) > 0 ? hwloc_get_obj_by_type(t, type, 0) : nullptr;
      if (!o || !o->attr || o->attr->cache.size == 0) continue;
      m.cache[static_cast<size_t>(level)] = {o->attr->cache.size, o->attr->cache.associativity,
                                             std::max(1u, o->attr->cache.linesize)};
    }
  }
  hwloc_topology_destroy(t);
  return m;
}

std::string cache_line(const char* name, const char* scope, const Cache& c, const char* timing) {
  if (c.size == 0) return "";
  const std::string ways = c.ways > 0 ? fmt::format(", ways: {}", c.ways) : "";
  return fmt::format("  {}: {{scope: {}, size: {}, managed: cache, line: {}{}, timing: {}}}\n", name, scope, c.size,
                     c.line, ways, timing);
}

struct UnitText {
  const char* needs;
  const char* text;
};

constexpr const char* kDot = "does: \"out[m, n] = out[m, n] + sum[k] lhs[m, k]*rhs[k, n]\"";

// The same units as hwdesc/x86-64*.yaml, each with the feature that it stands on.
std::string units(const std::vector<std::string>& features) {
  const auto has = [&](std::string_view f) { return std::find(features.begin(), features.end(), f) != features.end(); };
  std::string out;
  const auto vector = [&](const char* name, const char* needs, int lanes, const char* regs, const char* ops) {
    out += fmt::format(
        "  {}: {{scope: core, needs: {}, ops: [{}], lanes: {}, pipes: 2, latency: 4, "
        "operands: {{any: {{type: f32, in: {}}}}}, numerics: {{fma: single_rounding, denormals: keep}}}}\n",
        name, needs, ops, lanes, regs);
  };
  vector("sse_f32", "sse2", 4, "xmm", "add, mul, max, min, cmp, cvt");
  if (has("avx2") && has("fma")) vector("avx2_f32", "[avx2, fma]", 8, "ymm", "fma, add, mul, max, min, cmp, cvt");
  if (has("avx512f")) vector("avx512_f32", "avx512f", 16, "zmm", "fma, add, mul, max, min, cmp, cvt");
  const auto dot = [&](const char* name, const char* needs, int n, const char* regs) {
    out += fmt::format(
        "  {}: {{scope: core, needs: {}, {}, loops: {{m: {{temporal: 14}}, n: {{spatial: {}}}, k: {{spatial: 4}}}}, "
        "pipes: 2, latency: 5, operands: {{lhs: {{type: u8, in: l1}}, rhs: {{type: s8, in: {}, layout: \"k/4 n{} "
        "k4\"}}, "
        "out: {{type: s32, in: {}}}}}, numerics: {{accumulate: s32, overflow: wrap}}}}\n",
        name, needs, kDot, n, regs, n, regs);
  };
  if (has("avx_vnni")) dot("avx_vnni_s8", "avx_vnni", 8, "ymm");
  if (has("avx512_vnni")) dot("avx512_vnni_s8", "avx512_vnni", 16, "zmm");
  const auto amx = [&](const char* name, const char* needs, int k, const char* in, const char* acc, int pack) {
    out += fmt::format(
        "  {}: {{scope: core, needs: [amx_tile, {}], {}, loops: {{m: {{spatial: 16}}, n: {{spatial: 16}}, k: "
        "{{spatial: {}}}}}, "
        "issue_cycles: 16, latency: 52, operands: {{lhs: {{type: {}, in: tmm, layout: \"m16 k{}\"}}, "
        "rhs: {{type: {}, in: tmm, layout: \"k16 n16 k{}\"}}, out: {{type: {}, in: tmm}}}}, numerics: {{accumulate: "
        "{}}}}}\n",
        name, needs, kDot, k, in, k, in, pack, acc, acc);
  };
  if (has("amx_tile") && has("amx_int8")) amx("amx_s8", "amx_int8", 64, "[s8, u8]", "s32", 4);
  if (has("amx_tile") && has("amx_bf16")) amx("amx_bf16", "amx_bf16", 32, "bf16", "f32", 2);
  return out;
}

std::string registers(const std::vector<std::string>& features) {
  const auto has = [&](std::string_view f) { return std::find(features.begin(), features.end(), f) != features.end(); };
  std::string out = "  xmm: {scope: core, size: 256, managed: compiler, regs: 16, word: 16 B}\n";
  if (has("avx")) out += "  ymm: {scope: core, size: 512, managed: compiler, regs: 16, word: 32 B, needs: avx}\n";
  if (has("avx512f"))
    out += "  zmm: {scope: core, size: 2KiB, managed: compiler, regs: 32, word: 64 B, needs: avx512f}\n";
  if (has("amx_tile"))
    out += "  tmm: {scope: core, size: 8KiB, managed: compiler, regs: 8, word: 1024 B, needs: amx_tile}\n";
  return out;
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
  const Machine m = machine();
  std::string list;
  for (const auto& f : features) list += (list.empty() ? "" : ", ") + f;
  std::string out = "dlc_hw: 1\nname: native\nplugin: cpu\nclock: 2.0GHz\n";
  out += fmt::format("scopes: {{device: 1, core: {}}}\nmemories:\n", m.cores);
  out += fmt::format("  dram: {{scope: device, size: {}, managed: os, timing: {{read_latency: 110ns}}}}\n", m.memory);
  out += cache_line("l3", "device", m.cache[3], "{read_latency: 75}");
  out += cache_line("l2", "core", m.cache[2], "{peak: 48 B/cy, read_latency: 15}");
  Cache l1 = m.cache[1];
  if (l1.size == 0) l1.size = 32768;
  out += cache_line("l1", "core", l1, "{peak: 128 B/cy, read_latency: 5}");
  out += registers(features);
  out += "units:\n" + units(features);
  out += fmt::format("isa: {{kind: native, codegen: llvm, triple: x86_64-linux-gnu, probe: cpuid, features: [{}]}}\n",
                     list);
  out += "cost: {parallel: {fork_join: 4us, numa_domains: 1}, error_budget: {median: 15%, p95: 40%}}\n";
  out += "sim: {functional: native, require: {exact: [s8, s32]}}\n";
  return out;
}

}  // namespace dlc
