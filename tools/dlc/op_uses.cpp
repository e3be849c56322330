#include "tools/dlc/op_uses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "dlc/io/file.h"

namespace dlc::cli {

std::vector<OpUse> uses_of(const Graph& g, const std::vector<OnnxNode>& nodes) {
  std::set<OpUse> uses;
  for (const OnnxNode& n : nodes) {
    OpUse use{n.op, {}, {}};
    std::set<std::string> records;
    for (NodeId i = n.first; i < n.end; ++i) {
      records.insert(g.node(i).op);
      for (const ValueId v : g.node(i).inputs)
        if (v != kNoValue && use.type.empty()) use.type = to_string(g.value(v).type.dtype);
    }
    use.records.assign(records.begin(), records.end());
    if (use.type.empty() && !n.results.empty() && n.results[0] >= 0)
      use.type = to_string(g.value(n.results[0]).type.dtype);
    uses.insert(std::move(use));
  }
  return {uses.begin(), uses.end()};
}

std::string print_uses(const OpUses& uses) {
  std::string text = "# What each test is made of, as `dlc conform` imports it; tools/dlc/op_uses.h has the form.\n";
  for (const auto& [test, list] : uses) {
    text += test;
    for (const OpUse& u : list)
      text += fmt::format(" {}={}{}{}", u.op, fmt::join(u.records, "+"), u.type.empty() ? "" : ":", u.type);
    text += "\n";
  }
  return text;
}

Result<OpUses> read_uses(const std::string& file) {
  DLC_TRY(const MappedFile mapped, map_file(file));
  std::istringstream in{std::string(mapped.text())};
  OpUses out;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string test;
    words >> test;
    std::vector<OpUse>& list = out[test];
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos)
        return fail({file, number, 0, {}}, fmt::format("'{}' is no use of an op: OP=RECORD+RECORD:TYPE", word));
      OpUse use{word.substr(0, equals), {}, {}};
      std::string records = word.substr(equals + 1);
      if (const size_t colon = records.find(':'); colon != std::string::npos) {
        use.type = records.substr(colon + 1);
        records.resize(colon);
      }
      std::istringstream parts(records);
      for (std::string r; std::getline(parts, r, '+');) use.records.push_back(r);
      list.push_back(std::move(use));
    }
  }
  return out;
}

}  // namespace dlc::cli
