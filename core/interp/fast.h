// The fast interpreter: one plan per assign statement, bound once per run.
#pragma once

#include <memory>
#include <vector>

#include "core/interp/plan.h"
#include "core/interp/program.h"

namespace dlc::interp {

struct AssignPlan {
  std::vector<LoopCode> around;    // the seqs the statement stands in
  std::optional<Program> program;  // none: the tree walk does it
};

// Plans for every assign statement, by StmtCode::id.
std::vector<AssignPlan> plan_all(const Lowered& code);

// One run of the whole kernel.
Result<> run_fast(const std::vector<AssignPlan>& plans, RunState& run);

}  // namespace dlc::interp
