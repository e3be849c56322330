#include <algorithm>

#include "dlc/hw/load.h"

namespace dlc {

Result<> drop_missing_units(HwDescription& hw, const std::vector<std::string>& features) {
  const auto has = [&](const std::string& f) {
    return std::find(features.begin(), features.end(), f) != features.end();
  };
  for (const auto& [feature, action] : hw.codegen.missing)
    if (action == "reject" && !has(feature))
      return fail({hw.file, 0, 0, {}}, hw.name + " needs the feature '" + feature + "', which this machine lacks");
  const auto lacking = [&](const auto& x) { return !std::all_of(x.needs.begin(), x.needs.end(), has); };
  std::vector<std::string> dropped;
  for (const HwUnit& u : hw.units)
    if (lacking(u)) dropped.push_back(u.name);
  std::erase_if(hw.units, lacking);
  std::erase_if(hw.memories, lacking);
  std::erase_if(hw.ops,
                [&](const HwOpRule& r) { return std::find(dropped.begin(), dropped.end(), r.unit) != dropped.end(); });
  return {};
}

}  // namespace dlc
