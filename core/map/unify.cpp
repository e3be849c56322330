#include "core/map/unify.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/map/ways.h"

namespace dlc::map {

namespace {

constexpr size_t kMostSolutions = 12;
constexpr size_t kMostSteps = 20000;

class Unifier {
 public:
  Unifier(const Pattern& p, const Val& root, const Kernel& k, ValueRanges& ranges, bool explain)
      : k_(k),
        explain_(explain),
        ways_(p, root, k, ranges, explain),
        pair_(ways_.of(p.stmt().value, root)),
        state_{p.fields, {}, {}, {}, {}} {}

  UnifyResult run() {
    walk(*pair_, nullptr);
    std::ranges::stable_sort(out_.found, [](const Unified& a, const Unified& b) { return cost(a) < cost(b); });
    return std::move(out_);
  }

 private:
  static size_t cost(const Unified& u) {
    const auto left = [](const Reading& r) {
      return r.target->kind != ValKind::read && r.target->kind != ValKind::integer;
    };
    return static_cast<size_t>(std::ranges::count_if(u.reads, left)) * 100 + u.reads.size();
  }

  // What is left to do: the rest of a way, then of the way that it is a part of.
  struct Rest {
    const Step* at;
    const Step* end;
    const Rest* outer;
  };

  // All of these return true when there are solutions enough.
  bool walk(const Pair& pair, const Rest* rest) {
    if (++steps_ > kMostSteps) return true;
    for (const Way& way : pair.ways)
      if (go(way.data(), way.data() + way.size(), rest)) return true;
    return false;
  }

  bool go(const Step* at, const Step* end, const Rest* outer) {
    while (at == end) {
      if (outer == nullptr) return solution();
      at = outer->at;
      end = outer->end;
      outer = outer->outer;
    }
    const Step& s = *at++;
    switch (s.kind) {
      case Step::Kind::pair: {
        const Rest rest{at, end, outer};
        return walk(*s.pair, &rest);
      }
      case Step::Kind::equal:
      case Step::Kind::choice: {
        const FieldSolver before = state_.fields;
        if (state_.fields.equal(s.pattern, s.number)) {
          if (go(at, end, outer)) return true;
        } else if (explain_ && s.kind == Step::Kind::equal) {
          give_up([why = state_.fields.why()] { return why; });
        }
        state_.fields = before;
        return false;
      }
      case Step::Kind::read:
        for (const Reading& r : state_.reads)
          if (val::structurally_equal(r.pattern, s.pattern)) {
            if (val::structurally_equal(r.target, s.target)) return go(at, end, outer);
            give_up([t = s.target, k = &k_] { return short_text(t, *k) + " would share a memory with another value"; });
            return false;
          }
        return with(state_.reads, Reading{s.pattern, s.target}, at, end, outer);
      case Step::Kind::later:
        return with(state_.later, std::pair(s.pattern, s.number), at, end, outer);
      case Step::Kind::reduction:
        return with(state_.reductions, std::pair(s.pattern, s.target), at, end, outer);
      case Step::Kind::guard:
        return with(state_.guards, s.pattern, at, end, outer);
      case Step::Kind::never:
        give_up(s.why);
        return false;
    }
    return false;
  }

  template <class T>
  bool with(std::vector<T>& list, T one, const Step* at, const Step* end, const Rest* outer) {
    list.push_back(std::move(one));
    const bool enough = go(at, end, outer);
    list.pop_back();
    return enough;
  }

  bool solution() {
    Unified u = state_;
    if (!settle(u)) {
      if (explain_) give_up([why = u.fields.why()] { return why; });
      return false;
    }
    out_.found.push_back(std::move(u));
    return out_.found.size() >= kMostSolutions;
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

  void give_up(std::function<std::string()> why) {
    const size_t depth = state_.reads.size() + state_.reductions.size();
    if (!explain_ || (out_.why && depth <= out_.depth)) return;
    out_.depth = depth;
    out_.why = std::move(why);
  }

  const Kernel& k_;
  const bool explain_;
  Ways ways_;
  const Pair* pair_;
  Unified state_;
  UnifyResult out_;
  size_t steps_ = 0;
};

}  // namespace

UnifyResult unify(const Pattern& pattern, const Val& target, const Kernel& kernel, ValueRanges& ranges, bool explain) {
  return Unifier(pattern, target, kernel, ranges, explain).run();
}

}  // namespace dlc::map
