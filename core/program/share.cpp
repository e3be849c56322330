// Layers of one shape are one kernel: kernels that differ in names only are kept once, those that nobody
// calls are not kept.
#include <fmt/format.h>

#include <map>
#include <set>

#include "dlc/program/program.h"

namespace dlc {

namespace {

// The kernel's text without the names people gave.
std::string nameless_text(Kernel k) {
  k.name.clear();
  k.locations.clear();
  for (size_t t = 0; t < k.tensors.size(); ++t) k.tensors[t].name = fmt::format("t{}", t);
  return print(k);
}

}  // namespace

void share_kernels(Program& p) {
  std::set<int> called;
  for (const Call& c : p.calls) called.insert(c.kernel);
  std::map<std::string, int> seen;
  std::vector<int> replaced(p.kernels.size(), -1);
  std::vector<Kernel> kept;
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    if (!called.contains(static_cast<int>(i))) continue;
    Kernel& k = p.kernels[i];
    const auto [it, added] = seen.emplace(nameless_text(k), static_cast<int>(kept.size()));
    replaced[i] = it->second;
    if (added) {
      kept.push_back(std::move(k));
      continue;
    }
    auto& locations = kept[static_cast<size_t>(it->second)].locations;
    locations.insert(locations.end(), k.locations.begin(), k.locations.end());
  }
  p.kernels = std::move(kept);
  for (Call& c : p.calls) c.kernel = replaced[static_cast<size_t>(c.kernel)];
}

}  // namespace dlc
