// Spills in assembly text: what the register tile's size is checked by.
#include <algorithm>
#include <map>
#include <vector>

#include "codegen.h"

namespace dlc::cpu {

int count_spills(std::string_view assembly) {
  std::vector<std::string_view> lines;
  while (!assembly.empty()) {
    const size_t end = std::min(assembly.find('\n'), assembly.size());
    lines.push_back(assembly.substr(0, end));
    assembly.remove_prefix(std::min(end + 1, assembly.size()));
  }
  // Innermost loops: from a label to the first jump back to it, without a whole loop in between.
  std::map<std::string_view, size_t> labels;
  size_t last_loop_start = 0;
  int spills = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (line.starts_with(".L") && line.find(':') != std::string_view::npos) {
      labels[line.substr(0, line.find(':'))] = i;
      continue;
    }
    if (!line.starts_with("\tj")) continue;
    const auto target = labels.find(line.substr(std::min(line.find_last_of('\t') + 1, line.size())));
    if (target == labels.end() || target->second < last_loop_start) continue;
    last_loop_start = target->second + 1;
    for (size_t j = target->second; j < i; ++j)
      spills += lines[j].find("mm") != std::string_view::npos && lines[j].find("mov") != std::string_view::npos &&
                lines[j].find("(%rsp)") != std::string_view::npos;
  }
  return spills;
}

}  // namespace dlc::cpu
