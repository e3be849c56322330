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

Interval value_range(const Val& v, const Kernel& k, const Ranges& symbols) { return ValueRanges(k, symbols).of(v); }

const Interval& ValueRanges::of(const Val& v) {
  const auto it = known_.find(v);
  return it != known_.end() ? it->second : known_.emplace(v, compute(v)).first->second;
}

Interval ValueRanges::compute(const Val& v) {
  const auto arg = [&](size_t i) { return of(v->args[i]); };
  switch (v->kind) {
    case ValKind::integer:
      return {v->integer, v->integer};
    case ValKind::index:
      return bounds(v->index, symbols_);
    case ValKind::read:
      return of_type(k_.tensors[static_cast<size_t>(v->tensor)].dtype);
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
  ValueRanges ranges(k, symbols);
  return canonical(v, ranges);
}

Val canonical(const Val& v, ValueRanges& ranges) {
  return rewrite(v, [&](const Val& n) -> Val {
    if (n->kind == ValKind::cast && n->args[0]->type == n->type && fits(ranges.of(n->args[0]), n->to))
      return n->args[0];
    if (n->kind == ValKind::call && n->args.size() == 2 && n->type == kS64) {
      const Interval a = ranges.of(n->args[0]), b = ranges.of(n->args[1]);
      if (n->fn() == Fn::min && a.hi <= b.lo) return n->args[0];
      if (n->fn() == Fn::min && b.hi <= a.lo) return n->args[1];
      if (n->fn() == Fn::max && a.lo >= b.hi) return n->args[0];
      if (n->fn() == Fn::max && b.lo >= a.hi) return n->args[1];
    }
    return nullptr;
  });
}

namespace {

class Sharer {
 public:
  Val operator()(const Val& v) {
    if (const auto it = known_.find(v.get()); it != known_.end()) return it->second;
    std::vector<Val> args;
    for (const Val& a : v->args) args.push_back((*this)(a));
    Val same = v;
    if (args != v->args) {
      auto copy = std::make_shared<ValNode>(*v);
      copy->args = std::move(args);
      same = std::move(copy);
    }
    auto& alike = nodes_[hash(*same)];
    const auto it = std::ranges::find_if(alike, [&](const Val& o) { return val::structurally_equal(o, same); });
    if (it == alike.end())
      alike.push_back(same);
    else
      same = *it;
    known_.emplace(v.get(), same);
    return same;
  }

 private:
  // Of the node itself: its parts are shared already.
  static size_t hash(const ValNode& v) {
    size_t h = static_cast<size_t>(v.kind) * 31 + v.op;
    const auto mix = [&](size_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15u, h ^= h >> 29; };
    mix(static_cast<size_t>(v.tensor));
    mix(static_cast<size_t>(v.integer));
    mix(std::hash<const void*>()(v.index.node()));
    for (const Val& a : v.args) mix(std::hash<const void*>()(a.get()));
    return h;
  }

  std::unordered_map<const ValNode*, Val> known_;
  std::unordered_map<size_t, std::vector<Val>> nodes_;
};

}  // namespace

Val shared(const Val& v) { return Sharer()(v); }

std::string short_text(const Val& v, const Kernel& k) {
  std::string s = print(v, k);
  return s.size() > 80 ? s.substr(0, 77) + "..." : s;
}

bool is_scalar(const Val& v) {
  bool scalar = true;
  walk(v, [&](const ValNode& n) { scalar &= n.kind != ValKind::read && n.kind != ValKind::reduce; });
  return scalar;
}

}  // namespace dlc::map
