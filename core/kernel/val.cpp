// Constructors of values: type the operands (typing.cpp), fold what is known (fold.cpp), make the node.
#include <algorithm>
#include <bit>
#include <cmath>

#include "dlc/base/float_format.h"
#include "dlc/kernel/kernel.h"
#include "dlc/kernel/names.h"
#include "fold.h"
#include "typing.h"

namespace dlc {

namespace {

using typing::is_int_literal;
using typing::is_literal;
using typing::is_undef;

std::shared_ptr<ValNode> make(ValKind kind, DType type, std::vector<Val> args = {}) {
  auto v = std::make_shared<ValNode>();
  v->kind = kind;
  v->type = type;
  v->args = std::move(args);
  return v;
}

bool any_undef(const std::vector<Val>& args) { return std::ranges::any_of(args, is_undef); }

Val with_op(ValKind kind, DType type, uint8_t op, std::vector<Val> args) {
  auto v = make(kind, type, std::move(args));
  v->op = op;
  return v;
}

}  // namespace

bool may_be_undefined(const Val& v) {
  const auto zero_possible = [](const Val& divisor) {
    if (is_literal(divisor)) return typing::as_double(divisor) == 0;
    if (divisor->kind != ValKind::index) return true;
    const Interval i = bounds(divisor->index, {});
    return i.lo <= 0 && i.hi >= 0;
  };
  switch (v->kind) {
    case ValKind::read:
    case ValKind::undef:
      return true;
    case ValKind::index:
      return typing::may_divide_by_zero(v->index, {});
    case ValKind::binary: {
      const BinaryOp op = v->binary_op();
      if ((op == BinaryOp::floor_div || op == BinaryOp::mod) && zero_possible(v->args[1])) return true;
      if ((op == BinaryOp::shl || op == BinaryOp::shr) && !is_int_literal(v->args[1])) return true;
      break;
    }
    case ValKind::call:
      if ((v->fn() == Fn::tdiv || v->fn() == Fn::fmod) && v->type.is_int() && zero_possible(v->args[1])) return true;
      break;
    case ValKind::orelse:
      return may_be_undefined(v->args[1]);
    default:
      break;
  }
  return std::ranges::any_of(v->args, may_be_undefined);
}

namespace val {

Val integer(int64_t v, DType type) {
  auto n = make(ValKind::integer, type);
  n->integer = v;
  return n;
}

Val boolean(bool v) { return integer(v, kBool); }

Val real(double v, DType type) {
  auto n = make(ValKind::real, type);
  n->real = v;
  return n;
}

Val index(const Expr& e) {
  if (const auto c = e.constant()) return integer(*c);
  auto n = make(ValKind::index, kS64);
  n->index = e;
  return n;
}

Val undef(DType type) { return make(ValKind::undef, compute_type(type)); }

Val read(int tensor, DType element, std::vector<Val> indices) {
  for (Val& i : indices)
    if (!i->type.is_float()) i = convert(kS64, i);
  if (any_undef(indices)) return undef(element);
  auto n = make(ValKind::read, compute_type(element), std::move(indices));
  n->tensor = tensor;
  return n;
}

Val unary(UnaryOp op, Val a) {
  a = op == UnaryOp::logical_not ? typing::as_bool(a) : typing::numeric(a);
  if (is_undef(a)) return a;
  if (Val v = fold::unary_literal(op, a)) return v;
  if (op == UnaryOp::neg && a->kind == ValKind::index)
    if (const Expr e = -a->index; e.valid()) return index(e);
  if (a->kind == ValKind::unary && a->unary_op() == op) return a->args[0];  // -(-x), not not x, ~~x
  return with_op(ValKind::unary, a->type, static_cast<uint8_t>(op), {a});
}

Val binary(BinaryOp op, Val a, Val b) {
  const bool logical = typing::is_logical(op);
  // The integer 0 has no sign: beside a float it is nothing added, unlike 0.0.
  const bool nothing_left = is_int_literal(a) && a->integer == 0, nothing_right = is_int_literal(b) && b->integer == 0;
  if (logical) {
    a = typing::as_bool(a);
    b = typing::as_bool(b);
  } else if (op == BinaryOp::div) {
    const DType t = typing::float_type({a, b});
    a = convert(t, a);
    b = convert(t, b);
  } else {
    a = typing::numeric(a);
    b = typing::numeric(b);
    typing::unify(a, b);
  }
  const DType type = logical || typing::is_comparison(op) ? kBool : a->type;
  if (is_undef(a) || (is_undef(b) && !logical)) return undef(type);
  if (op == BinaryOp::add && (nothing_left || nothing_right)) return nothing_right ? a : b;
  if (Val v = fold::binary_literals(op, a, b)) return v;
  if (Val v = fold::identities(op, a, b)) return v;
  if (a->type == kS64 && b->type == kS64) {
    if (Val v = fold::binary_index(op, a, b)) return v;
    if (typing::is_comparison(op))
      if (const auto x = as_expr(a), y = as_expr(b); x && y)
        if (const auto answer = fold::compare_index(op, *x, *y)) return boolean(*answer);
  }
  return with_op(ValKind::binary, type, static_cast<uint8_t>(op), {a, b});
}

Val select(Val condition, Val then, Val otherwise) {
  condition = typing::as_bool(condition);
  if (is_undef(then)) then = undef(otherwise->type);  // without a value there is no type to insist on
  if (is_undef(otherwise)) otherwise = undef(then->type);
  typing::unify(then, otherwise);
  if (is_int_literal(condition)) return condition->integer ? then : otherwise;
  if (!may_be_undefined(condition) && structurally_equal(then, otherwise)) return then;
  if (then->type == kS64)
    if (const auto x = as_expr(then), y = as_expr(otherwise); x && y)
      if (const auto e = fold::select_index(condition, *x, *y)) return index(*e);
  return make(ValKind::select, then->type, {condition, then, otherwise});
}

Val orelse(Val a, Val b) {
  if (is_undef(a) && is_int_literal(b)) return b;  // weak: it takes the type of what it meets
  typing::unify(a, b);
  if (is_undef(a)) return b;
  if (is_undef(b) || !may_be_undefined(a)) return a;
  return make(ValKind::orelse, a->type, {a, b});
}

namespace {

// Brings every argument to one type: what all of them unify to.
void unify_all(std::vector<Val>& args) {
  for (size_t i = 1; i < args.size(); ++i) typing::unify(args[0], args[i]);
  for (size_t i = 1; i < args.size(); ++i) typing::unify(args[0], args[i]);
}

Val extreme_index(Fn fn, const std::vector<Val>& args) {
  std::optional<Expr> e;
  for (const Val& a : args) {
    const auto x = as_expr(a);
    if (!x) return nullptr;
    e = !e ? *x : fn == Fn::min ? min(*e, *x) : max(*e, *x);
  }
  return e && e->valid() ? index(*e) : nullptr;
}

}  // namespace

Val call(Fn fn, std::vector<Val> args) {
  const Arity takes = arity(fn);
  const bool right_count = static_cast<int>(args.size()) >= takes.least && static_cast<int>(args.size()) <= takes.most;
  if (!right_count)
    return with_op(ValKind::call, kF32, static_cast<uint8_t>(fn), std::move(args));  // type_error says so
  for (Val& a : args) a = typing::numeric(a);
  const bool rounds = fn == Fn::floor || fn == Fn::ceil || fn == Fn::round || fn == Fn::trunc;
  if (rounds && args[0]->type.is_int()) return args[0];
  const bool takes_integers = fn == Fn::abs || fn == Fn::sign || (fn >= Fn::min && fn <= Fn::tdiv);
  if (!takes_integers) {
    const DType t = typing::float_type(args);
    for (Val& a : args) a = convert(t, a);
  }
  unify_all(args);
  const DType type = fn == Fn::is_nan || fn == Fn::is_inf ? kBool : args[0]->type;
  if (any_undef(args)) return undef(type);
  if (Val v = fold::call_literals(fn, args)) return v;
  if (fn == Fn::min || fn == Fn::max) {
    if (args.size() == 1) return args[0];
    if (args[0]->type == kS64)
      if (Val v = extreme_index(fn, args)) return v;
  }
  return with_op(ValKind::call, type, static_cast<uint8_t>(fn), std::move(args));
}

namespace {

// Clamped to the numbers of a narrow float: all of them round to numbers.
Val clamped(DType to, Val a) {
  const FloatFormat& f = float_format(to);
  const double largest = from_bits(to, f.largest());
  const double least = f.specials == FloatFormat::Specials::power ? from_bits(to, 0) : -largest;
  if (!a->type.is_float()) a = convert(kF32, a);
  const DType type = a->type;
  return call(Fn::min, {call(Fn::max, {std::move(a), real(least, type)}), real(largest, type)});
}

}  // namespace

Val cast(DType to, Val a, bool saturate) {
  const DType type = compute_type(to);
  if (is_undef(a)) return undef(to);
  if (saturate && to.is_narrow_float()) return cast(to, clamped(to, std::move(a)));
  if (Val v = fold::cast_literal(to, a, saturate)) return v;
  if (to == type && a->type == type) return a;
  auto n = make(ValKind::cast, type, {a});
  n->to = to;
  n->saturate = saturate && to.is_int();
  return n;
}

Val convert(DType t, Val a) {
  t = compute_type(t);
  if (a->type == t) return a;
  if (t.is_bool() && !is_literal(a) && !is_undef(a))
    return binary(BinaryOp::ne, a, a->type.is_float() ? real(0, a->type) : integer(0, a->type));
  return cast(t, a);
}

Val reduce(ReduceOp op, DType acc, std::vector<Loop> loops, Val body) {
  const bool logical = op == ReduceOp::any || op == ReduceOp::all;
  const bool position = op == ReduceOp::argmax || op == ReduceOp::argmin;
  if (logical) {
    acc = kBool;
    body = typing::as_bool(body);
  } else if (position) {
    acc = kS64;
    body = typing::numeric(body);
  } else if (acc.is_float() || !body->type.is_float()) {  // a float body in an integer sum is a type error
    body = convert(acc, body);
  }
  const bool saturates = (op == ReduceOp::max || op == ReduceOp::min) && acc.is_int();
  if (loops.empty()) return position ? integer(0) : logical ? body : cast(acc, body, saturates);
  const bool runs = std::ranges::all_of(loops, [](const Loop& l) { return l.extent.constant().value_or(0) > 0; });
  if (is_undef(body) && runs) return undef(acc);
  auto n = make(ValKind::reduce, compute_type(acc), {body});
  n->op = static_cast<uint8_t>(op);
  n->to = acc;
  n->loops = std::move(loops);
  return n;
}

std::optional<Expr> as_expr(const Val& v) {
  if (v->kind == ValKind::index) return v->index;
  if (v->kind == ValKind::integer && v->type == kS64) return Expr(v->integer);
  return std::nullopt;
}

bool structurally_equal(const Val& a, const Val& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  const auto same_loop = [](const Loop& x, const Loop& y) { return x.var == y.var && x.extent == y.extent; };
  return a->kind == b->kind && a->type == b->type && a->op == b->op && a->saturate == b->saturate &&
         a->tensor == b->tensor && a->integer == b->integer &&
         std::bit_cast<uint64_t>(a->real) == std::bit_cast<uint64_t>(b->real) && a->to == b->to &&
         a->index == b->index && std::ranges::equal(a->loops, b->loops, same_loop) &&
         std::ranges::equal(a->args, b->args, structurally_equal);
}

}  // namespace val

int Kernel::find(std::string_view tensor_name) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == tensor_name) return static_cast<int>(i);
  return -1;
}

}  // namespace dlc
