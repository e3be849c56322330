#include "dlc/hw/timing.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>

#include "core/hw/field_code.h"

namespace dlc {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;

// The last `n` values of a series: what must be over before the next one may begin.
class Window {
 public:
  explicit Window(int64_t n) : n_(static_cast<size_t>(std::max<int64_t>(n, 1))) {}
  int64_t oldest() const { return last_.size() < n_ ? -2 : last_.front(); }
  void push(int64_t value) {
    if (last_.size() == n_) last_.pop_front();
    last_.push_back(value);
  }

 private:
  size_t n_;
  std::deque<int64_t> last_;
};

// What the replay needs of an instruction of the description, ready to be evaluated.
struct Costs {
  FieldCode cycles, steps;  // steps: of its loops, each of which uses the memories once
  const HwTransferCost* transfer = nullptr;
  FieldCode bursts, words;
  int wait = -1, signal = -1;  // fields
};

struct Running {
  size_t index = 0;
  int64_t retire = 0;
  int64_t from = 0;             // uses its ports from here on
  uint64_t ports = 0;           // which: bit 2*state for reads, 2*state + 1 for writes
  int64_t steps = 0, rest = 0;  // of a queue that others stall: cycles to go with a port, and then without
};

struct Queue {
  Queue(int64_t depth, int64_t in_flight, int64_t open)
      : depth(static_cast<size_t>(depth)), in_flight(static_cast<size_t>(in_flight)), bursts(open) {}
  size_t depth, in_flight;
  uint64_t shared = 0;                // ports that others may take from it
  bool blocked = false;               // one of them is taken now
  std::deque<size_t> waiting;         // dispatched and not started
  std::deque<Running> running;        // started and not retired
  int64_t free = 0;                   // the engine takes the next instruction from this cycle on
  int64_t started = 0, retired = -1;  // when the last one did
  int64_t data = 0, asked = 0;        // last cycles of the data and the request stage
  std::vector<int64_t> starts;
  Window bursts;

  // When there is a place for the next instruction, of which none is waiting beyond the depth.
  int64_t room() const {
    const size_t place = starts.size() + waiting.size();
    return place < depth ? 0 : starts[place - depth] + 1;
  }
};

class Replay {
 public:
  Replay(const HwDescription& hw, std::span<const Instruction> program)
      : hw_(hw), program_(program), issue_(hw.cost.issue), out_(program.size()) {
    for (const HwInsn& insn : hw.isa.insns) costs_.push_back(costs_of(insn));
    for (size_t q = 0; q < std::max<size_t>(hw.queues.size(), 1); ++q) {
      int64_t open = 1;
      for (const HwTransferCost& t : hw.cost.transfers)
        if (hw.isa.insns[static_cast<size_t>(t.insn)].queue == static_cast<int>(q)) open = t.open;
      queues_.emplace_back(q < hw.queues.size() ? hw.queues[q].depth : 1, issue_.in_flight, open);
      if (q < hw.queues.size()) find_shared(hw.queues[q].name, queues_.back());
    }
    for (size_t s = 0; s < hw.state.size(); ++s)
      if (hw.state[s].kind == HwState::Kind::external) external_reads_ |= port(s, false);
    tokens_.resize(hw.sync ? static_cast<size_t>(hw.state[static_cast<size_t>(hw.sync->object)].words) : 0);
    taken_.resize(program.size());
    here_.resize(program.size());
  }

  std::vector<InstructionTime> run() {
    fetch();
    for (;;) {
      dispatch();
      Queue* who = nullptr;
      bool start = false;
      int64_t at = kNever;
      for (Queue& q : queues_) {
        if (!q.running.empty() && q.running.front().retire < at) {
          at = q.running.front().retire;
          who = &q;
          start = false;
        }
        if (const int64_t t = next_start(q); t < at) {
          at = t;
          who = &q;
          start = true;
        }
      }
      const int64_t change = next_change(at);
      if (change < at) {
        now_ = change;
        settle();
        continue;
      }
      if (who == nullptr) return std::move(out_);  // the end, or a program that does not come to one
      now_ = std::max(now_, at);
      start ? begin(*who) : end(*who);
      settle();
    }
  }

 private:
  Costs costs_of(const HwInsn& insn) const {
    const auto code = [&insn](const Expr& e) { return FieldCode::make(e, insn).value_or(FieldCode()); };
    Costs c;
    if (insn.cycles) c.cycles = code(*insn.cycles);
    Expr steps(1);
    for (const Loop& l : insn.loops)
      if (!l.extent.constant()) steps = steps * l.extent;
    c.steps = code(steps);
    for (const HwTransferCost& t : hw_.cost.transfers) {
      if (&hw_.isa.insns[static_cast<size_t>(t.insn)] != &insn) continue;
      c.transfer = &t;
      c.bursts = code(t.bursts);
      c.words = code(t.words);
    }
    if (hw_.sync) {
      c.wait = insn.field(hw_.sync->wait_field);
      c.signal = insn.field(hw_.sync->signal_field);
    }
    return c;
  }

