#include "core/map/value.h"

#include <algorithm>

#include "dlc/base/checked.h"

namespace dlc::map {

namespace {

constexpr Interval kWhole{Interval::kNegInf, Interval::kPosInf};

bool bounded(const Interval& i) { return i.lo != Interval::kNegInf && i.hi != Interval::kPosInf; }

Interval hull(std::initializer_list<std::optional<int64_t>> corners) {
  Interval out{Interval::kPosInf, Interval::kNegInf};
  for (const auto& c : corners) {
    if (!c) return kWhole;
    out = {std::min(out.lo, *c), std::max(out.hi, *c)};
  }
  return out;
}

Interval join(const Interval& a, const Interval& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval of_type(DType t) { return t.is_int() && t.bits < 64 ? Interval{t.min_value(), t.max_value()} : kWhole; }

Interval of_binary(BinaryOp op, const Interval& a, const Interval& b) {
  if (!bounded(a) || !bounded(b)) return kWhole;
  switch (op) {
    case BinaryOp::add:
      return hull({checked_add(a.lo, b.lo), checked_add(a.hi, b.hi)});
    case BinaryOp::sub:
      if (b.lo == INT64_MIN || b.hi == INT64_MIN) return kWhole;
      return hull({checked_add(a.lo, -b.hi), checked_add(a.hi, -b.lo)});
    case BinaryOp::mul:
      return hull({checked_mul(a.lo, b.lo), checked_mul(a.lo, b.hi), checked_mul(a.hi, b.lo), checked_mul(a.hi, b.hi)});
    default:
      return kWhole;
  }
}

}  // namespace

Interval value_range(const Val& v, const Kernel& k, const Ranges& symbols) {
  const auto arg = [&](size_t i) { return value_range(v->args[i], k, symbols); };
  switch (v->kind) {
    case ValKind::integer:
      return {v->integer, v->integer};
    case ValKind::index:
      return bounds(v->index, symbols);
    case ValKind::read:
      return of_type(k.tensors[static_cast<size_t>(v->tensor)].dtype);
    case ValKind::binary:
      return of_binary(v->binary_op(), arg(0), arg(1));
    case ValKind::select:
      return join(arg(1), arg(2));
    case ValKind::orelse:
      return join(arg(0), arg(1));
    case ValKind::call: {
      if (v->args.size() != 2 || (v->fn() != Fn::min && v->fn() != Fn::max)) return kWhole;
      const Interval a = arg(0), b = arg(1);
      if (v->fn() == Fn::min) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case ValKind::cast:
      return v->args[0]->type.is_int() && fits(arg(0), v->to) ? arg(0) : of_type(v->to);
    case ValKind::reduce:
      if (v->reduce_op() == ReduceOp::max || v->reduce_op() == ReduceOp::min) return arg(0);
      return of_type(v->to);
    default:
      return kWhole;
  }
}

bool fits(const Interval& range, DType t) {
  if (!t.is_int()) return false;
  if (t == kS64) return true;
  return bounded(range) && range.lo >= t.min_value() && range.hi <= t.max_value();
}

Val canonical(const Val& v, const Kernel& k, const Ranges& symbols) {
  return rewrite(v, [&](const Val& n) -> Val {
    if (n->kind == ValKind::cast && n->args[0]->type == n->type && fits(value_range(n->args[0], k, symbols), n->to))
      return n->args[0];
    if (n->kind == ValKind::call && n->args.size() == 2 && n->type == kS64) {
      const Interval a = value_range(n->args[0], k, symbols), b = value_range(n->args[1], k, symbols);
      if (n->fn() == Fn::min && a.hi <= b.lo) return n->args[0];
      if (n->fn() == Fn::min && b.hi <= a.lo) return n->args[1];
      if (n->fn() == Fn::max && a.lo >= b.hi) return n->args[0];
      if (n->fn() == Fn::max && b.lo >= a.hi) return n->args[1];
    }
    return nullptr;
  });
}

bool is_scalar(const Val& v) {
  bool scalar = true;
  walk(v, [&](const ValNode& n) { scalar &= n.kind != ValKind::read && n.kind != ValKind::reduce; });
  return scalar;
}

}  // namespace dlc::map
