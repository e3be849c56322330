#include "core/map/unify.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <functional>
#include <unordered_map>

#include "core/map/value.h"
#include "dlc/kernel/access.h"
#include "dlc/kernel/names.h"

namespace dlc::map {

namespace {

constexpr size_t kMostSolutions = 12;
constexpr size_t kMostSteps = 20000;
constexpr size_t kSmall = 30, kLargest = 50000;  // nodes of a part that is compared as a whole

bool commutes(BinaryOp op) {
  return op == BinaryOp::add || op == BinaryOp::mul || op == BinaryOp::bit_and || op == BinaryOp::bit_or ||
         op == BinaryOp::bit_xor || op == BinaryOp::eq || op == BinaryOp::ne;
}

// A callable that lives longer than the call it is given to.
class Next {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Next>)
  Next(const F& f)  // NOLINT(google-explicit-constructor): a lambda is what is passed
      : f_(&f), call_([](const void* g, const Unified& u) { return (*static_cast<const F*>(g))(u); }) {}
  bool operator()(const Unified& u) const { return call_(f_, u); }  // true: enough solutions

 private:
  const void* f_;
  bool (*call_)(const void*, const Unified&);
};

class Unifier {
 public:
  Unifier(const Pattern& p, const Val& root, const Kernel& k, const Ranges& ranges)
      : p_(p), root_(root), k_(k), ranges_(ranges) {}

  UnifyResult run() {
    match(p_.stmt().value, root_, Unified{p_.fields, {}, {}, {}, {}}, [&](Unified u) {
      if (!settle(u)) return give_up(u, [why = u.fields.why()] { return why; });
      out_.found.push_back(std::move(u));
      return out_.found.size() >= kMostSolutions;
    });
    std::ranges::stable_sort(out_.found, [](const Unified& a, const Unified& b) { return cost(a) < cost(b); });
    return std::move(out_);
  }

 private:
  static size_t cost(const Unified& u) {
    return static_cast<size_t>(std::ranges::count_if(u.reads,
                                                     [](const Reading& r) {
                                                       return r.target->kind != ValKind::read &&
                                                              r.target->kind != ValKind::integer;
                                                     })) *
               100 +
           u.reads.size();
  }

  // `why` makes the text, which is costly, if somebody asks for it.
  bool give_up(const Unified& u, std::function<std::string()> why) {
    const size_t depth = u.reads.size() + u.reductions.size();
    if (!out_.why || depth > out_.depth) {
      out_.depth = depth;
      out_.why = std::move(why);
    }
    return false;
  }
  static std::string text(const Val& v, const Kernel& k) {
    std::string s = print(v, k);
    return s.size() > 80 ? s.substr(0, 77) + "..." : s;
  }

  bool match(const Val& p, const Val& t, const Unified& u, const Next& next) {
    if (++steps_ > kMostSteps) return true;
    if (p_.is_scalar(p)) {
      if (t->kind != ValKind::integer)
        return give_up(u, [t, k = &k_] { return text(t, *k) + " stands where it has a number"; });
      if (p->kind == ValKind::integer) return p->integer == t->integer && next(u);
      Unified v = u;
      if (!v.fields.equal(p, t->integer)) return give_up(u, [why = v.fields.why()] { return why; });
      return next(v);
    }
    if (p->kind == ValKind::read) return match_read(p, t, u, next);
    if (const Val read = only_read(p); read && p->kind == t->kind) {
      const Val at = in_place_of(p, t);
      if (at && val::structurally_equal(put(p, at), t)) return match_read(read, at, u, next);
    }
    if (guards(p)) {
      Unified v = u;
      v.guards.push_back(p->args[0]);
      return match(p->args[1], t, v, next);
    }
    if (p->kind == ValKind::select && p_.is_scalar(p->args[0])) return choose(p, t, u, next);
    if (same_kind(p, t, u, next) || neutral(p, t, u, next)) return true;
    if (p->kind == ValKind::select) return branch(p, t, u, next);
    if (t->kind != ValKind::integer || p->kind != ValKind::binary) return false;
    Unified v = u;
    v.later.emplace_back(p, t->integer);
    return next(v);
  }

