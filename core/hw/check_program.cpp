#include "dlc/hw/check_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "dlc/hw/simulator.h"

namespace dlc {

namespace {

bool bit(uint64_t mask, size_t i) { return mask >> i & 1; }

class Checker {
 public:
  Checker(const HwDescription& hw, std::span<const Instruction> program, const ProgramCheckOptions& options)
      : hw_(hw), program_(program), options_(options), first_(hw, program) {}

  Result<ProgramCheck> run() {
    legal();
    if (!out_.problems.empty()) return std::move(out_);
    waiters();
    DLC_TRY(const Footprints footprints, Footprints::make(hw_));
    DLC_CHECK(touched(footprints));
    if (!out_.problems.empty()) return std::move(out_);
    if (!runs_to_end()) return std::move(out_);
    counters();
    order();
    races();
    if (out_.ok() && options_.undefined) undefined();
    return std::move(out_);
  }

 private:
  size_t n() const { return program_.size(); }
  size_t queue_of(size_t i) const { return static_cast<size_t>(first_.queue_of(static_cast<int64_t>(i))); }
  void problem(std::string kind, size_t instruction, std::string message, int space = -1) {
    if (out_.problems.size() < 20)
      out_.problems.push_back({std::move(kind), static_cast<int64_t>(instruction), std::move(message), space});
  }

  void legal() {
    for (size_t i = 0; i < n(); ++i)
      if (auto r = check_instruction(hw_, program_[i]); !r) problem("illegal", i, std::string(r.error().message()));
  }

  // The proofs below need it, whether or not the description asks for it.
  void waiters() {
    waiter_.assign(first_.semaphores().size(), -1);
    for (size_t i = 0; i < n(); ++i)
      for (size_t s = 0; s < waiter_.size(); ++s) {
        if (!bit(first_.waits(static_cast<int64_t>(i)), s)) continue;
        const int q = static_cast<int>(queue_of(i));
        if (waiter_[s] >= 0 && waiter_[s] != q)
          problem(
              "waiters", i,
              fmt::format("semaphore {} is waited on by the queues {} and {}", s,
                          hw_.queues[static_cast<size_t>(waiter_[s])].name, hw_.queues[static_cast<size_t>(q)].name));
        waiter_[s] = q;
      }
  }

  Result<> touched(const Footprints& footprints) {
    for (size_t i = 0; i < n(); ++i) {
      DLC_TRY(FootprintResult f, footprints.of(program_[i], options_.words));
      if (f.out)
        problem("oob", i,
                fmt::format("{} {} words {} .. {}, which has {}", f.out->write ? "writes" : "reads",
                            hw_.spaces[static_cast<size_t>(f.out->space)].name, f.out->lowest, f.out->highest,
                            f.out->words),
                f.out->space);
      if (f.self)
        problem("overlap", i,
                fmt::format("reads and writes {} words {} .. {} at different points of its loops",
                            hw_.spaces[static_cast<size_t>(f.self->space)].name,
                            f.self->bytes.begin / hw_.state_of(f.self->space).word_bytes(),
                            (f.self->bytes.end - 1) / hw_.state_of(f.self->space).word_bytes()));
      for (const Footprint& a : f.accesses)
        if (const HwSpace& s = hw_.spaces[static_cast<size_t>(a.space)]; a.write && !s.writable)
          problem("oob", i, "writes " + s.name + ", which is read-only", a.space);
      Spaces spaces;
      for (const Footprint& a : f.accesses) (a.write ? spaces.written : spaces.read) |= uint64_t{1} << (a.space % 64);
      spaces_.push_back(spaces);
      accesses_.push_back(std::move(f.accesses));
    }
    return {};
  }

  // One run of the counting semantics, whose order is kept: by confluence it ends exactly when all do.
  bool runs_to_end() {
    QueueModel m = first_;
    while (!m.finished()) {
      bool moved = false;
      for (size_t q = 0; q < m.queues(); ++q) {
        while (m.ready(q)) {
          topological_.push_back(static_cast<size_t>(m.head(q)));
          m.take(q);
          m.retire(q);
          m.fetch();
          moved = true;
        }
      }
      if (moved) continue;
      for (size_t q = 0; q < m.queues(); ++q)
        if (const int64_t h = m.head(q); h >= 0)
          problem("deadlock", static_cast<size_t>(h),
                  fmt::format("queue {} waits for ever at: {}", hw_.queues[q].name,
                              disassemble(hw_, program_[static_cast<size_t>(h)])));
      if (out_.problems.empty()) problem("deadlock", 0, "nothing can be fetched");
      return false;
    }
    return true;
  }

