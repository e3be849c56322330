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
  std::vector<std::set<std::string>> listed;  // the nodes that each of them came from
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    if (!called.contains(static_cast<int>(i))) continue;
    Kernel& k = p.kernels[i];
    const auto [it, added] = seen.emplace(nameless_text(k), static_cast<int>(kept.size()));
    replaced[i] = it->second;
    if (added) {
      listed.emplace_back(k.locations.begin(), k.locations.end());
      kept.push_back(std::move(k));
      continue;
    }
    const auto first = static_cast<size_t>(it->second);
    for (const std::string& l : k.locations)
      if (listed[first].insert(l).second) kept[first].locations.push_back(l);
  }
  p.kernels = std::move(kept);
  for (Call& c : p.calls) c.kernel = replaced[static_cast<size_t>(c.kernel)];
}

}  // namespace dlc
