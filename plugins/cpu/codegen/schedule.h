// The default schedule of a statement: which loop becomes the vector, which one is unrolled beside it.
#pragma once

#include "codegen.h"
#include "lowering.h"

namespace dlc::cpu {

Schedule choose_schedule(const Lowered& l, const Target& target);

// Calls that have a vector form (emit_math.cpp); the others go to the C library one element at a time.
bool has_vector_form(Fn fn, DType type);

// The loop over which the reduction `v`, whose value is the same in every lane, is best read as vectors: an index into
// v.loops, or -1. Also used by the emitter.
int vector_loop_of_reduction(const Lowered& l, const ValNode& v);

// Elements in one vector when computing `v`.
int lanes_for(const Lowered& l, const ValNode& v, int vector_bytes);

}  // namespace dlc::cpu
