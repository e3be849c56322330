#include "simulators/cuda/counters.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace dlc::emu {

void AccessLog::add(int lane, uintptr_t site, uintptr_t at, uint32_t bytes, bool write, bool shared) {
  if (entries_.size() < kMost) entries_.push_back({site, 0, static_cast<uint8_t>(lane), write, shared, bytes, at});
}

uint64_t wavefronts(const std::vector<uintptr_t>& at, uint32_t bytes) {
  std::vector<uintptr_t> words;
  for (uintptr_t a : at)
    for (uintptr_t w = a / 4; w <= (a + bytes - 1) / 4; ++w) words.push_back(w);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<uint64_t, 32> bank{};
  for (uintptr_t w : words) ++bank[w % 32];
  return *std::max_element(bank.begin(), bank.end());
}

void AccessLog::flush(Counters& into) {
  if (entries_.empty()) return;
  // A lane's accesses stand in the order it made them.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return std::tie(a.site, a.lane) < std::tie(b.site, b.lane); });
  for (size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].site == entries_[i - 1].site && entries_[i].lane == entries_[i - 1].lane)
      entries_[i].nth = entries_[i - 1].nth + 1;
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return std::tie(a.site, a.nth) < std::tie(b.site, b.nth); });
  for (size_t first = 0, last; first < entries_.size(); first = last) {
    const Entry& e = entries_[first];
    for (last = first + 1; last < entries_.size(); ++last)
      if (entries_[last].site != e.site || entries_[last].nth != e.nth || entries_[last].shared != e.shared) break;
    if (e.shared) {
      const size_t lanes = std::max<size_t>(1, 128 / std::max<uint32_t>(e.bytes, 4));
      for (size_t i = first; i < last; i += lanes) {
        scratch_.clear();
        for (size_t k = i; k < std::min(last, i + lanes); ++k) scratch_.push_back(entries_[k].at);
        SharedTraffic& t = e.write ? into.shared_stores : into.shared_loads;
        ++t.phases;
        t.wavefronts += wavefronts(scratch_, e.bytes);
      }
      continue;
    }
    scratch_.clear();
    Traffic& t = e.write ? into.stores : into.loads;
    for (size_t k = first; k < last; ++k) {
      t.bytes += entries_[k].bytes;
      for (uintptr_t s = entries_[k].at / 32; s <= (entries_[k].at + entries_[k].bytes - 1) / 32; ++s)
        scratch_.push_back(s);
    }
    std::sort(scratch_.begin(), scratch_.end());
    ++t.requests;
    t.sectors += static_cast<uint64_t>(std::unique(scratch_.begin(), scratch_.end()) - scratch_.begin());
  }
  entries_.clear();
}

}  // namespace dlc::emu
