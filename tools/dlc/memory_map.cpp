#include "tools/dlc/memory_map.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "dlc/hw/footprint.h"

namespace dlc::cli {

namespace {

// The regions of one memory that may still be read. They do not overlap: what is written over is cut away.
class Live {
 public:
  explicit Live(std::vector<MemoryRegion>& out) : out_(out) {}

  void read(int64_t low, int64_t high, int64_t until) {
    for (auto it = first(low); it != live_.end() && it->first < high; ++it)
      out_[it->second.region].end = std::max(out_[it->second.region].end, until);
  }

  // `same`: whether a region's instruction and this one work on the same, as those that add to one sum do.
  template <class Same>
  void write(const MemoryRegion& r, const Same& same) {
    if (const auto it = live_.find(r.low); it != live_.end() && it->second.high == r.high) {
      MemoryRegion& old = out_[it->second.region];
      if (same(old.instruction)) {
        old.end = std::max(old.end, r.end);
        return;
      }
    }
    for (auto it = first(r.low); it != live_.end() && it->first < r.high; it = first(r.low)) {
      const auto [low, old] = *it;
      live_.erase(it);
      if (low < r.low) rest(old.region, low, r.low, r.begin);
      if (old.high > r.high) rest(old.region, r.high, old.high, r.begin);
    }
    add(r);
  }

 private:
  struct Place {
    int64_t high = 0;
    size_t region = 0;
  };
  std::map<int64_t, Place>::iterator first(int64_t low) {
    auto it = live_.upper_bound(low);
    if (it != live_.begin() && std::prev(it)->second.high > low) --it;
    return it;
  }
  void add(const MemoryRegion& r) {
    live_[r.low] = {r.high, out_.size()};
    out_.push_back(r);
  }
  // What is left of a region beside what is written over it: of use only if it is read again.
  void rest(size_t region, int64_t low, int64_t high, int64_t at) {
    add({low, high, at, at, out_[region].instruction});
  }

  std::vector<MemoryRegion>& out_;
  std::map<int64_t, Place> live_;
};

}  // namespace

Result<std::vector<MemoryMap>> memory_maps(const Stream& s) {
  const HwDescription& hw = s.hw();
  DLC_TRY(const Footprints footprints, Footprints::make(hw));
  const std::vector<uint64_t> segments = segment_sizes(hw, s.image(), s.loaded.words.size() * 4);
  std::vector<MemoryMap> maps;
  for (size_t i = 0; i < hw.spaces.size(); ++i) {
    const HwState& state = hw.state_of(static_cast<int>(i));
    const bool external = hw.spaces[i].segment >= 0;
    const int64_t word = external ? state.align : state.word_bytes();
    maps.push_back({hw.spaces[i].name, external ? static_cast<int64_t>(segments[i]) / word : state.words, word, {}});
  }
  std::vector<Live> live;
  for (MemoryMap& m : maps) live.emplace_back(m.regions);
  std::vector<size_t> order(s.image().program.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto& times = s.times();
  std::ranges::stable_sort(order, {}, [&](size_t i) { return times[i].start; });
  for (const size_t i : order) {
    DLC_TRY(const FootprintResult touched, footprints.of(s.image().program[i]));
    const auto same = [&](size_t other) {
      return s.image().tiles[other] == s.image().tiles[i] &&
             s.image().layer_of(static_cast<int64_t>(other)) == s.image().layer_of(static_cast<int64_t>(i));
    };
    for (const Footprint& f : touched.accesses) {
      if (f.bytes.empty()) continue;
      const auto space = static_cast<size_t>(f.space);
      const int64_t word = maps[space].word_bytes, low = f.bytes.front().begin / word,
                    high = (f.bytes.back().end + word - 1) / word;
      if (f.write)
        live[space].write({low, high, times[i].start, times[i].retire, i}, same);
      else
        live[space].read(low, high, times[i].retire);
    }
  }
  for (MemoryMap& m : maps) std::erase_if(m.regions, [](const MemoryRegion& r) { return r.end <= r.begin; });
  std::erase_if(maps, [](const MemoryMap& m) { return m.regions.empty(); });
  return maps;
}

}  // namespace dlc::cli
