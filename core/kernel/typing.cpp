// The typing rules.
//
//  1. A value is bool, s64, u64, f32 or f64. A read has the compute type of its tensor's dtype.
//  2. Integer literals, real literals and index values (loop variables, dims) are weak: they take the other side's
//     type.
//  3. Arithmetic turns bool into s64. Integer with integer is s64, or u64 when a side that is no literal is u64 (or
//     both are). Integer with float is that float; f32 with f64 is f64.
//  4. `/` is real division: two integers become f32, an integer beside f64 becomes f64 at once. Functions such as exp
//     and pow do the same. floor, ceil, round and trunc leave integers as they are; abs, sign, min, max, fmod keep them
//     integers; tdiv, shifts and & | ^ ~ take integers only.
//  5. Comparisons bring both sides to one numeric type and give bool. `and`, `or`, `not` and conditions take bool; an
//     integer is converted by != 0, a float is an error.
//  6. `if`, `?:`, min and max bring their sides to one type. An infinite literal beside an integer that is not weak is
//     that type's lowest or highest value. An integer literal behind a `?:` whose left side is nowhere stays as it is.
//  7. sum, prod, max, min convert their body to the accumulator's compute type; any and all are bool; argmax and argmin
//     give the position as s64.
//  8. Integer + - * // % min max, and `if` over comparisons, of literals and index values alone is one index value. It
//     is exact: its author promises that it neither overflows 64 bits nor divides by 0 where it is used.
//  9. Arithmetic on literals is done in double and rounded to the literal's type where it is used; a cast rounds.
#include "typing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dlc/kernel/names.h"

