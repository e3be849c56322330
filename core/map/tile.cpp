// The choice of tiles: sizes of the loops that every instruction of the chain walks, and the order of the tiles.
//
// A tiling fits when all that its instructions hold at once fits the memories; what changes from tile to tile twice
// where possible, so that the next tile loads while this one is computed. Its cost is the work of the busiest queue,
// one tile of everything else, and a price for each instruction: of two tilings that are as fast, the one whose stream
// is shorter.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/map/emit.h"
#include "dlc/base/checked.h"

namespace dlc::map {

namespace {

// A part of the cycles that a short stream is worth. Cycles / instructions of whole networks at 16x16, by this part:
//
//                   1/10              1/20              1/40              1/100            none
//   resnet8        61,858 / 210      61,095 / 256      59,976 / 337      59,974 / 406      60,481 / 542
//   kws            41,751 / 199      41,054 / 259      41,381 / 407      41,231 / 459      41,231 / 459
//   vww            88,062 / 1,058    87,482 / 1,158    87,402 / 1,242    87,398 / 1,383    87,569 / 1,615
//   mobilenet_v2  1,924,865 / 5,641 1,910,290 / 6,303 1,900,119 / 7,309 1,902,637 / 8,494 1,900,986 / 11,039
//
// Beyond 1/40 longer streams gain no more than 0.4 % of the cycles; before it shorter ones cost up to 3 %.
constexpr int64_t kSlower = 40;

// What all tiles take of each queue, what one takes, and how many instructions the stream has.
struct Work {
  std::map<int, int64_t> busy, once;
  int64_t instructions = 0;

  void add(int queue, int64_t cycles, int64_t times, int64_t instructions_each) {
    busy[queue] += cycles * times;
    once[queue] += cycles;
    instructions += instructions_each * times;
  }
  int busiest() const {
    return std::ranges::max_element(busy, {}, [](const auto& b) { return b.second; })->first;
  }
  // Where tiles overlap the busiest queue never waits, once it has its first tile; otherwise they follow each other.
  int64_t cycles(bool overlap) const {
    int64_t all = 0, first = 0;
    const auto most = std::ranges::max_element(busy, {}, [](const auto& b) { return b.second; });
    for (const auto& [queue, cycles] : busy) all += cycles;
    for (const auto& [queue, cycles] : once) first += most->first == queue ? 0 : cycles;
    return overlap ? most->second + first : all;
  }
};

struct Held {
  std::string what;
  int64_t bytes = 0;
  bool changes = true;  // another tile has another one
};

struct Shortage {
  const HwState* memory = nullptr;
  std::vector<Held> held;
  int64_t bytes = 0, over = 0;
};

class Tiler {
 public:
  Tiler(const Machine& machine, const Chain& chain)
      : machine_(machine), chain_(chain), t_(*chain.target), copier_(machine) {}

  Result<Tiling> run(const Loc& where, bool& short_of_memory) {
    std::vector<size_t> order;
    for (size_t l = 0; l < t_.loops.size(); ++l)
      if (!t_.loops[l].reduction) order.push_back(l);
    std::vector<std::vector<size_t>> orders{order};
    // What the first operand does not depend on may go inside: the operand then stays.
    std::vector<size_t> inside = order;
    std::ranges::stable_partition(inside, [&](size_t l) { return depends(chain_.plans[0].reads, l); });
    if (inside != order) orders.push_back(inside);
    Tiling start;
    for (size_t l = 0; l < t_.loops.size(); ++l) {
      const bool by_all =
          std::ranges::all_of(chain_.plans, [&](const Plan& p) { return !p.uses[l] || is_assigned(p, l); });
      start.tile.push_back(by_all ? t_.loops[l].extent : 1);
    }
    for (const std::vector<size_t>& o : orders) {
      start.order = o;
      search(start);
    }
    if (!found_.empty()) return shortest();
    short_of_memory = shortage_.memory != nullptr;
    if (short_of_memory) return too_small(where);
    return fail({machine_.hw->file, unsaid_ != nullptr ? unsaid_->line : 0, 0, where.node},
                "does not fit: not even its smallest tile can be said by an instruction: " + why_);
  }