  // The read of a part that is a function of one read alone, without fields: nothing in it is open, however large it
  // is. nullptr for other parts, and for small ones.
  Val only_read(const Val& p) {
    const auto [it, fresh] = alone_.try_emplace(p.get());
    if (!fresh) return it->second;
    Val read;
    size_t nodes = 0;
    bool alone = true;
    const std::function<void(const Val&)> look = [&](const Val& v) {
      if (!alone || ++nodes > kLargest) return;
      if (v->kind == ValKind::reduce || v->kind == ValKind::index) {
        alone = false;
      } else if (v->kind == ValKind::read) {
        alone = !read || val::structurally_equal(read, v);
        read = v;
      } else {
        for (const Val& a : v->args) look(a);
      }
    };
    look(p);
    return alone_[p.get()] = alone && nodes > kSmall && nodes <= kLargest ? read : nullptr;
  }

  // What stands in t where p has the read, by one way to it; nullptr: the way differs.
  static Val in_place_of(const Val& p, const Val& t) {
    if (p->kind == ValKind::read) return t;
    if (p->kind != t->kind || p->args.size() != t->args.size()) return nullptr;
    for (size_t i = 0; i < p->args.size(); ++i) {
      if (is_scalar(p->args[i])) continue;
      return in_place_of(p->args[i], t->args[i]);
    }
    return nullptr;
  }

  Val put(const Val& p, const Val& at) const {
    const Val with = rewrite(p, [&](const Val& n) -> Val { return n->kind == ValKind::read ? at : nullptr; });
    return canonical(with, k_, ranges_);
  }

  // `max[l] (if l < n then x else lowest)`: the largest of n elements, where the condition is over loops.
  bool guards(const Val& p) const {
    if (p->kind != ValKind::select || !p_.is_scalar(p->args[0]) || p->args[1]->kind != ValKind::read ||
        p->args[2]->kind != ValKind::integer)
      return false;
    const auto symbols = free_symbols(p->args[0]);
    const bool loops = std::ranges::any_of(p_.loops, [&](const Loop& l) { return symbols.contains(l.var); });
    const Val& root = p_.stmt().value;
    const bool lowest = p->args[2]->integer == value_range(p->args[1], p_.kernel, p_.ranges).lo;
    return loops && lowest && root->kind == ValKind::reduce && root->reduce_op() == ReduceOp::max;
  }

  // A parameter that is a literal in the kernel decides the branch.
  bool branch(const Val& p, const Val& t, const Unified& u, const Next& next) {
    for (const bool holds : {true, false}) {
      Unified v = u;
      v.later.emplace_back(p->args[0], holds ? 1 : 0);
      if (match(p->args[holds ? 1 : 2], t, v, next)) return true;
    }
    return false;
  }

  // What was put off, with reads replaced by the literals they are bound to.
  static bool settle(Unified& u) {
    for (const auto& [value, number] : u.later) {
      const Val known = rewrite(value, [&](const Val& n) -> Val {
        if (n->kind != ValKind::read) return nullptr;
        for (const Reading& r : u.reads)
          if (val::structurally_equal(r.pattern, n)) return r.target->kind == ValKind::integer ? r.target : nullptr;
        return nullptr;
      });
      if (!is_scalar(known) || !u.fields.equal(known, number)) return false;
    }
    return true;
  }

  // A field decides the branch.
  bool choose(const Val& p, const Val& t, const Unified& u, const Next& next) {
    for (const bool holds : {true, false}) {
      Unified branch = u;
      if (branch.fields.equal(p->args[0], holds ? 1 : 0) && match(p->args[holds ? 1 : 2], t, branch, next)) return true;
    }
    return false;
  }

  bool match_all(const std::vector<Val>& p, const std::vector<Val>& t, size_t i, const Unified& u, const Next& next) {
    if (i == p.size()) return next(u);
    return match(p[i], t[i], u, [&, i](const Unified& v) { return match_all(p, t, i + 1, v, next); });
  }

  bool same_kind(const Val& p, const Val& t, const Unified& u, const Next& next) {
    if (p->kind != t->kind || p->args.size() != t->args.size()) return false;
    const bool operators = p->kind == ValKind::unary || p->kind == ValKind::binary || p->kind == ValKind::call ||
                           p->kind == ValKind::reduce;
    if (operators && p->op != t->op) return false;
    if ((p->kind == ValKind::cast || p->kind == ValKind::reduce) && (p->to != t->to || p->saturate != t->saturate))
      return false;
    if (p->kind == ValKind::reduce)
      return match(p->args[0], t->args[0], u, [&](Unified v) {
        v.reductions.emplace_back(p, t);
        return next(v);
      });
    if (match_all(p->args, t->args, 0, u, next)) return true;
    const bool pair = p->args.size() == 2 && ((p->kind == ValKind::binary && commutes(p->binary_op())) ||
                                              (p->kind == ValKind::call && (p->fn() == Fn::min || p->fn() == Fn::max)));
    return pair && match_all(p->args, {t->args[1], t->args[0]}, 0, u, next);
  }

