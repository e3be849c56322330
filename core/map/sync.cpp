#include "core/map/sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace dlc::map {

namespace {

class Synchroniser {
 public:
  Synchroniser(const HwDescription& hw, const Footprints& footprints, std::vector<Instruction>& program)
      : hw_(hw),
        footprints_(footprints),
        program_(program),
        last_(hw.queues.size(), -1),
        count_(hw.queues.size(), 0),
        issued_(hw.queues.size()) {}

  Result<> run() {
    if (!hw_.sync) return fail(hw_.place("family"), hw_.name + " has no way to synchronise its queues");
    accesses_.resize(hw_.spaces.size());
    const int64_t most = (int64_t{1} << hw_.state[static_cast<size_t>(hw_.sync->object)].counter_bits) - 1;
    reach_ = std::max<int64_t>(most - most / 4, 1);
    for (size_t i = 0; i < program_.size(); ++i) DLC_CHECK(instruction(i));
    return {};
  }

 private:
  struct Access {
    size_t instruction = 0;
    bool write = false;
    ByteSet bytes;
  };

  size_t queue(size_t i) const { return static_cast<size_t>(insn(i).queue); }
  const HwInsn& insn(size_t i) const { return hw_.isa.insns[static_cast<size_t>(program_[i].insn)]; }

  Result<> instruction(size_t i) {
    const size_t queues = hw_.queues.size(), q = queue(i);
    std::vector<int64_t> clock(queues, 0);  // how many instructions of each queue have retired when i starts
    if (last_[q] >= 0) clock = clocks_[static_cast<size_t>(last_[q])];
    clock[q] = count_[q];
    DLC_TRY(const FootprintResult touched, footprints_.of(program_[i]));
    std::vector<int64_t> needs(queues, -1);  // per queue: the latest instruction that must be over
    for (const Footprint& f : touched.accesses) depend(i, f, needs);
    if (insn(i).forms.empty())  // it ends the program: everything must be over
      for (size_t p = 0; p < queues; ++p) needs[p] = last_[p];
    needs[q] = -1;
    for (size_t round = 0; round < queues; ++round) {
      const auto latest = std::ranges::max_element(needs);
      if (*latest < 0) break;
      const auto p = static_cast<size_t>(latest - needs.begin());
      auto j = static_cast<size_t>(*latest);
      *latest = -1;
      if (position_[j] < clock[p]) continue;
      // Signals whose waits are far behind would pile up in the counter: a younger instruction of p will do as well.
      if (count_[p] - position_[j] > reach_) j = issued_[p][static_cast<size_t>(count_[p] - reach_)];
      DLC_CHECK(order(j, i));
      for (size_t o = 0; o < queues; ++o) clock[o] = std::max(clock[o], clocks_[j][o]);
      clock[p] = std::max(clock[p], position_[j] + 1);
    }
    position_.push_back(count_[q]++);
    issued_[q].push_back(i);
    last_[q] = static_cast<int64_t>(i);
    clocks_.push_back(std::move(clock));
    return {};
  }

  void depend(size_t i, const Footprint& f, std::vector<int64_t>& needs) {
    if (f.bytes.empty() || !hw_.spaces[static_cast<size_t>(f.space)].writable) return;
    auto& list = accesses_[static_cast<size_t>(f.space)];
    const bool whole = f.write && f.exact && f.bytes.size() == 1;
    std::erase_if(list, [&](const Access& a) {
      if (a.instruction == i || (!f.write && !a.write)) return false;
      if (a.bytes.front().begin >= f.bytes.back().end || f.bytes.front().begin >= a.bytes.back().end) return false;
      if (!first_overlap(a.bytes, f.bytes)) return false;
      int64_t& need = needs[queue(a.instruction)];
      need = std::max(need, static_cast<int64_t>(a.instruction));
      // Later accesses meet this write first.
      return whole && f.bytes.front().begin <= a.bytes.front().begin && a.bytes.back().end <= f.bytes.back().end;
    });
    list.push_back({i, f.write, f.bytes});
  }

  Result<> order(size_t before, size_t after) {
    const HwState& object = hw_.state[static_cast<size_t>(hw_.sync->object)];
    const auto pair = std::pair(queue(before), queue(after));
    const auto [it, fresh] = semaphores_.emplace(pair, static_cast<int>(semaphores_.size()));
    if (it->second >= object.words)
      return fail({}, fmt::format("{} pairs of queues depend on each other, {} has {} semaphores", semaphores_.size(),
                                  hw_.name, object.words));
    mask(before, hw_.sync->signal_field, it->second);
    mask(after, hw_.sync->wait_field, it->second);
    return {};
  }

  void mask(size_t i, const std::string& field, int bit) {
    const int f = insn(i).field(field);
    if (f >= 0) program_[i].fields[static_cast<size_t>(f)] |= int64_t{1} << bit;
  }

  const HwDescription& hw_;
  const Footprints& footprints_;
  std::vector<Instruction>& program_;
  std::vector<int64_t> last_, count_;        // per queue
  std::vector<std::vector<size_t>> issued_;  // per queue
  int64_t reach_ = 0;                        // how far back a wait may look in another queue
  std::vector<int64_t> position_;            // per instruction, in its queue
  std::vector<std::vector<int64_t>> clocks_;
  std::vector<std::vector<Access>> accesses_;  // per space
  std::map<std::pair<size_t, size_t>, int> semaphores_;
};

}  // namespace

Result<> synchronise(const HwDescription& hw, const Footprints& footprints, std::vector<Instruction>& program) {
  return Synchroniser(hw, footprints, program).run();
}

}  // namespace dlc::map
