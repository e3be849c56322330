// Instructions and the operators of a value.
#include "core/interp/builder.h"

namespace dlc::interp {

int Builder::add(Instr::Fn fn, Ty ty, std::initializer_list<int> operands, Interval range, Instr i) {
  int level = 0;
  bool uniform = true;
  int* slot[] = {&i.a, &i.b, &i.c};
  bool* flag[] = {&i.a_uniform, &i.b_uniform, &i.c_uniform};
  int n = 0;
  for (const int r : operands) {
    level = std::max(level, reg(r).level);
    uniform &= reg(r).uniform;
    *slot[n] = r;
    *flag[n++] = reg(r).uniform;
  }
  i.fn = fn;
  return place(std::move(i), ty, uniform, level, range);
}

int Builder::place(Instr i, Ty ty, bool uniform, int level, Interval range) {
  level = pinned(level);
  i.uniform = uniform;
  i.dst = new_reg(ty, uniform, level, range);
  levels_[static_cast<size_t>(level)].block->push_back(std::move(i));
  return static_cast<int>(p_.regs.size()) - 1;
}

Ty Builder::work_type(Ty ty, std::initializer_list<int> operands, const Interval& range) const {
  if (ty != Ty::s64) return ty;
  for (const int r : operands)
    if (reg(r).ty != Ty::s32) return Ty::s64;
  return fits_s32(range) ? Ty::s32 : Ty::s64;
}

int Builder::emit(const Node& n) {
  switch (n.kind) {
    case NodeKind::constant:
      return emit_constant(n);
    case NodeKind::index:
      return emit_index(n.expr);
    case NodeKind::read:
      return emit_read(n);
    case NodeKind::unary:
      return emit_unary(n);
    case NodeKind::binary:
      return emit_binary(n);
    case NodeKind::select:
      return emit_select(n);
    case NodeKind::orelse:
      return emit_orelse(n);
    case NodeKind::call:
      return emit_call(n);
    case NodeKind::cast:
      return emit_cast(n);
    case NodeKind::reduce:
      return emit_reduce(n);
    case NodeKind::undef:
      break;
  }
  return place({.fn = undef_op}, n.ty, true, 0);
}

int Builder::emit_constant(const Node& n) {
  Interval range;
  Ty ty = n.ty;
  if (ty == Ty::s64) {
    range = {n.constant.s64, n.constant.s64};
    if (fits_s32(range)) ty = Ty::s32;
  }
  Instr i;
  i.constant = n.constant;
  i.fn = constant_op(ty);
  return place(std::move(i), ty, true, 0, range);
}

int Builder::arithmetic(BinaryOp op, int a, int b) {
  const Interval range = combine(op, reg(a).range, reg(b).range);
  const Ty ty = work_type(Ty::s64, {a, b}, range);
  const bool defined = reg(b).range.lo > 0 || reg(b).range.hi < 0;
  return add(binary_op(op, ty, defined), ty, {as(a, ty), as(b, ty)}, range);
}

int Builder::extreme(Fn fn, int a, int b) {
  const Interval &x = reg(a).range, &y = reg(b).range;
  const Interval range = fn == Fn::min ? Interval{std::min(x.lo, y.lo), std::min(x.hi, y.hi)}
                                       : Interval{std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  const Ty ty = work_type(Ty::s64, {a, b}, range);
  return add(call_op(fn, ty), ty, {as(a, ty), as(b, ty)}, range);
}

int Builder::emit_unary(const Node& n) {
  const int a = emit(n.args[0]);
  Interval range;
  if (n.unary_op() == UnaryOp::neg) range = combine(BinaryOp::sub, {0, 0}, reg(a).range);
  if (n.unary_op() == UnaryOp::bit_not) range = combine(BinaryOp::sub, {-1, -1}, reg(a).range);
  const Ty ty = work_type(n.ty, {a}, range);
  return add(unary_op(n.unary_op(), ty), ty, {as(a, ty)}, range);
}

int Builder::emit_binary(const Node& n) {
  const BinaryOp op = n.binary_op();
  const int a = emit(n.args[0]), b = emit(n.args[1]);
  const Ty operand = n.args[0].ty;
  if (n.ty == Ty::b) {
    const bool narrow = operand == Ty::s64 && reg(a).ty == Ty::s32 && reg(b).ty == Ty::s32;
    const Ty ty = narrow ? Ty::s32 : operand;
    return add(binary_op(op, ty), Ty::b, {as(a, ty), as(b, ty)});
  }
  if (operand == Ty::s64 && (op <= BinaryOp::mod)) return arithmetic(op, a, b);
  const bool is_shift = op == BinaryOp::shl || op == BinaryOp::shr;
  const bool defined = is_shift && reg(b).range.lo >= 0 && reg(b).range.hi <= 63;
  return add(binary_op(op, n.ty, defined), n.ty, {as(a, n.ty), as(b, n.ty)});
}

int Builder::emit_select(const Node& n) {
  const int c = emit(n.args[0]);
  const bool worth = !is_cheap(n.args[1]) || !is_cheap(n.args[2]);
  if (reg(c).uniform && worth) return emit_branch(n, c);
  const int a = emit(n.args[1]), b = emit(n.args[2]);
  const Interval range = hull(a, b);
  const Ty ty = work_type(n.ty, {a, b}, range);
  return add(select_op(ty), ty, {c, as(a, ty), as(b, ty)}, range);
}

int Builder::emit_branch(const Node& n, int condition) {
  const auto slots = free_slots(n);
  const int level = std::max(reg(condition).level, level_of(slots));
  const bool uniform = !varies(slots);
  Cut cut = cut_above(level);
  auto nest = std::make_unique<Nest>();
  for (int side = 0; side < 2; ++side) nest->blocks.push_back(std::make_unique<Block>());
  const auto on_side = [&](int side, auto&& build) {
    levels_.push_back({nest->blocks[static_cast<size_t>(side)].get(), {}});
    pins_.push_back({level, level + 1});
    const int r = build();
    pins_.pop_back();
    levels_.pop_back();
    return r;
  };
  int a = on_side(0, [&] { return emit(n.args[1]); });
  int b = on_side(1, [&] { return emit(n.args[2]); });
  const Interval range = hull(a, b);
  const Ty ty = work_type(n.ty, {a, b}, range);
  a = on_side(0, [&] { return as(a, ty); });
  b = on_side(1, [&] { return as(b, ty); });
  restore(level, std::move(cut));
  Instr i;
  i.fn = branch_op(ty);
  i.a = condition, i.b = a, i.c = b;
  i.a_uniform = true, i.b_uniform = reg(a).uniform, i.c_uniform = reg(b).uniform;
  i.nest = std::move(nest);
  return place(std::move(i), ty, uniform, level, range);
}

int Builder::emit_orelse(const Node& n) {
  const int a = emit(n.args[0]), b = emit(n.args[1]);
  const Interval range = hull(a, b);
  const Ty ty = work_type(n.ty, {a, b}, range);
  return add(orelse_op(ty), ty, {as(a, ty), as(b, ty)}, range);
}

int Builder::emit_call(const Node& n) {
  int a = emit(n.args[0]);
  const Fn fn = n.fn();
  const Ty operand = n.args[0].ty;
  if (fn == Fn::is_nan || fn == Fn::is_inf) return add(call_op(fn, operand), Ty::b, {as(a, operand)});
  if (fn == Fn::min || fn == Fn::max) {
    for (size_t k = 1; k < n.args.size(); ++k) {
      const int b = emit(n.args[k]);
      a = n.ty == Ty::s64 ? extreme(fn, a, b) : add(call_op(fn, n.ty), n.ty, {a, b});
    }
    return a;
  }
  a = as(a, n.ty);
  if (n.args.size() == 1) return add(call_op(fn, n.ty), n.ty, {a});
  return add(call_op(fn, n.ty), n.ty, {a, as(emit(n.args[1]), n.ty)});
}

int Builder::emit_cast(const Node& n) {
  const int a = emit(n.args[0]);
  const Ty from = reg(a).ty;
  Interval range;
  Ty ty = n.ty;
  if (n.to.is_int() && n.ty == Ty::s64) {
    range = type_range(n.to);
    if (!is_float(from) && from != Ty::u64 && from != Ty::b && reg(a).range.lo >= range.lo &&
        reg(a).range.hi <= range.hi)
      return a;  // it fits already
    if (fits_s32(range)) ty = Ty::s32;
  }
  Instr i;
  i.to = n.to;
  i.saturate = n.saturate;
  return add(cast_op(from, ty), ty, {a}, range, std::move(i));
}

}  // namespace dlc::interp