namespace dlc {

namespace typing {

double as_double(const Val& literal) {
  if (literal->kind == ValKind::real) return literal->real;
  if (literal->type == kU64) return static_cast<double>(static_cast<uint64_t>(literal->integer));
  return static_cast<double>(literal->integer);
}

Val numeric(const Val& v) { return v->type.is_bool() ? val::convert(kS64, v) : v; }
Val as_bool(const Val& v) { return v->type.is_float() ? v : val::convert(kBool, v); }
DType float_type(const std::vector<Val>& values) {
  return std::ranges::any_of(values, [](const Val& v) { return v->type == kF64; }) ? kF64 : kF32;
}

namespace {

DType common_type(const Val& a, const Val& b) {
  const DType s = a->type, t = b->type;
  if (s == t) return s;
  if (s.is_float() || t.is_float()) return s == kF64 || t == kF64 ? kF64 : kF32;
  const bool is_u64 = (s == kU64 && !is_literal(a)) || (t == kU64 && !is_literal(b));
  return is_u64 ? kU64 : kS64;
}

// An infinite literal beside an integer that has a type of its own.
Val finite_beside(const Val& v, const Val& other) {
  if (!is_real_literal(v) || !std::isinf(v->real) || other->type.is_float() || is_weak(other)) return v;
  if (other->type == kU64) return val::integer(v->real < 0 ? 0 : -1, kU64);
  using Limits = std::numeric_limits<int64_t>;
  return val::integer(v->real < 0 ? Limits::min() : Limits::max());
}

}  // namespace

void unify(Val& a, Val& b) {
  Val x = finite_beside(a, b), y = finite_beside(b, a);
  const DType t = common_type(x, y);
  a = val::convert(t, x);
  b = val::convert(t, y);
}

bool may_divide_by_zero(const Expr& e, const Ranges& ranges) {
  for (const Term& t : e.terms())
    for (const Atom a : t.factors) {
      if (a.kind() == AtomKind::symbol) continue;
      const auto args = a.args();
      if (a.kind() == AtomKind::floor_div || a.kind() == AtomKind::mod) {
        const Interval divisor = bounds(args[1], ranges);
        if (divisor.lo <= 0 && divisor.hi >= 0) return true;
      }
      for (const Expr& arg : args)
        if (may_divide_by_zero(arg, ranges)) return true;
    }
  return false;
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }
bool is_logical(BinaryOp op) { return op == BinaryOp::logical_and || op == BinaryOp::logical_or; }
bool is_integer_only(BinaryOp op) { return op >= BinaryOp::shl && op <= BinaryOp::bit_xor; }

}  // namespace typing

namespace {

using typing::is_comparison;

bool is_compute_type(DType t) { return compute_type(t) == t; }

std::string binary_error(const ValNode& v) {
  const BinaryOp op = v.binary_op();
  const DType a = v.args[0]->type, b = v.args[1]->type;
  const std::string name(to_string(op));
  if (typing::is_logical(op)) {
    for (DType t : {a, b})
      if (!t.is_bool()) return name + " needs bool, has " + to_string(t);
    return v.type.is_bool() ? "" : name + " gives bool, not " + to_string(v.type);
  }
  if (a != b) return name + " has sides of two types, " + to_string(a) + " and " + to_string(b);
  if (a.is_bool()) return name + " needs numbers, has bool";
  if (typing::is_integer_only(op) && a.is_float()) return name + " needs integers, has " + to_string(a);
  if (op == BinaryOp::div && !a.is_float()) return "/ divides floats, has " + to_string(a);
  const DType result = is_comparison(op) ? kBool : a;
  return v.type == result ? "" : name + " gives " + to_string(result) + ", not " + to_string(v.type);
}

std::string call_error(const ValNode& v) {
  const Fn fn = v.fn();
  const std::string name(to_string(fn));
  const int n = static_cast<int>(v.args.size());
  const Arity takes = arity(fn);
  if (n < takes.least || n > takes.most)
    return name + " takes " + (takes.most > takes.least ? "at least " : "") + std::to_string(takes.least) +
           (takes.least == 1 ? " argument" : " arguments") + ", has " + std::to_string(n);
  const DType t = v.args[0]->type;
  for (const auto& a : v.args)
    if (a->type != t) return name + " has arguments of two types, " + to_string(t) + " and " + to_string(a->type);
  if (t.is_bool()) return name + " needs numbers, has bool";
  const bool takes_integers = fn == Fn::abs || fn == Fn::sign || (fn >= Fn::min && fn <= Fn::tdiv);
  if (!takes_integers && !t.is_float()) return name + " needs floats, has " + to_string(t);
  if (fn == Fn::tdiv && t.is_float()) return "tdiv needs integers, has " + to_string(t);
  const DType result = fn == Fn::is_nan || fn == Fn::is_inf ? kBool : t;
  return v.type == result ? "" : name + " gives " + to_string(result) + ", not " + to_string(v.type);
}

std::string reduce_error(const ValNode& v) {
  const ReduceOp op = v.reduce_op();
  const std::string name(to_string(op));
  const DType body = v.args[0]->type;
  if (v.loops.empty()) return name + " has no loops";
  switch (op) {
    case ReduceOp::any:
    case ReduceOp::all:
      if (!body.is_bool()) return name + " needs bool, has " + to_string(body);
      return v.type.is_bool() ? "" : name + " gives bool, not " + to_string(v.type);
    case ReduceOp::argmax:
    case ReduceOp::argmin:
      if (v.loops.size() != 1) return name + " runs over one loop, has " + std::to_string(v.loops.size());
      if (body.is_bool()) return name + " needs numbers, has bool";
      return v.type == kS64 ? "" : name + " gives s64, not " + to_string(v.type);
    default:
      if (body != compute_type(v.to))
        return name + " accumulates " + to_string(v.to) + " but its body is " + to_string(body);
      return v.type == body ? "" : name + " gives " + to_string(body) + ", not " + to_string(v.type);
  }
}

}  // namespace

std::string type_error(const ValNode& v) {
  if (!is_compute_type(v.type)) return to_string(v.type) + " is a storage type, not one values are computed in";
  const auto arity_is = [&](size_t n) { return v.args.size() == n; };
  switch (v.kind) {
    case ValKind::integer:
      return v.type.is_float() ? "integer literal of type " + to_string(v.type) : "";
    case ValKind::real:
      return v.type.is_float() ? "" : "real literal of type " + to_string(v.type);
    case ValKind::index:
      if (!v.index.valid()) return "index arithmetic overflows 64 bits";
      return v.type == kS64 ? "" : "index value of type " + to_string(v.type);
    case ValKind::undef:
      return "";
    case ValKind::read:
      for (const auto& a : v.args)
        if (a->type != kS64) return "index of type " + to_string(a->type) + ", must be s64";
      return "";
    case ValKind::unary: {
      if (!arity_is(1)) return "unary operator without its operand";
      const DType t = v.args[0]->type;
      const std::string name(to_string(v.unary_op()));
      if (v.unary_op() == UnaryOp::logical_not && !t.is_bool()) return "not needs bool, has " + to_string(t);
      if (v.unary_op() != UnaryOp::logical_not && t.is_bool()) return name + " needs numbers, has bool";
      if (v.unary_op() == UnaryOp::bit_not && !t.is_int()) return "~ needs integers, has " + to_string(t);
      return v.type == t ? "" : name + " gives " + to_string(t) + ", not " + to_string(v.type);
    }
    case ValKind::binary:
      return arity_is(2) ? binary_error(v) : "binary operator without two operands";
    case ValKind::select:
      if (!arity_is(3)) return "if without its three operands";
      if (!v.args[0]->type.is_bool()) return "condition of type " + to_string(v.args[0]->type) + ", must be bool";
      [[fallthrough]];
    case ValKind::orelse: {
      if (v.kind == ValKind::orelse && !arity_is(2)) return "?: without its two operands";
      const DType a = v.args[v.args.size() - 2]->type, b = v.args.back()->type;
      const std::string name = v.kind == ValKind::select ? "if" : "?:";
      if (a != b) return name + " has sides of two types, " + to_string(a) + " and " + to_string(b);
      return v.type == a ? "" : name + " gives " + to_string(a) + ", not " + to_string(v.type);
    }
    case ValKind::call:
      return call_error(v);
    case ValKind::cast:
      if (!arity_is(1)) return "cast without its operand";
      return v.type == compute_type(v.to) ? ""
                                          : "cast to " + to_string(v.to) + " gives " + to_string(compute_type(v.to)) +
                                                ", not " + to_string(v.type);
    case ValKind::reduce:
      return arity_is(1) ? reduce_error(v) : "reduction without its body";
  }
  return "";
}

}  // namespace dlc
