// The search for a chain: patterns are tried on the whole value first; what a pattern leaves to others is searched the
// same way. Loops of the instruction are assigned to loops of the kernel by what depends on them, and the cheapest
// assignment by the machine's own `cycles` wins.
//
// Where no chain is found, the search is made again with results and operands in any memory: then the reason is the
// first condition that failed, or a memory that nothing is copied to or from, so that a neighbour must do its part.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "core/map/emit.h"
#include "core/map/ports.h"
#include "core/map/value.h"
#include "dlc/base/checked.h"
#include "dlc/kernel/access.h"

namespace dlc::map {

namespace {

constexpr int kMostAssignments = 400;
constexpr int kMostDepth = 4;
constexpr std::array<int64_t, 6> kExtents{int64_t{1} << 40, 64, 16, 4, 2, 1};  // of a loop, tried in this order
constexpr std::string_view kOperand = "an operand", kResult = "its result";

class ChainMaker {
 public:
  // `apart`: what comes in and goes out may stay in on-chip memories.
  ChainMaker(const Machine& machine, std::shared_ptr<const Target> target, bool apart)
      : machine_(machine), target_(std::move(target)), ranges_(target_->kernel, target_->ranges), apart_(apart) {
    chain_.target = target_;
    chain_.layouts = layouts_of(*target_, machine.lanes);
  }

  std::optional<Chain> run() {
    if (!element_types()) return std::nullopt;
    auto plans = cover(target_->value, -1, 0);
    if (!plans) return std::nullopt;
    chain_.plans = std::move(*plans);
    return std::move(chain_);
  }

  // Only what `like` does is tried.
  void follow(const std::vector<Plan>& like) { like_ = &like; }

  // When there is no chain.
  Refusal refusal() const { return refused("no instruction", nearest_, why_); }

  // When this chain is one of instructions, but not one that begins and ends in external memory.
  Refusal stays_on_chip(const Chain& chain) const {
    const auto name = [&](int space) { return machine_.hw->spaces[static_cast<size_t>(space)].name; };
    for (const Plan& p : chain.plans)
      for (const Operand& o : p.reads)
        if (o.kind == OperandKind::data && machine_.mover(o.space, true) == nullptr)
          return refused(kNeedsProducer, p.pattern,
                         fmt::format("it reads its operand from memory {}, which no instruction loads", name(o.space)));
    const Plan& last = chain.plans.back();
    return refused(
        kNeedsReader, last.pattern,
        fmt::format("it leaves its result in memory {}, which no instruction stores", name(last.store.space)));
  }

 private:
  using Plans = std::vector<Plan>;

  static Refusal refused(std::string_view rule, const Pattern* nearest, const std::string& why) {
    Refusal r{.rule = std::string(rule), .why = "no instruction computes this"};
    if (nearest == nullptr) return r;
    r.why += fmt::format("; nearest is {}: {}", nearest->name, why);
    r.yaml_line = nearest->line;
    return r;
  }

  bool loads(int space) const { return apart_ || machine_.mover(space, true) != nullptr; }
  bool stores(int space) const { return apart_ || machine_.mover(space, false) != nullptr; }

  // What goes in and out must be of types that some instruction reads and stores.
  bool element_types() {
    std::set<std::string> in, out;
    const Pattern *load = nullptr, *store = nullptr;
    for (const Mover& m : machine_.movers) (m.load ? load : store) = &m.pattern;
    for (const Pattern& p : machine_.compute) {
      for (const int t : p.reads)
        if (loads(p.spaces[static_cast<size_t>(t)]))
          in.insert(to_string(p.kernel.tensors[static_cast<size_t>(t)].dtype));
      const auto to = static_cast<size_t>(p.stmt().tensor);
      if (stores(p.spaces[to])) out.insert(to_string(p.kernel.tensors[to].dtype));
    }
    const auto check = [&](int tensor, std::string_view role, const std::set<std::string>& types, const Pattern* by) {
      const std::string type = to_string(target_->kernel.tensors[static_cast<size_t>(tensor)].dtype);
      if (types.contains(type)) return true;
      nearest_ = by;
      why_ = fmt::format("{} is {}, and instructions {} {}", role, type, role == kResult ? "give" : "take",
                         fmt::join(types, ", "));
      return false;
    };
    bool ok = true;
    walk(target_->value, [&](const ValNode& n) {
      if (n.kind == ValKind::read && ok) ok = check(n.tensor, kOperand, in, load);
    });
    return ok && check(target_->output, kResult, out, store);
  }

