#include "tools/dlc/cycle_list.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <sstream>

#include "dlc/io/pending_file.h"

namespace dlc::cli {

namespace {
constexpr std::string_view kHead = "# network  configuration  cycles; `dlc cosim --write-cycles` renews a line\n";
}

Result<CycleList> CycleList::read(const std::string& file) {
  DLC_TRY(const MappedFile mapped, map_file(file));
  CycleList list;
  std::istringstream lines{std::string(mapped.text())};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string network, configuration, cycles, more;
    if (!(words >> network)) continue;
    int64_t n = 0;
    const bool has_all = static_cast<bool>(words >> configuration >> cycles) && !(words >> more);
    const auto [end, error] = std::from_chars(cycles.data(), cycles.data() + cycles.size(), n);
    if (!has_all || error != std::errc() || end != cycles.data() + cycles.size())
      return fail({file, number, 0, {}}, "this is no line of cycles", "network configuration cycles");
    if (!list.cycles.emplace(std::pair(network, configuration), n).second)
      return fail({file, number, 0, {}}, fmt::format("{} with {} is here twice", network, configuration));
  }
  return list;
}

std::string word_of(const std::string& name) {
  if (name.empty()) return "%";
  std::string out;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    out += u <= 0x20 || u == 0x7f || c == '#' || c == '%' ? fmt::format("%{:02x}", u) : std::string(1, c);
  }
  return out;
}

Result<> CycleList::renew(const std::string& file, const std::pair<std::string, std::string>& key, int64_t measured) {
  DLC_TRY(PendingFile pending, PendingFile::open(file));  // held alone from here on: nobody else's line is lost
  CycleList list;
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    DLC_TRY(list, CycleList::read(file));
  }
  list.cycles[key] = measured;
  const std::string text = list.text();
  DLC_CHECK(pending.append(std::as_bytes(std::span(text.data(), text.size()))));
  DLC_CHECK(pending.flush());
  return pending.replace();
}

std::string CycleList::text() const {
  std::string out(kHead);
  for (const auto& [key, n] : cycles) out += fmt::format("{} {} {}\n", key.first, key.second, n);
  return out;
}

std::string CycleList::differs(const std::string& network, const std::string& configuration, int64_t measured) const {
  const auto it = cycles.find({network, configuration});
  if (it == cycles.end()) return fmt::format("{} with {} is not in the list", network, configuration);
  if (it->second == measured) return {};
  const double more =
      it->second == 0 ? 0.0 : 100 * static_cast<double>(measured - it->second) / static_cast<double>(it->second);
  return fmt::format("{} cycles, the list has {} ({:+.2f} %)", measured, it->second, more);
}

}  // namespace dlc::cli
