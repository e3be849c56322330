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

// Adds one partition's counter to that of all of them: sums, all layers, of what cannot be added the first. What is not
// of the counter's type is left out.
void merge(const Json& counters, const std::string& key, Json& all) {
  if (key == "layers") {
    Json layers = objects_in(all, key);
    for (Json& layer : objects_in(counters, key)) layers.push_back(std::move(layer));
    all[key] = std::move(layers);
  } else if (key == "cycles" || key == "macs") {
    const auto sum = checked_add(field<int64_t>(all, key), field<int64_t>(counters, key));
    if (has<int64_t>(counters, key) && sum) all[key] = *sum;
  } else if (key == "sim_seconds") {
    if (has<double>(counters, key)) all[key] = field<double>(all, key) + field<double>(counters, key);
  } else if (key == "bit_exact") {
    if (has<bool>(counters, key))
      all[key] = field<bool>(counters, key) && (!all.contains(key) || field<bool>(all, key));
  } else if (!all.contains(key)) {
    all[key] = counters[key];
  }
}

}  // namespace

void add_counters(Session& s, Json& result) {
  Json partitions = Json::array(), merged = Json::object();
  double cycles = 0, busy = 0;
  bool has_utilization = false;
  for (size_t i = 0; i < s.partitions(); ++i) {
    Json c = object_of(s.counters(i));
    const auto own = field<double>(c, "cycles");
    cycles += own;
    if (has<double>(c, "mac_utilization")) {
      has_utilization = true;
      busy += own * field<double>(c, "mac_utilization");
    }
    for (const auto& counter : c.items()) merge(c, counter.key(), merged);
    partitions.push_back({{"device", s.device(i)}, {"counters", std::move(c)}});
  }
  if (has_utilization) merged["mac_utilization"] = cycles > 0 ? busy / cycles : 0.0;
  for (auto& [key, v] : merged.items()) result[key] = v;
  result["partitions"] = std::move(partitions);
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