  void blame(int depth, const Pattern& p, const std::function<std::string()>& why, size_t weight = 0) {
    const size_t rank = static_cast<size_t>(depth) * 100 + weight;
    if (!apart_) return;
    if (nearest_ != nullptr && rank <= why_rank_) return;
    nearest_ = &p;
    why_ = why();
    why_rank_ = rank;
  }

  // Cycles of all, and once more those of an instruction that gets its operand only while another stands still.
  int64_t total(const Plans& plans) const {
    int64_t sum = 0;
    for (const Plan& p : plans) sum += waits(p, plans) ? 2 * p.cost : p.cost;
    return sum;
  }
  bool waits(const Plan& p, const Plans& plans) const {
    for (const Operand& mine : p.reads)
      for (const Plan& other : plans)
        for (const Operand& theirs : other.reads)
          if (mine.space == theirs.space &&
              yields(*machine_.hw, mine.space, p.pattern->what->queue, other.pattern->what->queue))
            return true;
    return false;
  }

  // The plans that leave `v` in memory `space` (-1: in the result's buffer), the last of them the one that does.
  std::optional<Plans> cover(const Val& v, int space, int depth) {
    if (depth > kMostDepth) return std::nullopt;
    std::optional<Plans> best;
    for (const Pattern& p : machine_.compute) {
      const auto is_this = [&](const Plan& other) { return other.pattern == &p; };
      if (like_ != nullptr && std::ranges::none_of(*like_, is_this)) continue;
      const int tensor = p.stmt().tensor, to = p.spaces[static_cast<size_t>(tensor)];
      const DType element = p.kernel.tensors[static_cast<size_t>(tensor)].dtype;
      if (space >= 0 ? to != space : !stores(to)) continue;
      const DType wanted = target_->kernel.tensors[static_cast<size_t>(target_->output)].dtype;
      if (space < 0 && (element.bytes() != wanted.bytes() || !fits(ranges_.of(v), wanted))) {
        blame(depth, p,
              [&] { return fmt::format("it gives {}, {} is wanted", to_string(element), to_string(wanted)); });
        continue;
      }
      UnifyResult u = unify(p, v, target_->kernel, ranges_, apart_);
      if (u.found.empty() && u.why) blame(depth, p, u.why, std::min<size_t>(u.depth, 40));
      for (Unified& found : u.found) {
        auto plans = complete(p, std::move(found), v, space, depth);
        if (plans && (!best || total(*plans) < total(*best))) best = std::move(plans);
      }
    }
    return best;
  }