  // For each semaphore: its waiting queue goes only when nothing else can. Before each wait the count is the highest
  // that any interleaving reaches there, and what every queue has signalled by then is the most it can have signalled.
  void counters() {
    const size_t semaphores = first_.semaphores().size();
    out_.highest.assign(semaphores, 0);
    most_signals_.resize(semaphores);
    for (size_t s = 0; s < semaphores; ++s) delayed_run(s);
    if (!hw_.sync) return;
    const int64_t limit = (int64_t{1} << hw_.state[static_cast<size_t>(hw_.sync->object)].counter_bits) - 1;
    for (size_t s = 0; s < semaphores; ++s)
      if (out_.highest[s] > limit)
        problem("overflow", 0,
                fmt::format("semaphore {} can reach {}, it holds at most {}", s, out_.highest[s], limit));
  }

  void delayed_run(size_t s) {
    QueueModel m = first_;
    std::vector<int64_t> signalled(m.queues(), 0);
    int64_t count = m.semaphores()[s];
    out_.highest[s] = count;
    const auto step = [&](size_t q) {
      const int64_t i = m.head(q);
      m.take(q);
      if (bit(m.waits(i), s)) --count;
      if (bit(m.signals(i), s)) {
        ++signalled[q];
        ++count;
        out_.highest[s] = std::max(out_.highest[s], count);
      }
      m.retire(q);
      m.fetch();
    };
    while (!m.finished()) {
      bool moved = false;
      for (size_t q = 0; q < m.queues(); ++q)
        while (m.ready(q) && !bit(m.waits(m.head(q)), s)) {
          step(q);
          moved = true;
        }
      if (moved) continue;
      for (size_t q = 0; q < m.queues() && !moved; ++q) {
        if (!m.ready(q)) continue;
        most_signals_[s].push_back(signalled);
        step(q);
        moved = true;
      }
      if (!moved) return;  // runs_to_end() has reported it; an overflow is clamped by the model and reported above
    }
  }

  // before_[i][q]: how many instructions of queue q have retired when i starts, in every interleaving.
  void order() {
    const size_t queues = first_.queues(), semaphores = first_.semaphores().size();
    position_.assign(n(), 0);
    std::vector<std::vector<size_t>> list(queues);
    for (size_t i = 0; i < n(); ++i) {
      position_[i] = static_cast<int64_t>(list[queue_of(i)].size());
      list[queue_of(i)].push_back(i);
    }
    // signallers[s][q]: the instructions of q that signal s, in order.
    std::vector<std::vector<std::vector<size_t>>> signallers(semaphores, std::vector<std::vector<size_t>>(queues));
    for (size_t i = 0; i < n(); ++i)
      for (size_t s = 0; s < semaphores; ++s)
        if (bit(first_.signals(static_cast<int64_t>(i)), s)) signallers[s][queue_of(i)].push_back(i);
    before_.assign(n(), std::vector<int64_t>(queues, 0));
    std::vector<size_t> waits_done(semaphores, 0);
    for (const size_t i : topological_) {
      auto& mine = before_[i];
      const auto after = [&](size_t j) {
        for (size_t q = 0; q < queues; ++q) mine[q] = std::max(mine[q], before_[j][q]);
        mine[queue_of(j)] = std::max(mine[queue_of(j)], position_[j] + 1);
      };
      if (position_[i] > 0) after(list[queue_of(i)][static_cast<size_t>(position_[i] - 1)]);
      for (size_t s = 0; s < semaphores; ++s) {
        if (!bit(first_.waits(static_cast<int64_t>(i)), s)) continue;
        const size_t k = waits_done[s]++;
        // k+1 tokens are gone after this wait; what the reset value and the other queues cannot have given, q has.
        const auto& most = most_signals_[s][k];
        for (size_t q = 0; q < queues; ++q) {
          int64_t sure = static_cast<int64_t>(k) + 1 - first_.semaphores()[s];
          for (size_t o = 0; o < queues; ++o)
            if (o != q) sure -= most[o];
          if (sure > 0) after(signallers[s][q][static_cast<size_t>(sure - 1)]);
        }
      }
    }
  }

  // j happens before i.
  bool ordered(size_t j, size_t i) const { return position_[j] < before_[i][queue_of(j)]; }

  // Instructions of another queue that i is not ordered with are neighbours in it, so few pairs are compared.
  void races() {
    std::vector<std::vector<size_t>> list(first_.queues());
    std::vector<std::vector<Spaces>> spaces(first_.queues());
    for (size_t i = 0; i < n(); ++i) {
      list[queue_of(i)].push_back(i);
      spaces[queue_of(i)].push_back(spaces_[i]);
    }
    // What comes after i comes after all that its queue has before i: where the neighbours end only moves on.
    std::vector<std::vector<size_t>> ends(list.size(), std::vector<size_t>(list.size(), 0));
    for (size_t i = 0; i < n(); ++i)
      for (size_t q = queue_of(i) + 1; q < list.size(); ++q) {
        size_t& end = ends[queue_of(i)][q];
        while (end < list[q].size() && !ordered(i, list[q][end])) ++end;
        for (auto p = static_cast<size_t>(before_[i][q]); p < end; ++p)
          if (spaces_[i].meets(spaces[q][p])) compare(std::min(i, list[q][p]), std::max(i, list[q][p]));
      }
    std::sort(out_.races.begin(), out_.races.end(), [](const ProgramRace& a, const ProgramRace& b) {
      return std::tie(a.first, a.second, a.space) < std::tie(b.first, b.second, b.space);
    });
  }