  // Both arguments of an operator, one of which must be this number.
  bool without(const Val& p, size_t gone, int64_t number, const Val& t, const Unified& u, const Next& next) {
    return match(p->args[gone], val::integer(number), u,
                 [&](const Unified& v) { return match(p->args[1 - gone], t, v, next); });
  }

  bool neutral(const Val& p, const Val& t, const Unified& u, const Next& next) {
    const Interval range = range_of(t);
    switch (p->kind) {
      case ValKind::binary:
        switch (p->binary_op()) {
          case BinaryOp::add:
            if (without(p, 1, 0, t, u, next) || without(p, 0, 0, t, u, next)) return true;
            break;
          case BinaryOp::sub:
            if (without(p, 1, 0, t, u, next)) return true;
            break;
          case BinaryOp::mul:
            if (without(p, 1, 1, t, u, next) || without(p, 0, 1, t, u, next)) return true;
            break;
          default:
            break;
        }
        break;
      case ValKind::call:
        if (p->args.size() == 2 && (p->fn() == Fn::min || p->fn() == Fn::max)) {
          const int64_t bound = p->fn() == Fn::min ? range.hi : range.lo;
          if (without(p, 1, bound, t, u, next) || without(p, 0, bound, t, u, next)) return true;
        }
        break;
      case ValKind::cast:
        if (fits(range, p->to) && match(p->args[0], t, u, next)) return true;
        break;
      case ValKind::reduce: {
        const ReduceOp op = p->reduce_op();
        if ((op == ReduceOp::max || op == ReduceOp::min || op == ReduceOp::sum) && fits(range, p->to)) {
          Unified one = u;
          const bool single =
              std::ranges::all_of(p->loops, [&](const Loop& l) { return one.fields.equal(l.extent, 1); });
          if (single && match(p->args[0], t, one, next)) return true;
        }
        break;
      }
      default:
        break;
    }
    return give_up(u, [t, k = &k_] { return text(t, *k) + " is not what it does"; });
  }

  bool match_read(const Val& p, const Val& t, const Unified& u, const Next& next) {
    for (const Reading& r : u.reads)
      if (val::structurally_equal(r.pattern, p))
        return val::structurally_equal(r.target, t)
                   ? next(u)
                   : give_up(u, [t, k = &k_] { return text(t, *k) + " would share a memory with another value"; });
    const KernelTensor& memory = p_.kernel.tensors[static_cast<size_t>(p->tensor)];
    const auto data = std::ranges::find_if(p->args, [](const Val& a) { return !val::as_expr(a); });
    if (data != p->args.end()) {  // a look-up: the kernel must look up by the same value
      if (t->kind != ValKind::read) return give_up(u, [t, k = &k_] { return text(t, *k) + " is no look-up"; });
      const auto by = std::ranges::find_if(t->args, [](const Val& a) { return !val::as_expr(a); });
      if (by == t->args.end()) return give_up(u, [t, k = &k_] { return text(t, *k) + " is no look-up"; });
      const Val index = *by;
      Unified v = u;
      v.reads.push_back({p, t});
      return match(*data, index, v, next);
    }
    const bool data_dependent =
        t->kind == ValKind::read && std::ranges::any_of(t->args, [](const Val& a) { return !val::as_expr(a); });
    const bool is_value = t->kind != ValKind::read || data_dependent;
    if (is_value && t == root_) return give_up(u, [] { return std::string("a value would be computed from itself"); });
    if (!fits(range_of(t), memory.dtype))
      return give_up(u, [t, k = &k_, &memory] {
        return fmt::format("{} needs more than the {} of {}", text(t, *k), to_string(memory.dtype), memory.name);
      });
    Unified v = u;
    v.reads.push_back({p, t});
    return next(v);
  }

  // The same values are asked for again and again.
  const Interval& range_of(const Val& t) {
    const auto [it, fresh] = intervals_.try_emplace(t);
    if (fresh) it->second = value_range(t, k_, ranges_);
    return it->second;
  }

  const Pattern& p_;
  std::unordered_map<Val, Interval> intervals_;
  const Val root_;
  const Kernel& k_;
  const Ranges& ranges_;
  UnifyResult out_;
  std::unordered_map<const ValNode*, Val> alone_;
  size_t steps_ = 0;
};

}  // namespace

UnifyResult unify(const Pattern& pattern, const Val& target, const Kernel& kernel, const Ranges& ranges) {
  return Unifier(pattern, target, kernel, ranges).run();
}

}  // namespace dlc::map