  std::optional<Plans> complete(const Pattern& p, Unified found, const Val& v, int space, int depth) {
    Plans plans;
    Plan plan(p);
    plan.fields = found.fields;
    plan.guards = found.guards;
    plan.value = v;
    for (const Reading& r : found.reads) {
      auto o = operand(p, r, plans, depth);
      if (!o) return std::nullopt;
      plan.reads.push_back(std::move(*o));
    }
    plan.store.kind = space < 0 ? OperandKind::data : OperandKind::temp;
    plan.store.space = p.spaces[static_cast<size_t>(p.stmt().tensor)];
    plan.store.address = p.store();
    plan.store.element = p.kernel.tensors[static_cast<size_t>(p.stmt().tensor)].dtype;
    if (!plan.store.address.base.valid() || shares_fields(plan)) return std::nullopt;
    if (space < 0) {
      plan.store.tensor = target_->output;
      plan.store.set_index(*target_, target_->output_index);
    }
    accumulating(plan, v);
    std::vector<bool> mine(target_->loops.size(), false);
    // What is the same for all of a loop is made once; only vectors are made whole.
    const auto symbols = free_symbols(v);
    for (size_t l = 0; l < mine.size(); ++l) {
      const TargetLoop& loop = target_->loops[l];
      mine[l] = !loop.reduction && (space < 0 || loop.lane || symbols.contains(loop.var));
    }
    for (const auto& [pattern, reduce] : found.reductions)
      for (const Loop& loop : reduce->loops)
        for (size_t l = 0; l < mine.size(); ++l) mine[l] = mine[l] || target_->loops[l].var == loop.var;
    plan.uses = mine;
    if (!assign(plan, plans, depth)) return std::nullopt;
    plans.push_back(std::move(plan));
    return plans;
  }

  // One field would have to point at two things that are loaded apart; constants lie side by side.
  static bool shares_fields(const Plan& plan) {
    for (const Operand& a : plan.reads)
      for (const Operand& b : plan.reads) {
        if (&a == &b || (a.kind == OperandKind::constant && b.kind == OperandKind::constant)) continue;
        for (const std::string& field : a.address.base.symbols())
          if (b.address.base.mentions(field)) return true;
      }
    return false;
  }

  static std::vector<Expr> index_of(const Val& read) {
    std::vector<Expr> out;
    for (const Val& a : read->args) out.push_back(val::as_expr(a).value_or(Expr::symbol("data")));
    return out;
  }

  std::optional<Operand> operand(const Pattern& p, const Reading& r, Plans& plans, int depth) {
    Operand o;
    o.space = p.spaces[static_cast<size_t>(r.pattern->tensor)];
    o.element = p.kernel.tensors[static_cast<size_t>(r.pattern->tensor)].dtype;
    o.address = p.address(r.pattern->tensor, r.pattern->args);
    o.walks.assign(target_->loops.size(), false);
    if (!o.address.base.valid() || o.space < 0) return std::nullopt;
    const bool is_read = r.target->kind == ValKind::read;
    const bool looks_up = is_read && std::ranges::any_of(r.target->args, [](const Val& a) { return !val::as_expr(a); });
    const bool is_constant = is_read && target_->constants.contains(r.target->tensor) && (o.address.data || !looks_up);
    if (r.target->kind == ValKind::integer || is_constant) {
      o.kind = OperandKind::constant;
      if (machine_.mover(o.space, true) == nullptr) return std::nullopt;
      if (!is_constant) {
        o.literal = r.target->integer;
        return o;
      }
      o.tensor = r.target->tensor;
      o.set_index(*target_, index_of(r.target));
      return o;
    }
    if (is_read && !looks_up) {
      const KernelTensor& t = target_->kernel.tensors[static_cast<size_t>(r.target->tensor)];
      o.tensor = r.target->tensor;
      o.set_index(*target_, index_of(r.target));
      if (!loads(o.space)) return std::nullopt;
      if (t.dtype != o.element) {
        blame(
            depth, p,
            [&] { return fmt::format("an operand is {}, it reads {}", to_string(t.dtype), to_string(o.element)); }, 50);
        return std::nullopt;
      }
      return o;
    }
    // What is kept between instructions has the loops of the result; partial sums are not kept.
    const auto symbols = free_symbols(r.target);
    for (size_t l = 0; l < target_->loops.size(); ++l) {
      o.walks[l] = symbols.contains(target_->loops[l].var);
      if (o.walks[l] && target_->loops[l].reduction) return std::nullopt;
    }
    const auto key = std::pair(r.target.get(), o.space);
    auto known = covers_.find(key);
    if (known == covers_.end()) known = covers_.emplace(key, cover(r.target, o.space, depth + 1)).first;
    const std::optional<Plans>& sub = known->second;
    if (!sub) return std::nullopt;
    std::vector<int> at;  // of the plans of `sub`: another operand may have asked for one already
    for (const Plan& plan : *sub) {
      const auto same = [&](const Plan& p) { return p.value == plan.value && p.store.space == plan.store.space; };
      at.push_back(static_cast<int>(std::ranges::find_if(plans, same) - plans.begin()));
      if (at.back() < std::ssize(plans)) continue;
      plans.push_back(plan);
      for (Operand& inner : plans.back().reads)
        if (inner.temp >= 0) inner.temp = at[static_cast<size_t>(inner.temp)];
    }
    o.kind = OperandKind::temp;
    o.temp = at.back();
    return o;
  }

