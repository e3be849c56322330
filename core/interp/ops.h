// The vector primitives: functions over strips, chosen by operator and type when a program is built.
#pragma once

#include "core/interp/program.h"

namespace dlc::interp {

// Both operands and the result (or the operands, for comparisons) have type ty. `defined`: the divisor is never 0, the
// shift count always in 0..63.
Instr::Fn binary_op(BinaryOp op, Ty ty, bool defined = false);
Instr::Fn unary_op(UnaryOp op, Ty ty);
// min, max, pow, fmod and tdiv take a and b; the others a.
Instr::Fn call_op(Fn fn, Ty ty);
Instr::Fn cast_op(Ty from, Ty to);     // Instr::to and saturate say the element type
Instr::Fn convert_op(Ty from, Ty to);  // value-preserving change of register type
Instr::Fn select_op(Ty ty);            // a ? b : c
// The same for a uniform a: runs the chosen side's block of Instr::nest first.
Instr::Fn branch_op(Ty ty);
Instr::Fn orelse_op(Ty ty);
Instr::Fn constant_op(Ty ty);
void index_op(const Instr&, Frame&);  // s64
void undef_op(const Instr&, Frame&);
Instr::Fn reduce_op(Ty body);

// Loads. Instr::move is load_rows(elem, ty); strips whose indices are registers use the same decode per lane.
void load_op(const Instr&, Frame&);
using RowLoad = void (*)(std::byte* dst, const std::byte* src, int64_t stride, int n, DType dtype);
RowLoad load_rows(Elem elem, Ty ty, bool odd_width);
using RowStore = void (*)(std::byte* dst, int64_t stride, const std::byte* src, int n, bool uniform, DType dtype);
RowStore store_rows(Elem elem, Ty ty, bool odd_width);

// Stores the strip's value; false, with nothing stored, when it is undefined or an index is out of bounds.
bool store_strip(const Program& p, Frame& f, const BoundAccess& to);

}  // namespace dlc::interp
