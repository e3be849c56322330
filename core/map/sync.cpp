#include "core/map/sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace dlc::map {

namespace {

// What was read and written of one memory and may still matter, by pages.
class Accesses {
 public:
  struct Access {
    size_t instruction = 0, queue = 0;
    ByteSet bytes;
    bool over = false;  // later ones will do
  };

  // For every write (of a write: for every access) that has a byte of `bytes`: f(access); true: it is over.
  template <class F>
  void meet(const ByteSet& bytes, bool write, const F& f) {
    each_page(bytes, [&](Page& page) {
      for (auto* list : {&page.writes, &page.reads}) {
        if (list == &page.reads && !write) continue;
        std::erase_if(*list, [&](size_t i) {
          Access& a = all_[i];
          if (!a.over && overlap(a.bytes, bytes)) a.over = f(a);
          return a.over;
        });
      }
    });
  }

  // One of the same queue whose bytes are among these is over: whoever waits for the later one has waited for it.
  void add(Access access, bool write) {
    each_page(access.bytes, [&](Page& page) {
      auto& list = write ? page.writes : page.reads;
      std::erase_if(list, [&](size_t i) {
        Access& a = all_[i];
        return a.over = a.over || (a.queue == access.queue && inside(a.bytes, access.bytes));
      });
      list.push_back(all_.size());
    });
    all_.push_back(std::move(access));
  }

  static bool inside(const ByteSet& a, const ByteSet& b) {
    return b.size() == 1 && b.front().begin <= a.front().begin && a.back().end <= b.front().end;
  }

 private:
  static constexpr int64_t kPage = 4096;
  struct Page {
    std::vector<size_t> reads, writes;
  };

  static bool overlap(const ByteSet& a, const ByteSet& b) {
    return a.front().begin < b.back().end && b.front().begin < a.back().end && first_overlap(a, b);
  }

  template <class F>
  void each_page(const ByteSet& bytes, const F& f) {
    int64_t next = 0;  // pages before it are done
    for (const ByteRange& r : bytes)
      for (next = std::max(next, r.begin / kPage); next * kPage < r.end; ++next) f(pages_[next]);
  }

  std::vector<Access> all_;
  std::unordered_map<int64_t, Page> pages_;
};

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
    most_ = static_cast<size_t>(most);
    reach_ = std::max<int64_t>(most - most / 4, 1);
    for (size_t i = 0; i < program_.size(); ++i) DLC_CHECK(instruction(i));
    return {};
  }

 private:
  struct Token {
    size_t giver = 0, taker = 0;
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
    for (size_t p = 0; p < queues; ++p)
      if (const auto taken = must_be_taken(q, p)) needs[p] = std::max(needs[p], static_cast<int64_t>(*taken));
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
      DLC_TRY(j, order(j, i));
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
    Accesses& accesses = accesses_[static_cast<size_t>(f.space)];
    accesses.meet(f.bytes, f.write, [&](const Accesses::Access& a) {
      if (a.instruction == i) return false;
      needs[a.queue] = std::max(needs[a.queue], static_cast<int64_t>(a.instruction));
      // Later accesses meet this write first.
      return f.write && f.exact && Accesses::inside(a.bytes, f.bytes);
    });
    accesses.add({i, queue(i), f.bytes}, f.write);
  }

  // A queue that runs ahead gives what nobody takes yet, and the counter holds `most_` of it. So whoever may give token
  // n + most_ to another queue starts after that one took token n: its taker, where there is one.
  std::optional<size_t> must_be_taken(size_t from, size_t to) const {
    const auto it = given_.find({from, to});
    if (it == given_.end() || it->second.size() < most_) return std::nullopt;
    return it->second[it->second.size() - most_].taker;
  }

  // Lets `after` wait for `before`, or for a later one of its queue. Returns it.
  Result<size_t> order(size_t before, size_t after) {
    const size_t from = queue(before), to = queue(after);
    std::vector<Token>& given = given_[{from, to}];
    if (const auto taken = must_be_taken(from, to)) {
      const auto safe = [&](size_t giver) { return clocks_[giver][to] > position_[*taken]; };
      const auto& list = issued_[from];
      auto giver = std::ranges::lower_bound(list, before);
      while (giver != list.end() && !safe(*giver)) ++giver;
      if (giver == list.end()) {
        // All that `from` has issued was there when the last token was given: its taker, which comes before `after`,
        // waits for all of it.
        Token& last = given.back();
        DLC_CHECK(mask(last, to, false));
        last.giver = list.back();
        DLC_CHECK(mask(last, to, true));
        return last.giver;
      }
      before = *giver;
    }
    given.push_back({before, after});
    DLC_CHECK(mask(given.back(), to, true));
    return before;
  }

  // The bits of a token: at its giver (that one alone may change) and its taker.
  Result<> mask(const Token& token, size_t to, bool set) {
    const size_t from = queue(token.giver);
    int signal = static_cast<int>(to), wait = static_cast<int>(from);
    if (!hw_.sync->tokens()) {
      const HwState& object = hw_.state[static_cast<size_t>(hw_.sync->object)];
      const auto [it, fresh] = semaphores_.emplace(std::pair(from, to), static_cast<int>(semaphores_.size()));
      if (it->second >= object.words)
        return fail(
            object.loc,
            fmt::format("{} has {} semaphores, and {} pairs of queues depend on each other: {} on {} is one more",
                        hw_.name, object.words, semaphores_.size(), hw_.queues[to].name, hw_.queues[from].name),
            fmt::format("'count' of at least {} there, and as many bits in the fields '{}' and '{}'",
                        hw_.queues.size() * (hw_.queues.size() - 1), hw_.sync->wait_field, hw_.sync->signal_field));
      signal = wait = it->second;
    }
    mask(token.giver, hw_.sync->signal_field, signal, set);
    mask(token.taker, hw_.sync->wait_field, wait, true);
    return {};
  }

  void mask(size_t i, const std::string& field, int bit, bool set) {
    const int f = insn(i).field(field);
    if (f < 0) return;
    int64_t& bits = program_[i].fields[static_cast<size_t>(f)];
    bits = set ? bits | int64_t{1} << bit : bits & ~(int64_t{1} << bit);
  }

  const HwDescription& hw_;
  const Footprints& footprints_;
  std::vector<Instruction>& program_;
  std::vector<int64_t> last_, count_;                              // per queue
  std::vector<std::vector<size_t>> issued_;                        // per queue
  size_t most_ = 1;                                                // what a counter holds
  std::map<std::pair<size_t, size_t>, std::vector<Token>> given_;  // from a queue to another, in order
  int64_t reach_ = 0;                                              // how far back a wait may look in another queue
  std::vector<int64_t> position_;                                  // per instruction, in its queue
  std::vector<std::vector<int64_t>> clocks_;
  std::vector<Accesses> accesses_;  // per space
  std::map<std::pair<size_t, size_t>, int> semaphores_;
};

}  // namespace

Result<> synchronise(const HwDescription& hw, const Footprints& footprints, std::vector<Instruction>& program) {
  return Synchroniser(hw, footprints, program).run();
}

}  // namespace dlc::map