 private:
  // Of the tilings that are about as fast as the fastest, the one with the shortest stream.
  Tiling shortest() const {
    const Found* best = nullptr;
    for (const Found& f : found_) {
      if (f.tiling.cycles > best_cycles_ + best_cycles_ / kSlower) continue;
      const auto rank = [](const Found& g) { return std::pair(g.instructions, g.tiling.cycles); };
      if (best == nullptr || rank(f) < rank(*best)) best = &f;
    }
    return best->tiling;
  }
  bool loads(int queue) const {
    return std::ranges::any_of(machine_.movers,
                               [&](const Mover& m) { return m.load && m.pattern.what->queue == queue; });
  }

  std::unexpected<Error> too_small(const Loc& where) const {
    const HwState& m = *shortage_.memory;
    std::string held;
    for (const Held& h : shortage_.held) held += fmt::format("{}{} {}", held.empty() ? "" : ", ", h.what, h.bytes);
    const int64_t words = ceil_div(shortage_.bytes, m.word_bytes());
    return fail({machine_.hw->file, m.loc.line, 0, where.node},
                fmt::format("does not fit: its smallest tile needs {} bytes of memory {}, which has {}, {} short ({})",
                            shortage_.bytes, m.name, shortage_.bytes - shortage_.over, shortage_.over, held),
                fmt::format("give {} at least {} words ({}:{})", m.name, words, machine_.hw->file, m.loc.line));
  }

  // "its constant c1: s8[8,8,3,3]"
  std::string name_of(const Operand& o, const Pattern& p) const {
    if (o.tensor < 0) return "the parameters of " + p.name;
    const KernelTensor& t = t_.kernel.tensors[static_cast<size_t>(o.tensor)];
    const char* role = o.kind == OperandKind::constant ? "constant" : t.role == Role::output ? "result" : "input";
    return fmt::format("its {} {}: {}", role, t.name, to_string(TensorType{t.dtype, t.shape}));
  }

  bool depends(const std::vector<Operand>& reads, size_t l) const {
    for (const Operand& o : reads)
      if (o.kind == OperandKind::data) return o.walks[l];
    return true;
  }

  static std::vector<int64_t> sizes(int64_t n) {
    std::vector<int64_t> out;
    for (const int64_t parts : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024})
      if (const int64_t s = ceil_div(n, parts); out.empty() || s < out.back()) out.push_back(s);
    if (out.back() != 1) out.push_back(1);
    return out;
  }

  bool lane(size_t l) const { return t_.loops[l].lane; }

  // Rows are divided first; then the inner loops, then sums, which cost a second pass over the accumulators.
  void search(const Tiling& start) {
    std::vector<size_t> free;
    for (const size_t l : start.order)
      if (start.tile[l] > 1 && !lane(l)) free.push_back(l);
    std::vector<size_t> sums;
    for (size_t l = 0; l < t_.loops.size(); ++l)
      if (t_.loops[l].reduction && start.tile[l] > 1 && !lane(l) && can_accumulate(l)) sums.push_back(l);
    const bool had = !found_.empty();  // in another order of the tiles
    outer(start, free, 0);
    // A loop that is never divided, such as one that an instruction has a condition on, must not hold up the others.
    for (size_t first = 1; first < free.size() && found_.empty(); ++first) {
      std::ranges::rotate(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(first),
                          free.begin() + static_cast<std::ptrdiff_t>(first) + 1);
      outer(start, free, 0);
    }
    Tiling base = start;
    for (const size_t l : sums)
      for (const int64_t size : sizes(t_.loops[l].extent)) {
        if (had || !found_.empty()) return;
        base.tile[l] = size;
        outer(base, free, 0);
      }
  }

