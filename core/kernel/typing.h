// The typing rules of values, shared by the constructors and the type checker. See typing.cpp for the rules in words.
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc::typing {

inline bool is_int_literal(const Val& v) { return v->kind == ValKind::integer; }
inline bool is_real_literal(const Val& v) { return v->kind == ValKind::real; }
inline bool is_literal(const Val& v) { return is_int_literal(v) || is_real_literal(v); }
inline bool is_undef(const Val& v) { return v->kind == ValKind::undef; }
inline bool is_weak(const Val& v) { return is_literal(v) || v->kind == ValKind::index; }

// The value of a literal as a double.
double as_double(const Val& literal);

// bool becomes s64; everything else is itself.
Val numeric(const Val& v);
// What a condition or a logical operator takes: an integer becomes `v != 0`; a float stays (a type error).
Val as_bool(const Val& v);
// Integers become f32; floats stay.
DType float_type(const std::vector<Val>& values);  // f64 if one of them is, or f32

// Brings a and b to one type, or leaves bool and bool alone. Infinite literals meet integers as their extremes.
void unify(Val& a, Val& b);

bool is_comparison(BinaryOp op);
bool is_logical(BinaryOp op);
bool is_integer_only(BinaryOp op);  // shifts and bit operators

// e divides by something that is 0 for some values of the symbols.
bool may_divide_by_zero(const Expr& e, const Ranges& ranges);

}  // namespace dlc::typing