  // Ports that this queue shares and has to yield. A bank of its own for each side is no conflict; nor is a memory that
  // has another port of the kind for this queue alone.
  void find_shared(const std::string& name, Queue& q) const {
    for (size_t s = 0; s < hw_.state.size(); ++s) {
      const HwState& state = hw_.state[s];
      if (state.conflict != "stall " + name || state.ports_per_bank) continue;
      for (const char kind : {'r', 'w'}) {
        bool mine = false, alone = false;
        for (const HwPort& p : state.ports) {
          if (!p.name.starts_with(kind) || std::ranges::count(p.clients, name) == 0) continue;
          mine = true;
          alone = alone || p.clients.size() == 1;
        }
        if (mine && !alone) q.shared |= port(s, kind == 'w');
      }
    }
  }
  static uint64_t port(size_t state, bool write) {
    return state < 32 ? uint64_t{1} << (2 * state + (write ? 1 : 0)) : 0;
  }

  uint64_t ports_of(const Instruction& i) const {
    const HwInsn& insn = hw_.isa.insns[static_cast<size_t>(i.insn)];
    const int form = find_form(insn, i.fields);
    if (form < 0) return 0;
    const HwForm& f = insn.forms[static_cast<size_t>(form)];
    uint64_t out = 0;
    const auto add = [&](int tensor, bool write) {
      if (tensor < 0) return;
      const int space = f.operands[static_cast<size_t>(tensor)].space_for(insn, i.fields);
      if (space >= 0) out |= port(static_cast<size_t>(hw_.spaces[static_cast<size_t>(space)].state), write);
    };
    for (const int t : f.kernel.inputs) add(t, false);
    for (const int t : f.kernel.outputs) add(t, true);
    return out;
  }

  uint64_t field(size_t i, int f) const {
    return f < 0 ? 0 : static_cast<uint64_t>(program_[i].fields[static_cast<size_t>(f)]);
  }
  uint64_t waits(size_t i) const { return hw_.sync ? hw_.sync->waits(field(i, cost(i).wait), insn(i).queue) : 0; }
  uint64_t signals(size_t i) const { return hw_.sync ? hw_.sync->signals(field(i, cost(i).signal), insn(i).queue) : 0; }
  const HwInsn& insn(size_t i) const { return hw_.isa.insns[static_cast<size_t>(program_[i].insn)]; }
  const Costs& cost(size_t i) const { return costs_[static_cast<size_t>(program_[i].insn)]; }
  Queue& queue(size_t i) { return queues_[static_cast<size_t>(std::max(insn(i).queue, 0))]; }

  // In order: asked for when there is room ahead, into its queue when that has room.
  void dispatch() {
    while (next_ < program_.size() && queue(next_).waiting.size() < queue(next_).depth) {
      Queue& q = queue(next_);
      last_taken_ = std::max({here_[next_], last_taken_ + 1, q.room()});
      taken_[next_] = last_taken_;
      q.waiting.push_back(next_++);
      fetch();
    }
  }

  // Asks for instructions as far ahead as may be.
  void fetch() {
    const auto ahead = static_cast<size_t>(issue_.ahead);
    for (; fetched_ < program_.size() && fetched_ < next_ + ahead; ++fetched_) {
      asked_ = std::max(asked_ + 1, fetched_ < ahead ? 1 : taken_[fetched_ - ahead] + 1);
      here_[fetched_] = std::max(asked_ + issue_.fetch, (fetched_ > 0 ? here_[fetched_ - 1] : 0) + issue_.beats);
      steal(here_[fetched_]);
    }
  }

  // The beats of a fetch go over the read channel too: words that are moved then come later.
  void steal(int64_t at) {
    for (Queue& q : queues_) {
      bool late = false;
      for (Running& r : q.running) {
        late = late || ((r.ports & external_reads_) != 0 && r.from <= at && at <= r.retire);
        if (late) r.retire += issue_.beats;
      }
      if (late) q.data += issue_.beats;
    }
  }

  // When the head of the queue starts, as far as what has happened until now tells.
  int64_t next_start(const Queue& q) const {
    if (q.waiting.empty() || q.running.size() >= q.in_flight) return kNever;
    const size_t i = q.waiting.front();
    if (!q.running.empty() && cost(i).transfer == nullptr) return kNever;
    int64_t t = std::max(std::max(taken_[i], q.started) + 1 + issue_.look, q.free);
    if (q.running.size() + 1 == q.in_flight || q.running.empty()) t = std::max(t, q.retired + 1);
    if (insn(i).forms.empty()) {  // it ends the program
      if (next_ < program_.size()) return kNever;
      for (const Queue& other : queues_)
        if (!other.running.empty() || other.waiting.size() > (&other == &q ? 1U : 0U)) return kNever;
      t = std::max(t, last_ + 1);
    }
    for (uint64_t left = waits(i); left != 0; left &= left - 1) {
      const auto& given = tokens_[static_cast<size_t>(std::countr_zero(left))];
      if (given.empty()) return kNever;
      t = std::max(t, given.front() + 1);
    }
    return std::max(t, now_);
  }