  bool can_accumulate(size_t l) const {
    return std::ranges::all_of(chain_.plans, [&](const Plan& p) { return !p.uses[l] || p.accumulate.has_value(); });
  }

  // All sizes of the first free loop with the others whole; where none fits, smaller others.
  bool outer(const Tiling& base, const std::vector<size_t>& free, size_t at) {
    if (at == free.size()) return consider(base);
    bool any = false;
    for (const int64_t s : sizes(t_.loops[free[at]].extent)) {
      Tiling next = base;
      next.tile[free[at]] = s;
      bool fits = consider(next);
      if (!fits && s == 1) fits = outer(next, free, at + 1);
      any |= fits;
    }
    return any;
  }

  bool consider(Tiling t) {
    Box box{std::vector<int64_t>(t_.loops.size(), 0), {}};
    for (size_t l = 0; l < t_.loops.size(); ++l) box.extent.push_back(std::min(t.tile[l], t_.loops[l].extent));
    std::vector<Placement> temps;
    Work work;
    std::map<int, std::vector<Held>> held;
    int64_t tiles = 1;
    for (const size_t l : t.order) tiles *= ceil_div(t_.loops[l].extent, t.tile[l]);
    for (const Plan& p : chain_.plans) {
      Box inner = box;
      int64_t parts = 1;
      for (size_t l = 0; l < t_.loops.size(); ++l) {
        if (!t_.loops[l].reduction) continue;
        if (!p.uses[l])
          inner.extent[l] = 1;
        else
          parts *= ceil_div(t_.loops[l].extent, t.tile[l]);
      }
      std::vector<int64_t> base;
      for (const Operand& o : p.reads) base.push_back(constant_part(o.address.base));
      base.push_back(constant_part(p.store.address.base));
      std::string why;
      const auto s = solve(machine_, chain_, p, inner, base, temps, false, &why);
      if (!s) {
        if (unsaid_ == nullptr) why_ = why;
        if (unsaid_ == nullptr) unsaid_ = p.pattern;
        return false;
      }
      temps.push_back(s->store);
      const int64_t cycles = instruction_cycles(*machine_.hw, s->instruction).value_or(1);
      work.add(p.pattern->what->queue, cycles, tiles * parts, 1);
      std::map<int, std::pair<const Operand*, int64_t>> constants;  // those of one memory are loaded together
      for (size_t i = 0; i < p.reads.size(); ++i) {
        const Operand& o = p.reads[i];
        if (o.kind == OperandKind::temp) continue;
        hold(held, o.space, {name_of(o, *p.pattern), s->reads[i].bytes, distinct(t, o, parts) > 1});
        if (o.kind == OperandKind::data) copies(t, o, s->reads[i].bytes, parts, work);
        if (o.kind != OperandKind::constant) continue;
        auto& [first, bytes] = constants[o.space];
        if (first == nullptr || o.tensor >= 0) first = &o;
        bytes += s->reads[i].bytes;
      }
      for (const auto& [space, c] : constants) copies(t, *c.first, c.second, parts, work);
      if (in_place(chain_, static_cast<size_t>(&p - chain_.plans.data()), temps, s->store) < 0)
        hold(held, p.store.space,
             {p.store.kind == OperandKind::data ? name_of(p.store, *p.pattern) : "what " + p.pattern->name + " leaves",
              s->store.bytes, tiles > 1});
      if (p.store.kind == OperandKind::data) move_cost(p.store.space, false, s->store.bytes, tiles, work);
    }
    bool twice = true;
    for (const auto& [state, list] : held) {
      const HwState& memory = machine_.hw->state[static_cast<size_t>(state)];
      int64_t sum = 0, next = 0;
      for (const Held& h : list) {
        sum += h.bytes;
        next += h.changes ? h.bytes : 0;
      }
      t.bytes[state] = sum;
      const int64_t capacity = memory.words * memory.word_bytes();
      twice &= sum + next <= capacity;
      if (sum <= capacity) continue;
      if (shortage_.memory == nullptr || sum - capacity < shortage_.over)
        shortage_ = {&memory, list, sum, sum - capacity};
      return false;
    }
    t.cycles = work.cycles(twice);
    t.loads = loads(work.busiest());
    found_.push_back({t, work.instructions});
    best_cycles_ = std::min(best_cycles_, t.cycles);
    return true;
  }

