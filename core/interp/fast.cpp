#include "core/interp/fast.h"

#include <algorithm>

#include "core/interp/ops.h"
#include "core/interp/tree_walk.h"

namespace dlc::interp {

namespace {

void plan_body(Lowered& code, const std::vector<StmtCode>& body, std::vector<LoopCode>& around,
               std::vector<AssignPlan>& out) {
  for (const StmtCode& s : body) {
    if (s.is_seq()) {
      const size_t depth = around.size();
      around.insert(around.end(), s.loops.begin(), s.loops.end());
      plan_body(code, s.body, around, out);
      around.resize(depth);
      continue;
    }
    AssignPlan& p = out[static_cast<size_t>(s.id)];
    p.around = around;
    Task task{.source = &s,
              .loops = &s.loops,
              .around = &p.around,
              .value = &s.value,
              .tensor = s.tensor,
              .indices = &s.indices};
    p.program = plan(code, task);
    if (!p.program) continue;
    Node rest = s.value;
    p.contractions = extract_contractions(code, s, p.around, rest);
    if (p.contractions.empty()) continue;
    task.value = &rest;
    p.rest = plan(code, task);
  }
}

class Runner {
 public:
  Runner(const std::vector<AssignPlan>& plans, RunState& run) : plans_(plans), run_(run), walk_(run) {
    bound_.resize(plans.size());
  }

  Result<> assign(const StmtCode& s, const std::vector<LoopCode>& around) {
    const AssignPlan& plan = plans_[static_cast<size_t>(s.id)];
    Bound& b = bound_[static_cast<size_t>(s.id)];
    if (!b.tried) bind_statement(plan, b);
    if (b.rest && contract(b)) return strips(s, *plan.rest, *b.rest, b.rest_ranges, around);
    if (!b.all) return walk_.assign(s, around);
    return strips(s, *plan.program, *b.all, b.all_ranges, around);
  }

 private:
  struct Bound {
    bool tried = false;
    std::optional<Frame> all, rest;
    std::vector<LoopRange> all_ranges, rest_ranges;
    std::vector<std::unique_ptr<BoundContraction>> contractions;
  };

  void bind_statement(const AssignPlan& plan, Bound& b) {
    b.tried = true;
    if (!plan.program) return;
    b.all = bind(*plan.program, run_, plan.around, arena_);
    if (!b.all) return;
    b.all_ranges = ranges(plan.program->loops);
    if (!plan.rest) return;
    for (const Contraction& c : plan.contractions) {
      b.contractions.push_back(BoundContraction::bind(c, run_, plan.around, arena_));
      if (!b.contractions.back()) return;
    }
    b.rest = bind(*plan.rest, run_, plan.around, arena_);
    b.rest_ranges = ranges(plan.rest->loops);
  }

  static bool contract(const Bound& b) {
    return std::ranges::all_of(b.contractions, [](const auto& c) { return c->run(); });
  }

  Result<> strips(const StmtCode& s, const Program& p, Frame& f, const std::vector<LoopRange>& ranges,
                  const std::vector<LoopCode>& around) {
    Result<> result;
    for_strips(p, f, ranges.data(), [&](int64_t row, int64_t col) {
      if (!f.odd && store_strip(p, f, f.accesses[p.store])) return true;
      result = points(s, p, f, row, col, around);
      return result.has_value();
    });
    return result;
  }

  std::vector<LoopRange> ranges(const std::vector<LoopCode>& loops) const {
    std::vector<LoopRange> r;
    for (const LoopCode& l : loops) r.push_back({0, l.extent.evaluate(run_.env.data()).value_or(0)});
    return r;
  }

  // A strip, point by point.
  Result<> points(const StmtCode& s, const Program& p, const Frame& f, int64_t row, int64_t col,
                  const std::vector<LoopCode>& around) {
    const int n_lanes = static_cast<int>(p.loops.size()) - p.outer;
    for (int64_t y = 0; y < f.rows; ++y) {
      for (int64_t x = 0; x < f.cols; ++x) {
        if (n_lanes == 2) run_.slot(p.loops[p.loops.size() - 2].slot) = row + y;
        if (n_lanes >= 1) run_.slot(p.loops.back().slot) = col + x;
        DLC_CHECK(walk_.point(s, around));
      }
    }
    return {};
  }

  const std::vector<AssignPlan>& plans_;
  RunState& run_;
  TreeWalk walk_;
  Arena arena_;
  std::vector<Bound> bound_;
};

int count(const std::vector<StmtCode>& body) {
  int n = 0;
  for (const StmtCode& s : body) n += s.is_seq() ? count(s.body) : 1;
  return n;
}

}  // namespace

std::vector<AssignPlan> plan_all(Lowered& code) {
  std::vector<AssignPlan> plans(static_cast<size_t>(count(code.body)));
  std::vector<LoopCode> around;
  plan_body(code, code.body, around, plans);
  return plans;
}

Result<> run_fast(const std::vector<AssignPlan>& plans, RunState& run) {
  Runner runner(plans, run);
  std::vector<LoopCode> around;
  return run_statements(
      run, run.code->body, [&](const StmtCode& s, const auto& outer) { return runner.assign(s, outer); }, around);
}

}  // namespace dlc::interp
