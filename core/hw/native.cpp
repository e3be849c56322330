// The machine this runs on, as YAML: what CPUID says it can do, and the size of its second level cache.
#include <cpuid.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwloc.h>

#include <algorithm>
#include <set>

#include "core/hw/yaml.h"
#include "core/ops/embedded.h"
#include "dlc/hw/load.h"

namespace dlc {

namespace detail {
extern const EmbeddedFile kX86Levels[];  // hwdesc/x86-64*.yaml
}  // namespace detail

namespace {

// Where CPUID says what the descriptions name. Which level has a feature, and what it is good for, they say.
struct CpuidBit {
  const char* feature;
  unsigned leaf, subleaf;
  char reg;  // a b c d
  int bit;
};

constexpr unsigned kExtended = 0x80000001;
constexpr CpuidBit kBits[] = {
    {"cmov", 1, 0, 'd', 15},        {"cx8", 1, 0, 'd', 8},           {"fxsr", 1, 0, 'd', 24},
    {"mmx", 1, 0, 'd', 23},         {"sse", 1, 0, 'd', 25},          {"sse2", 1, 0, 'd', 26},
    {"cx16", 1, 0, 'c', 13},        {"popcnt", 1, 0, 'c', 23},       {"sahf", kExtended, 0, 'c', 0},
    {"sse3", 1, 0, 'c', 0},         {"ssse3", 1, 0, 'c', 9},         {"sse4_1", 1, 0, 'c', 19},
    {"sse4_2", 1, 0, 'c', 20},      {"avx", 1, 0, 'c', 28},          {"avx2", 7, 0, 'b', 5},
    {"bmi1", 7, 0, 'b', 3},         {"bmi2", 7, 0, 'b', 8},          {"f16c", 1, 0, 'c', 29},
    {"fma", 1, 0, 'c', 12},         {"lzcnt", kExtended, 0, 'c', 5}, {"movbe", 1, 0, 'c', 22},
    {"xsave", 1, 0, 'c', 26},       {"avx512f", 7, 0, 'b', 16},      {"avx512dq", 7, 0, 'b', 17},
    {"avx512cd", 7, 0, 'b', 28},    {"avx512bw", 7, 0, 'b', 30},     {"avx512vl", 7, 0, 'b', 31},
    {"avx512_vnni", 7, 0, 'c', 11}, {"avx512_bf16", 7, 1, 'a', 5},   {"avx512_fp16", 7, 0, 'd', 23},
    {"avx512_vbmi", 7, 0, 'c', 1},  {"avx_vnni", 7, 1, 'a', 4},      {"amx_tile", 7, 0, 'd', 24},
    {"amx_int8", 7, 0, 'd', 25},    {"amx_bf16", 7, 0, 'd', 22}};

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
  if (feature.starts_with("avx") || feature == "fma" || feature == "f16c" || feature == "xsave")
    return (saved & 0x6) == 0x6;
  return true;
}

bool cpuid_has(const CpuidBit& f) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(f.leaf, f.subleaf, &a, &b, &c, &d)) return false;
  const unsigned r = f.reg == 'a' ? a : f.reg == 'b' ? b : f.reg == 'c' ? c : d;
  return (r >> f.bit) & 1u;
}

// A level's description and, under it, those that it is like.
Result<yaml::Ptr> level(const std::string& file) {
  for (const detail::EmbeddedFile* f = detail::kX86Levels; f->name != nullptr; ++f) {
    if (f->name != "hwdesc/" + file) continue;
    DLC_TRY(const yaml::Ptr tree, yaml::parse(f->text, f->name));
    const yaml::Entry* like = tree->find("like");
    if (like == nullptr) return tree;
    DLC_TRY(const yaml::Ptr base, level(like->value->text));
    auto whole = std::make_shared<yaml::Node>(*yaml::merge(base, tree));
    whole->remove("like");
    return whole;
  }
  return fail({}, "there is no level " + file);
}

// The features of the levels up to `max`, by the names that they have in the description of the highest.
Result<std::set<std::string>> features_up_to(std::string_view max, const yaml::Node& highest) {
  std::set<std::string> features;
  std::vector<std::string> names;
  for (const yaml::Entry& e : highest.find("isa")->value->find("features")->value->entries) {
    for (const yaml::Ptr& f : e.value->items) features.insert(f->text);
    if (e.key == max) return features;
    names.push_back(e.key);
  }
  return fail({}, fmt::format("--hw=native: max={} is not one of {}", max, fmt::join(names, ", ")));
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

std::vector<std::string> native_features() {
  std::vector<std::string> out;
  const uint64_t saved = saved_state();
  for (const CpuidBit& f : kBits)
    if (cpuid_has(f) && os_allows(f.feature, saved)) out.emplace_back(f.feature);
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> native_yaml(std::string_view max) {
  DLC_TRY(const yaml::Ptr highest, level("x86-64-v4.yaml"));
  std::vector<std::string> features = native_features();
  if (!max.empty()) {
    DLC_TRY(const auto allowed, features_up_to(max, *highest));
    std::erase_if(features, [&](const std::string& f) { return !allowed.contains(f); });
  }
  // What the highest level says, but for this machine.
  std::string own = fmt::format("name: native\nisa: {{features: [{}]}}\n", fmt::join(features, ", "));
  if (const uint64_t size = l2_bytes(); size > 0) own += fmt::format("memories: {{l2: {{size: {}}}}}\n", size);
  DLC_TRY(const yaml::Ptr here, yaml::parse(own, "native"));
  return yaml::print(*yaml::merge(highest, here));
}

}  // namespace dlc