  // Whether the instruction can add its sum to what is there.
  void accumulating(Plan& plan, const Val& v) {
    if (v->kind != ValKind::reduce || v->reduce_op() != ReduceOp::sum) return;
    const auto key = std::pair(plan.pattern, v.get());
    auto known = sums_.find(key);
    if (known == sums_.end()) known = sums_.emplace(key, sums(plan, v)).first;
    for (const Sum& s : known->second)
      if (s.reads == plan.reads.size() + 1) {
        plan.accumulate = s.fields;
        return;
      }
  }

  // The instruction adding `v` to what lies where it stores.
  struct Sum {
    FieldSolver fields;
    size_t reads = 0;  // and one of them is what lies there
  };
  std::vector<Sum> sums(const Plan& plan, const Val& v) const {
    std::vector<Sum> out;
    Kernel k = target_->kernel;
    k.tensors.push_back({"sum.so.far", plan.store.element, {}, Role::temp, {}});
    const Val before = val::read(static_cast<int>(k.tensors.size()) - 1, plan.store.element, {});
    ValueRanges ranges(k, target_->ranges);
    const Val more = canonical(val::cast(plan.store.element, val::binary(BinaryOp::add, before, v)), ranges);
    for (const Val& value : {val::binary(BinaryOp::add, before, v), more})
      for (const Unified& u : unify(*plan.pattern, value, k, ranges, false).found)
        for (const Reading& r : u.reads) {
          if (!val::structurally_equal(r.target, before)) continue;
          const Address a = plan.pattern->address(r.pattern->tensor, r.pattern->args);
          if (a.base == plan.store.address.base && a.coefficients == plan.store.address.coefficients)
            out.push_back({u.fields, u.reads.size()});
        }
    return out;
  }

  // ---- loops

  bool may_assign(const Plan& plan, size_t u, size_t v) const {
    const bool reduces = u >= plan.pattern->outer;
    if (reduces != target_->loops[v].reduction || !plan.uses[v]) return false;
    for (const Operand& o : plan.reads)
      if (o.walks[v] && o.address.coefficients[u].is(0)) return false;
    const auto n = plan.pattern->loops[u].extent.constant();
    if (n && (*n != target_->loops[v].extent || !target_->loops[v].lane)) return false;
    return reduces || !plan.store.address.coefficients[u].is(0);
  }

  struct Search {
    Plan* plan = nullptr;
    const Plans* plans = nullptr;
    std::vector<size_t> order;
    std::optional<std::vector<int>> best;
    int64_t cost = 0;
    int left = kMostAssignments;
    bool maximal = true;
    // Of the best assignment that failed: how many lanes of the instruction had a loop, and what stood in the way then.
    size_t reached = 0;
    std::string why;

    void failed(size_t at, std::string reason) {
      if (!why.empty() && at <= reached) return;
      reached = at;
      why = std::move(reason);
    }
  };

