#include "core/interp/fast.h"

#include "core/interp/ops.h"
#include "core/interp/tree_walk.h"

namespace dlc::interp {

namespace {

void plan_body(const Lowered& code, const std::vector<StmtCode>& body, std::vector<LoopCode>& around,
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
    p.program = plan(code, {.source = &s,
                            .loops = &s.loops,
                            .around = &p.around,
                            .value = &s.value,
                            .tensor = s.tensor,
                            .indices = &s.indices});
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
    if (!b.tried) {
      b.tried = true;
      if (plan.program) b.frame = bind(*plan.program, run_, plan.around, arena_);
      if (b.frame) b.ranges = ranges(plan.program->loops);
    }
    if (!b.frame) return walk_.assign(s, around);
    Frame& f = *b.frame;
    const Program& p = *plan.program;
    Result<> result;
    for_strips(p, f, b.ranges.data(), [&](int64_t row, int64_t col) {
      if (!f.odd && store_strip(p, f, f.accesses[p.store])) return true;
      result = points(s, p, f, row, col, around);
      return result.has_value();
    });
    return result;
  }

 private:
  struct Bound {
    bool tried = false;
    std::optional<Frame> frame;
    std::vector<LoopRange> ranges;
  };

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

std::vector<AssignPlan> plan_all(const Lowered& code) {
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
