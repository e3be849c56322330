#include "tools/dlc/counters.h"

#include <fmt/format.h>

#include <algorithm>

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

void add_counters(Session& s, Json& result) {
  Json partitions = Json::array(), merged = Json::object();
  double cycles = 0, busy = 0;
  bool has_utilization = false;
  for (size_t i = 0; i < s.partitions(); ++i) {
    Json c = Json::parse(s.counters(i), nullptr, false);
    if (!c.is_object()) c = Json::object();
    const double own = c.value("cycles", 0.0);
    cycles += own;
    if (c.contains("mac_utilization")) {
      has_utilization = true;
      busy += own * c.value("mac_utilization", 0.0);
    }
    for (const auto& [key, v] : c.items()) {
      if (!merged.contains(key))
        merged[key] = v;
      else if (key == "layers" && v.is_array())
        merged[key].insert(merged[key].end(), v.begin(), v.end());
      else if (key == "cycles" || key == "macs")
        merged[key] = merged[key].get<int64_t>() + v.get<int64_t>();
      else if (key == "sim_seconds")
        merged[key] = merged[key].get<double>() + v.get<double>();
      else if (key == "bit_exact")
        merged[key] = merged[key].get<bool>() && v.get<bool>();
    }
    partitions.push_back({{"device", s.device(i)}, {"counters", std::move(c)}});
  }
  if (has_utilization) merged["mac_utilization"] = cycles > 0 ? busy / cycles : 0.0;
  for (auto& [key, v] : merged.items()) result[key] = v;
  result["partitions"] = std::move(partitions);
}

std::string layer_table(const Json& result) {
  std::string text;
  if (!result.contains("layers")) return text;
  for (const auto& l : result["layers"]) {
    if (!l.contains("measured_cycles")) continue;
    if (text.empty()) text = fmt::format("{:<32} {:>10} {:>10} {:>6}\n", "layer", "predicted", "measured", "MACs");
    text += fmt::format("{:<32} {:>10} {:>10} {:>5.1f}%\n", l.value("name", std::string()),
                        l.value("predicted_cycles", int64_t{0}), l.value("measured_cycles", int64_t{0}),
                        100 * l.value("mac_utilization", 0.0));
  }
  return text;
}

}  // namespace dlc::cli