  void begin(Queue& q) {
    const size_t i = q.waiting.front();
    q.waiting.pop_front();
    for (uint64_t left = waits(i); left != 0; left &= left - 1)
      tokens_[static_cast<size_t>(std::countr_zero(left))].pop_front();
    Running r{.index = i, .ports = ports_of(program_[i])};
    const int64_t steps = std::max<int64_t>(cost(i).steps.run(program_[i].fields).value_or(0), 0);
    if (cost(i).transfer) {
      r.retire = transfer(q, i);
      if ((r.ports & external_reads_) != 0)
        for (size_t f = fetched_; f-- > 0 && here_[f] + steps > now_;)
          if (r.retire - steps < here_[f] && here_[f] <= r.retire) {
            r.retire += issue_.beats;
            q.data += issue_.beats;
          }
    } else {
      const int64_t cycles = std::max<int64_t>(cost(i).cycles.run(program_[i].fields).value_or(1), 1);
      r.retire = now_ + cycles - 1;
      q.free = now_ + cycles;
      r.steps = std::min(steps, cycles - 1);
      r.rest = cycles - 1 - r.steps;
    }
    // the steps come last: what is before them fetches weights or waits for the bus
    r.from = std::max(now_, r.retire - steps);
    q.started = now_;
    q.starts.push_back(now_);
    out_[i].start = now_;
    q.running.push_back(r);
  }

  void end(Queue& q) {
    const Running r = q.running.front();
    q.running.pop_front();
    q.retired = r.retire;
    q.free = std::max(q.free, cost(r.index).transfer ? q.free : r.retire + 1);
    out_[r.index].retire = r.retire;
    last_ = std::max(last_, r.retire);
    for (uint64_t left = signals(r.index); left != 0; left &= left - 1)
      tokens_[static_cast<size_t>(std::countr_zero(left))].push_back(r.retire);
  }

  // A request stage asks for bursts, `gap` cycles apart and at most `open` at once; a data stage moves the words, one a
  // cycle, those of a burst `first` cycles after it was asked for at the earliest; the last word is followed by
  // `answer`.
  int64_t transfer(Queue& q, size_t i) const {
    const Costs& c = cost(i);
    const HwTransferCost& t = *c.transfer;
    const int64_t bursts = c.bursts.run(program_[i].fields).value_or(0);
    const int64_t words = std::max<int64_t>(c.words.run(program_[i].fields).value_or(0), 0);
    int64_t moved = 0;
    q.asked = now_;
    q.data = std::max(q.data, now_);
    for (int64_t b = 0; b < bursts; ++b) {
      q.asked = std::max(q.asked + t.gap, q.bursts.oldest() + 2);
      const int64_t to = words / bursts * (b + 1) + std::min(b + 1, words % bursts);
      q.data = std::max(q.data + 1, q.asked + t.first) + (to - moved) - 1;
      moved = to;
      q.bursts.push(q.data + t.answer);
    }
    q.data += words - moved;
    q.free = q.asked + 1;
    return q.data + t.answer;
  }

  // The next cycle before `limit` in which some instruction begins to use its ports.
  int64_t next_change(int64_t limit) const {
    int64_t at = limit;
    for (const Queue& q : queues_)
      for (const Running& r : q.running)
        if (r.from > now_) at = std::min(at, r.from);
    return at;
  }

  // Work of queues that yield, since the last event, and when it will be done if nothing changes.
  void settle() {
    for (Queue& q : queues_) {
      if (q.shared == 0 || q.running.empty()) continue;
      if (cost(q.running.front().index).transfer) continue;  // it waits for the bus, hardly ever for a port
      Running& r = q.running.front();
      const int64_t passed = now_ - std::max(settled_, out_[r.index].start);
      const int64_t stepping = q.blocked ? (r.steps > 0 ? passed : 0) : std::min(passed, r.steps);
      if (!q.blocked) r.steps -= stepping;
      r.rest = std::max<int64_t>(0, r.rest - (passed - stepping));
      q.blocked = false;
      for (const Queue& other : queues_)
        for (const Running& o : other.running)
          q.blocked = q.blocked || (&other != &q && o.from <= now_ && (o.ports & r.ports & q.shared) != 0);
      r.retire = q.blocked && r.steps > 0 ? kNever - 1 : now_ + r.steps + r.rest;
      q.free = r.retire + 1;
    }
    settled_ = now_;
  }

  const HwDescription& hw_;
  std::span<const Instruction> program_;
  const HwIssueCost& issue_;
  std::vector<Costs> costs_;
  std::vector<Queue> queues_;
  std::vector<std::deque<int64_t>> tokens_;  // per semaphore: when its signals were given
  std::vector<int64_t> here_, taken_;        // per instruction: when it was fetched and dispatched
  uint64_t external_reads_ = 0;              // ports
  std::vector<InstructionTime> out_;
  size_t next_ = 0, fetched_ = 0;  // to be dispatched, to be asked for
  int64_t asked_ = 0, last_taken_ = 0, last_ = 0;
  int64_t now_ = 0, settled_ = 0;
};

}  // namespace

std::vector<InstructionTime> predict_times(const HwDescription& hw, std::span<const Instruction> program) {
  return Replay(hw, program).run();
}

}  // namespace dlc