  // The loops that it had there.
  bool assign_like(Search& s) {
    for (const Plan& other : *like_) {
      if (other.pattern != s.plan->pattern) continue;
      s.plan->assign = other.assign;
      bool may = true;
      for (size_t u = 0; u < other.assign.size() && may; ++u)
        may = other.assign[u] < 0 || may_assign(*s.plan, u, static_cast<size_t>(other.assign[u]));
      if (may) consider(s);
    }
    return s.best.has_value();
  }

  bool assign(Plan& plan, const Plans& plans, int depth) {
    Search s{&plan, &plans, {}, {}, 0, kMostAssignments, true, 0, {}};
    for (const bool lanes : {true, false})
      for (size_t u = 0; u < plan.pattern->loops.size(); ++u)
        if (plan.pattern->loops[u].extent.constant().has_value() == lanes) s.order.push_back(u);
    plan.assign.assign(plan.pattern->loops.size(), -1);
    std::vector<bool> used(target_->loops.size(), false);
    if (like_ != nullptr && !assign_like(s)) return false;
    for (const bool maximal : {true, false}) {
      if (s.best) break;
      s.maximal = maximal;
      s.left = kMostAssignments;
      step(s, 0, used);
    }
    if (!s.best) {
      if (!s.why.empty()) blame(depth, *plan.pattern, [&] { return s.why; }, 60 + s.reached);
      return false;
    }
    plan.assign = *s.best;
    plan.cost = s.cost;
    return true;
  }

  bool could_take_more(const Search& s, const std::vector<bool>& used) const {
    for (const size_t u : s.order)
      for (size_t v = 0; v < used.size(); ++v)
        if (s.plan->assign[u] < 0 && !used[v] && may_assign(*s.plan, u, v)) return true;
    return false;
  }

  void step(Search& s, size_t at, std::vector<bool>& used) {
    if (s.left <= 0) return;
    Plan& plan = *s.plan;
    if (at == s.order.size()) {
      if (s.maximal && could_take_more(s, used)) return;
      --s.left;
      return consider(s);
    }
    const size_t u = s.order[at];
    const Loop& loop = plan.pattern->loops[u];
    const bool lane = loop.extent.constant().value_or(1) > 1;
    bool any = false;
    for (size_t v = 0; v < used.size(); ++v) {
      if (used[v] || !may_assign(plan, u, v)) continue;
      any = true;
      used[v] = true;
      plan.assign[u] = static_cast<int>(v);
      step(s, at + 1, used);
      plan.assign[u] = -1;
      used[v] = false;
    }
    if (!any && lane)
      s.failed(at, fmt::format("it needs a loop of {} in all operands that its loop {} walks; there is none",
                               to_string(loop.extent), loop.var));
    if (!lane) step(s, at + 1, used);
  }

  // Vectors are walked whole: every lane loop that an operand or the result has.
  bool lanes_covered(const Plan& plan) const {
    for (size_t v = 0; v < target_->loops.size(); ++v)
      if (target_->loops[v].lane && plan.uses[v] &&
          std::ranges::find(plan.assign, static_cast<int>(v)) == plan.assign.end())
        return false;
    return true;
  }

