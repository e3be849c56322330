// The fast interpreter: one plan per assign statement, bound once per run.
#pragma once

#include <memory>
#include <vector>

#include "core/interp/contraction.h"
#include "core/interp/plan.h"
#include "core/interp/program.h"

namespace dlc::interp {

struct AssignPlan {
  std::vector<LoopCode> around;    // the seqs the statement stands in
  std::optional<Program> program;  // none: the tree walk does it
  // The same statement with its contractions done apart: `rest` reads their results.
  std::vector<Contraction> contractions;
  std::optional<Program> rest;
};

// Plans for every assign statement, by StmtCode::id. Appends scratch tensors to the kernel's.
std::vector<AssignPlan> plan_all(Lowered& code);

// One run of the whole kernel.
Result<> run_fast(const std::vector<AssignPlan>& plans, RunState& run);

}  // namespace dlc::interp