  void compare(size_t i, size_t j) {
    for (const Footprint& a : accesses_[i])
      for (const Footprint& b : accesses_[j]) {
        if (a.space != b.space || (!a.write && !b.write) || out_.races.size() >= options_.max_races) continue;
        if (const auto common = first_overlap(a.bytes, b.bytes)) {
          out_.races.push_back({static_cast<int64_t>(i), static_cast<int64_t>(j), a.space, *common, a.write, b.write});
          return;
        }
      }
  }

  // External memory is written by the host, so only on-chip words are looked at.
  void undefined() {
    std::vector<std::vector<uint8_t>> written(hw_.spaces.size());
    for (size_t s = 0; s < written.size(); ++s) {
      const HwState& state = hw_.state_of(static_cast<int>(s));
      const bool unknown = state.kind == HwState::Kind::memory || state.kind == HwState::Kind::table;
      if (unknown && !state.reset) written[s].assign(static_cast<size_t>(state.words * state.word_bytes()), 0);
    }
    for (const size_t i : topological_)
      for (const Footprint& a : accesses_[i]) {
        auto& w = written[static_cast<size_t>(a.space)];
        if (w.empty()) continue;
        for (const ByteRange& r : a.bytes) {
          const auto begin = w.begin() + r.begin, end = w.begin() + r.end;
          if (a.write) {
            std::fill(begin, end, uint8_t{1});
          } else if (const auto hole = std::find(begin, end, uint8_t{0}); hole != end) {
            problem("undefined", i,
                    fmt::format("reads {} word {}, which nothing before it writes",
                                hw_.spaces[static_cast<size_t>(a.space)].name,
                                (hole - w.begin()) / hw_.state_of(a.space).word_bytes()));
            break;
          }
        }
      }
  }

  const HwDescription& hw_;
  std::span<const Instruction> program_;
  const ProgramCheckOptions& options_;
  QueueModel first_;  // waits, signals and queues of the instructions, counts at the start
  ProgramCheck out_;
  std::vector<int> waiter_;
  std::vector<std::vector<Footprint>> accesses_;
  // Of an instruction, a bit for each space (those 64 apart share one): most pairs meet in none.
  struct Spaces {
    uint64_t read = 0, written = 0;
    bool meets(const Spaces& o) const { return ((written & (o.read | o.written)) | (read & o.written)) != 0; }
  };
  std::vector<Spaces> spaces_;
  std::vector<size_t> topological_;
  // [s][k][q]: signals on s that queue q can have given before wait k on s, at most.
  std::vector<std::vector<std::vector<int64_t>>> most_signals_;
  std::vector<int64_t> position_;  // in the queue
  std::vector<std::vector<int64_t>> before_;
};

}  // namespace

Result<ProgramCheck> check_program(const HwDescription& hw, std::span<const Instruction> program,
                                   const ProgramCheckOptions& options) {
  for (const Instruction& i : program)
    if (i.insn < 0 || static_cast<size_t>(i.insn) >= hw.isa.insns.size() ||
        i.fields.size() != hw.isa.insns[static_cast<size_t>(i.insn)].fields.size())
      return fail({}, "an instruction does not belong to " + hw.name);
  return Checker(hw, program, options).run();
}

std::string report(const HwDescription& hw, std::span<const Instruction> program, const ProgramCheck& check) {
  std::string out;
  const auto text = [&](int64_t i) {
    return fmt::format("{} ({})", i, disassemble(hw, program[static_cast<size_t>(i)]));
  };
  for (const ProgramProblem& p : check.problems)
    out += fmt::format("{}: instruction {}: {}\n", p.kind, p.instruction >= 0 ? text(p.instruction) : "-", p.message);
  for (const ProgramRace& r : check.races) {
    const int64_t word = hw.state_of(r.space).word_bytes();
    out += fmt::format("race: instruction {} {} and instruction {} {} {} words {} .. {} with nothing to order them\n",
                       text(r.first), r.first_writes ? "writes" : "reads", text(r.second),
                       r.second_writes ? "writes" : "reads", hw.spaces[static_cast<size_t>(r.space)].name,
                       r.bytes.begin / word, (r.bytes.end - 1) / word);
  }
  return out;
}

}  // namespace dlc