  void consider(Search& s) {
    Plan& plan = *s.plan;
    const auto lanes = static_cast<size_t>(
        std::ranges::count_if(plan.pattern->loops, [](const Loop& l) { return l.extent.constant().value_or(1) > 1; }));
    if (!lanes_covered(plan)) return s.failed(lanes, "it does not walk the channels of an operand together");
    for (size_t v = 0; v < target_->loops.size(); ++v) {
      const bool assigned = std::ranges::find(plan.assign, static_cast<int>(v)) != plan.assign.end();
      if (target_->loops[v].reduction && plan.uses[v] && !assigned && !plan.accumulate)
        return s.failed(lanes + 10, fmt::format("it has no loop for {}", target_->loops[v].var));
    }
    // As much as the instruction takes at once; only its fields limit that here, memories do when tiles are chosen.
    // What an instruction before it does point by point is a point for it too.
    const auto by_point = [&](size_t v) {
      return !target_->loops[v].reduction &&
             std::ranges::any_of(*s.plans, [&](const Plan& p) { return p.uses[v] && !is_assigned(p, v); });
    };
    for (const int64_t most : kExtents) {
      Box box{std::vector<int64_t>(target_->loops.size(), 0), {}};
      int64_t times = 1;
      for (size_t v = 0; v < target_->loops.size(); ++v) {
        const bool assigned = std::ranges::find(plan.assign, static_cast<int>(v)) != plan.assign.end();
        const bool lane = target_->loops[v].lane;
        const int64_t n = target_->loops[v].extent;
        box.extent.push_back(!assigned || by_point(v) ? 1 : lane ? n : std::min(n, most));
        if (plan.uses[v]) times *= ceil_div(n, box.extent.back());
      }
      std::vector<int64_t> base;
      for (const Operand& o : plan.reads) base.push_back(constant_part(o.address.base));
      base.push_back(constant_part(plan.store.address.base));
      chain_.plans.clear();
      std::vector<Placement> temps = probe_temps(*s.plans, box);
      std::string why;
      const auto solved = solve(machine_, chain_, plan, box, base, temps, false, &why);
      if (!solved) {
        s.failed(lanes + 11, why);
        continue;
      }
      const int64_t cost = times * instruction_cycles(*machine_.hw, solved->instruction).value_or(1);
      if (!s.best || cost < s.cost) {
        s.best = plan.assign;
        s.cost = cost;
      }
      return;
    }
  }

  // Results of the plans before, as they would lie for this box.
  std::vector<Placement> probe_temps(const Plans& plans, const Box& box) const {
    std::vector<Placement> temps;
    for (const Plan& p : plans) {
      std::vector<int64_t> base;
      for (const Operand& o : p.reads) base.push_back(constant_part(o.address.base));
      base.push_back(constant_part(p.store.address.base));
      std::optional<Solved> solved;
      for (const int64_t most : kExtents) {  // as much of its sums as it takes at once: they do not move the result
        Box inner = box;
        for (size_t v = 0; v < target_->loops.size(); ++v) {
          const TargetLoop& l = target_->loops[v];
          const bool assigned = std::ranges::find(p.assign, static_cast<int>(v)) != p.assign.end();
          if (l.reduction) inner.extent[v] = !assigned ? 1 : l.lane ? l.extent : std::min(l.extent, most);
        }
        solved = solve(machine_, chain_, p, inner, base, temps, false, nullptr);
        if (solved) break;
      }
      temps.push_back(solved ? solved->store : Placement{std::vector<int64_t>(target_->loops.size(), 0), 0});
    }
    return temps;
  }

  const Machine& machine_;
  std::shared_ptr<const Target> target_;
  ValueRanges ranges_;
  bool apart_ = false;
  const std::vector<Plan>* like_ = nullptr;
  Chain chain_;                                                            // without plans: for solve()
  std::map<std::pair<const ValNode*, int>, std::optional<Plans>> covers_;  // by value and memory
  std::map<std::pair<const Pattern*, const ValNode*>, std::vector<Sum>> sums_;
  const Pattern* nearest_ = nullptr;  // the first condition of it that failed is why_
  std::string why_;
  size_t why_rank_ = 0;
};

}  // namespace

std::optional<Chain> make_chain(const Machine& machine, std::shared_ptr<const Target> target) {
  return ChainMaker(machine, std::move(target), false).run();
}

std::optional<Chain> make_chain_like(const Machine& machine, std::shared_ptr<const Target> target,
                                     const std::vector<Plan>& like) {
  ChainMaker maker(machine, std::move(target), false);
  maker.follow(like);
  return maker.run();
}

Refusal why_no_chain(const Machine& machine, const std::shared_ptr<const Target>& target) {
  ChainMaker maker(machine, target, true);
  const auto chain = maker.run();
  return chain ? maker.stays_on_chip(*chain) : maker.refusal();
}

}  // namespace dlc::map