  void hold(std::map<int, std::vector<Held>>& held, int space, Held h) const {
    const int state = machine_.hw->spaces[static_cast<size_t>(space)].state;
    const int64_t word = machine_.hw->state[static_cast<size_t>(state)].elem.bytes();
    h.bytes = ceil_div(h.bytes, word) * word;
    held[state].push_back(std::move(h));
  }

  bool is_summed(const Operand& o) const {
    for (size_t l = 0; l < t_.loops.size(); ++l)
      if (t_.loops[l].reduction && o.walks[l]) return true;
    return false;
  }
  // How many parts of an operand the tiles meet.
  int64_t distinct(const Tiling& t, const Operand& o, int64_t parts) const {
    int64_t n = is_summed(o) ? parts : 1;
    for (const size_t l : t.order)
      if (o.walks[l]) n *= ceil_div(t_.loops[l].extent, t.tile[l]);
    return n;
  }

  // How often an operand is loaded: once for each part of it where all parts fit together, otherwise whenever the
  // tiles come to another part.
  void copies(const Tiling& t, const Operand& o, int64_t bytes, int64_t parts, Work& work) {
    int64_t walked = 1, changes = 1;
    for (const size_t l : t.order) {
      const int64_t n = ceil_div(t_.loops[l].extent, t.tile[l]);
      walked *= n;
      if (n > 1 && o.walks[l]) changes = walked;
    }
    if (parts > 1 && is_summed(o)) changes = walked * parts;
    const HwState& memory = machine_.hw->state_of(o.space);
    const int64_t all = distinct(t, o, parts);
    const bool all_fit = all * bytes * (all > 1 ? 2 : 1) <= memory.words * memory.word_bytes();
    move_cost(o.space, true, bytes, all_fit ? all : changes, work);
  }

  void move_cost(int space, bool load, int64_t bytes, int64_t times, Work& work) {
    const Mover* m = machine_.mover(space, load);
    if (m == nullptr) return;
    Copy c;
    c.load = load;
    c.space = space;
    c.segment = segment(*m);
    c.dims.push_back({std::max<int64_t>(bytes / m->lanes, 1), m->lanes, 0, -1});
    std::vector<Instruction> program;
    if (!copier_.emit(c, program)) return;
    int64_t cycles = 0;
    for (const Instruction& i : program) cycles += instruction_cycles(*machine_.hw, i).value_or(1);
    work.add(m->pattern.what->queue, cycles, times, std::ssize(program));
  }

  static int segment(const Mover& m) {
    if (m.external_selector < 0) return -1;
    return m.pattern.what->fields[static_cast<size_t>(m.external_selector)].enumerators.front().space;
  }

  const Machine& machine_;
  const Chain& chain_;
  const Target& t_;
  Copier copier_;
  struct Found {
    Tiling tiling;
    int64_t instructions = 0;
  };
  std::vector<Found> found_;
  int64_t best_cycles_ = std::numeric_limits<int64_t>::max();
  Shortage shortage_;
  const Pattern* unsaid_ = nullptr;  // could not say a tile, for the reason why_
  std::string why_;
};

}  // namespace

Result<Tiling> choose_tiling(const Machine& machine, const Chain& chain, const Loc& where, bool& short_of_memory) {
  return Tiler(machine, chain).run(where, short_of_memory);
}

}  // namespace dlc::map
