// Unification of an instruction's text with a value of a kernel: which fields, memories and loops make them the same.
//
// Operands of commutative operators may be exchanged, and a step of the instruction may do nothing: x + f with f = 0,
// x * f with f = 1, a clamp that never clamps, a sum over one element, the branch of an `if` that a field chooses.
//
// It is a search in two steps (unify.cpp). Which part of the text can stand for which part of the value is found first,
// each pair once and without regard to fields: that leaves few ways (ways.h). Those are walked with the fields.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/map/pattern.h"
#include "core/map/value.h"

namespace dlc::map {

// What a memory access of the instruction stands for: a read of the kernel, a literal, or any other value, which
// another instruction must then have put there.
struct Reading {
  Val pattern;
  Val target;
};

struct Unified {
  FieldSolver fields;
  std::vector<Reading> reads;
  std::vector<std::pair<Val, Val>> reductions;  // of the pattern and the kernel
  std::vector<Val> guards;                      // conditions of the pattern that hold for elements, not for padding
  std::vector<std::pair<Val, int64_t>> later;   // values of the pattern that must be these numbers once reads are bound
};

struct UnifyResult {
  std::vector<Unified> found;  // those with the fewest values left to others first
  // Of `explain`, when there is none: what did not match, at the deepest point that was reached. Valid as long as the
  // arguments are.
  std::function<std::string()> why;
  size_t depth = 0;  // how far that was: reads and reductions that did match
};

// `ranges`: of parts of the target.
UnifyResult unify(const Pattern& pattern, const Val& target, const Kernel& kernel, ValueRanges& ranges, bool explain);

}  // namespace dlc::map
