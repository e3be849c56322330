// The choice of tiles: sizes of the loops that every instruction of the chain walks, and the order of the tiles.
//
// A tiling fits when all that its instructions hold at once fits the memories, twice where possible, so that the next
// tile loads while this one is computed. Its cost is the work of the busiest queue plus one tile of everything else.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/map/emit.h"
#include "dlc/base/checked.h"

namespace dlc::map {

namespace {

struct Shortage {
  const HwState* memory = nullptr;
  std::vector<std::pair<std::string, int64_t>> held;  // by what
  int64_t bytes = 0, over = 0;
};

class Tiler {
 public:
  Tiler(const Machine& machine, const Chain& chain) : machine_(machine), chain_(chain), t_(*chain.target) {}

  Result<Tiling> run(const Loc& where) {
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
      const bool by_all = std::ranges::all_of(
          chain_.plans, [&](const Plan& p) { return (t_.loops[l].reduction && !p.uses[l]) || is_assigned(p, l); });
      start.tile.push_back(by_all ? t_.loops[l].extent : 1);
    }
    for (const std::vector<size_t>& o : orders) {
      start.order = o;
      search(start);
    }
    if (best_) return std::move(*best_);
    if (shortage_.memory != nullptr) return too_small(where);
    return fail({machine_.hw->file, unsaid_ != nullptr ? unsaid_->line : 0, 0, where.node},
                "does not fit: not even its smallest tile can be said by an instruction: " + why_);
  }

 private:
  std::unexpected<Error> too_small(const Loc& where) const {
    const HwState& m = *shortage_.memory;
    std::string held;
    for (const auto& [what, bytes] : shortage_.held)
      held += fmt::format("{}{} {}", held.empty() ? "" : ", ", what, bytes);
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

  static bool mentions(const Operand& o, const std::string& var) {
    return std::ranges::any_of(o.index, [&](const Expr& e) { return e.mentions(var); });
  }
  bool depends(const std::vector<Operand>& reads, size_t l) const {
    for (const Operand& o : reads)
      if (o.kind == OperandKind::data) return mentions(o, t_.loops[l].var);
    return true;
  }

  static std::vector<int64_t> sizes(int64_t n) {
    std::vector<int64_t> out;
    for (const int64_t parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024})
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
    const bool had = best_.has_value();  // in another order of the tiles
    outer(start, free, 0);
    Tiling base = start;
    for (const size_t l : sums)
      for (const int64_t size : sizes(t_.loops[l].extent)) {
        if (had || best_) return;
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
    std::map<int, int64_t> busy, once;  // per queue
    std::map<int, std::vector<std::pair<std::string, int64_t>>> held;
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
      const int queue = p.pattern->what->queue;
      const int64_t cycles = instruction_cycles(*machine_.hw, s->instruction).value_or(1);
      busy[queue] += cycles * tiles * parts;
      once[queue] += cycles;
      for (size_t i = 0; i < p.reads.size(); ++i) {
        const Operand& o = p.reads[i];
        if (o.kind == OperandKind::temp) continue;
        hold(held, o.space, name_of(o, *p.pattern), s->reads[i].bytes);
        copies(t, o, s->reads[i].bytes, parts, busy, once);
      }
      hold(held, p.store.space,
           p.store.kind == OperandKind::data ? name_of(p.store, *p.pattern) : "what " + p.pattern->name + " leaves",
           s->store.bytes);
      if (p.store.kind == OperandKind::data) move_cost(p.store.space, false, s->store.bytes, tiles, busy, once);
    }
    bool twice = true;
    for (const auto& [state, list] : held) {
      const HwState& memory = machine_.hw->state[static_cast<size_t>(state)];
      int64_t sum = 0;
      for (const auto& [what, bytes] : list) sum += bytes;
      t.bytes[state] = sum;
      const int64_t capacity = memory.words * memory.word_bytes();
      twice &= sum * 2 <= capacity;
      if (sum <= capacity) continue;
      if (shortage_.memory == nullptr || sum - capacity < shortage_.over)
        shortage_ = {&memory, list, sum, sum - capacity};
      return false;
    }
    int64_t most = 0, sum = 0, all = 0;
    for (const auto& [queue, cycles] : busy) {
      most = std::max(most, cycles);
      all += cycles;
    }
    for (const auto& [queue, cycles] : once) sum += cycles;
    // Without room for two tiles nothing overlaps.
    t.cycles = twice ? most + sum : all;
    if (!best_ || t.cycles < best_->cycles) best_ = t;
    return true;
  }

  void hold(std::map<int, std::vector<std::pair<std::string, int64_t>>>& held, int space, const std::string& what,
            int64_t bytes) const {
    const int state = machine_.hw->spaces[static_cast<size_t>(space)].state;
    const int64_t word = machine_.hw->state[static_cast<size_t>(state)].elem.bytes();
    held[state].emplace_back(what, ceil_div(bytes, word) * word);
  }

  // How often an operand is loaded: once for each part of it where all parts fit together, otherwise whenever the
  // tiles come to another part.
  void copies(const Tiling& t, const Operand& o, int64_t bytes, int64_t parts, std::map<int, int64_t>& busy,
              std::map<int, int64_t>& once) const {
    int64_t distinct = 1, walked = 1, changes = 1;
    for (const size_t l : t.order) {
      const int64_t n = ceil_div(t_.loops[l].extent, t.tile[l]);
      walked *= n;
      if (!mentions(o, t_.loops[l].var)) continue;
      distinct *= n;
      if (n > 1) changes = walked;
    }
    const bool sums =
        std::ranges::any_of(t_.loops, [&](const TargetLoop& l) { return l.reduction && mentions(o, l.var); });
    if (sums && parts > 1) {
      distinct *= parts;
      changes = walked * parts;
    }
    const HwState& memory = machine_.hw->state_of(o.space);
    const bool all_fit = distinct * bytes * 2 <= memory.words * memory.word_bytes();
    move_cost(o.space, true, bytes, all_fit ? distinct : changes, busy, once);
  }

  void move_cost(int space, bool load, int64_t bytes, int64_t times, std::map<int, int64_t>& busy,
                 std::map<int, int64_t>& once) const {
    const Mover* m = machine_.mover(space, load);
    if (m == nullptr) return;
    Copy c;
    c.load = load;
    c.space = space;
    c.segment = segment(*m);
    c.dims.push_back({std::max<int64_t>(bytes / m->lanes, 1), m->lanes, 0, -1});
    std::vector<Instruction> program;
    if (!emit_copy(machine_, c, program)) return;
    int64_t cycles = 0;
    for (const Instruction& i : program) cycles += instruction_cycles(*machine_.hw, i).value_or(1);
    busy[m->pattern.what->queue] += cycles * times;
    once[m->pattern.what->queue] += cycles;
  }

  static int segment(const Mover& m) {
    if (m.external_selector < 0) return -1;
    return m.pattern.what->fields[static_cast<size_t>(m.external_selector)].enumerators.front().space;
  }

  const Machine& machine_;
  const Chain& chain_;
  const Target& t_;
  std::optional<Tiling> best_;
  Shortage shortage_;
  const Pattern* unsaid_ = nullptr;  // could not say a tile, for the reason why_
  std::string why_;
};

}  // namespace

Result<Tiling> choose_tiling(const Machine& machine, const Chain& chain, const Loc& where) {
  return Tiler(machine, chain).run(where);
}

}  // namespace dlc::map
