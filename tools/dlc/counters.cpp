#include "tools/dlc/counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "dlc/base/checked.h"
#include "tools/dlc/json.h"

namespace dlc::cli {

std::string devices(const Session& s) {
  std::vector<std::string> seen;
  std::string text;
  for (size_t i = 0; i < s.partitions(); ++i) {
    if (std::ranges::count(seen, s.device(i)) > 0) continue;
    seen.push_back(s.device(i));
    text += (text.empty() ? "" : ", ") + s.device(i);
  }
  return text;
}

namespace {

enum class Merge { first, sum, sum_of_seconds, all, join };

// The counters that docs/cli.md lists as keys of a result, and how those of several partitions become one
// (mac_utilization is weighted, below). What else a device counts is its own and stays with its partition: no name that
// a plugin thinks of takes the place of one of dlc's.
constexpr std::pair<std::string_view, Merge> kListed[] = {
    {"cycles", Merge::sum},         {"sim_seconds", Merge::sum_of_seconds},
    {"layers", Merge::join},        {"bit_exact", Merge::all},
    {"threads", Merge::first},      {"kernels", Merge::first},
    {"arena_bytes", Merge::first},  {"constant_bytes", Merge::first},
    {"copied_bytes", Merge::first}, {"load", Merge::first},
    {"writes", Merge::sum},         {"first_difference", Merge::first},
    {"stopped", Merge::first},      {"bundle", Merge::first},
    {"wave", Merge::first},         {"no_wave", Merge::first},
    {"no_bundle", Merge::first},
};

// Adds one partition's counter to that of all of them. What is not of the counter's type is left out.
void merge(const Json& counters, const std::string& key, Json& all) {
  const auto* known = std::ranges::find(kListed, key, [](const auto& k) { return k.first; });
  if (known == std::end(kListed)) return;
  switch (known->second) {
    case Merge::first:
      if (!all.contains(key)) all[key] = counters[key];
      return;
    case Merge::sum: {
      const auto sum = checked_add(field<int64_t>(all, key), field<int64_t>(counters, key));
      if (has<int64_t>(counters, key) && sum) all[key] = *sum;
      return;
    }
    case Merge::sum_of_seconds:
      if (has<double>(counters, key)) all[key] = field<double>(all, key) + field<double>(counters, key);
      return;
    case Merge::all:
      if (has<bool>(counters, key))
        all[key] = field<bool>(counters, key) && (!all.contains(key) || field<bool>(all, key));
      return;
    case Merge::join: {
      Json list = objects_in(all, key);
      for (Json& element : objects_in(counters, key)) list.push_back(std::move(element));
      all[key] = std::move(list);
      return;
    }
  }
}

}  // namespace

void add_counters(std::span<const Counted> parts, Json& result) {
  Json partitions = Json::array(), merged = Json::object();
  double cycles = 0, busy = 0;
  bool has_utilization = false;
  for (const auto& [device, text] : parts) {
    Json c = object_of(text);
    const auto own = field<double>(c, "cycles");
    cycles += own;
    if (has<double>(c, "mac_utilization")) {
      has_utilization = true;
      busy += own * field<double>(c, "mac_utilization");
    }
    for (const auto& counter : c.items()) merge(c, counter.key(), merged);
    partitions.push_back({{"device", device}, {"counters", std::move(c)}});
  }
  if (has_utilization) merged["mac_utilization"] = cycles > 0 ? busy / cycles : 0.0;
  for (auto& [key, v] : merged.items()) result[key] = v;
  result["partitions"] = std::move(partitions);
}

void add_counters(Session& s, Json& result) {
  std::vector<Counted> parts;
  for (size_t i = 0; i < s.partitions(); ++i) parts.push_back({s.device(i), s.counters(i)});
  add_counters(parts, result);
}

std::string layer_table(const Json& result) {
  std::string text;
  for (const auto& l : objects_in(result, "layers")) {
    if (!l.contains("measured_cycles")) continue;
    if (text.empty()) text = fmt::format("{:<32} {:>10} {:>10} {:>6}\n", "layer", "predicted", "measured", "MACs");
    text += fmt::format("{:<32} {:>10} {:>10} {:>5.1f}%\n", field<std::string>(l, "name"),
                        field<int64_t>(l, "predicted_cycles"), field<int64_t>(l, "measured_cycles"),
                        100 * field<double>(l, "mac_utilization"));
  }
  return text;
}

}  // namespace dlc::cli
