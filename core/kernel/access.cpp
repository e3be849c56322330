#include "dlc/kernel/access.h"

#include <algorithm>
#include <limits>

#include "dlc/base/checked.h"
#include "dlc/kernel/condition.h"
#include "typing.h"

namespace dlc {

AccessMap access_map(const std::vector<Val>& indices) {
  AccessMap map;
  for (const Val& i : indices) map.push_back(val::as_expr(i));
  return map;
}

SymbolSet free_symbols(const Val& v) {
  SymbolSet s;
  for (const Val& a : v->args) s.merge(free_symbols(a));
  if (v->kind == ValKind::index)
    for (auto& name : v->index.symbols()) s.insert(name);
  for (const Loop& l : v->loops) s.erase(l.var);
  return s;
}

// ---- what conditions tell

namespace {

// e >= 0 for an e that is c * symbol + k tightens the symbol's range.
void tighten(const Expr& e, Ranges& ranges) {
  int64_t constant = 0, c = 0;
  std::string_view symbol;
  for (const Term& t : e.terms()) {
    if (t.factors.empty()) {
      constant = t.coefficient;
      continue;
    }
    if (!symbol.empty() || t.factors.size() != 1 || t.factors[0].kind() != AtomKind::symbol) return;
    symbol = t.factors[0].name();
    c = t.coefficient;
  }
  if (symbol.empty() || constant == std::numeric_limits<int64_t>::min() || c == std::numeric_limits<int64_t>::min())
    return;
  Range& r = ranges[std::string(symbol)];
  if (c > 0)
    r.bounds.lo = std::max(r.bounds.lo, ceil_div(-constant, c));
  else
    r.bounds.hi = std::min(r.bounds.hi, floor_div(constant, -c));
}

void learn(const Expr& nonnegative, Known& known) {
  if (!nonnegative.valid() || nonnegative.constant()) return;
  known.nonnegative.push_back(nonnegative);
  tighten(nonnegative, known.ranges);
}

void learn_condition(const Val& condition, bool holds, Known& known) {
  if (condition->kind == ValKind::unary && condition->unary_op() == UnaryOp::logical_not)
    return learn_condition(condition->args[0], !holds, known);
  if (condition->kind != ValKind::binary) return;
  const BinaryOp op = condition->binary_op();
  if ((op == BinaryOp::logical_and && holds) || (op == BinaryOp::logical_or && !holds)) {
    for (const Val& a : condition->args) learn_condition(a, holds, known);
    return;
  }
  if (!typing::is_comparison(op)) return;
  const auto a = val::as_expr(condition->args[0]), b = val::as_expr(condition->args[1]);
  if (!a || !b) return;
  if (op == BinaryOp::eq || op == BinaryOp::ne) {
    const Expr up = *a - *b, down = *b - *a;
    if ((op == BinaryOp::eq) == holds) {
      learn(up, known);
      learn(down, known);
    } else if (provably_nonnegative(up, known)) {  // not equal, and no less
      learn(up - 1, known);
    } else if (provably_nonnegative(down, known)) {
      learn(down - 1, known);
    }
    return;
  }
  const Expr e = *nonnegative_form(op, *a, *b);
  learn(holds ? e : -1 - e, known);
}

}  // namespace

Known assuming(const Known& outer, const Val& condition, bool holds) {
  Known k = outer;
  learn_condition(condition, holds, k);
  return k;
}

bool provably_nonnegative(const Expr& e, const Known& known) {
  if (provably_le(0, e, known.ranges)) return true;
  return std::ranges::any_of(known.nonnegative, [&](const Expr& fact) { return provably_le(fact, e, known.ranges); });
}

// ---- reads

namespace {

// What is known at v's argument i.
Known known_at(const ValNode& v, size_t i, const Known& known) {
  if (v.kind == ValKind::select && i > 0) return assuming(known, v.args[0], i == 1);
  if (v.kind == ValKind::binary && i == 1) {
    if (v.binary_op() == BinaryOp::logical_and) return assuming(known, v.args[0], true);
    if (v.binary_op() == BinaryOp::logical_or) return assuming(known, v.args[0], false);
  }
  if (v.kind == ValKind::reduce) {
    Known inner = known;
    add_loop_ranges(v.loops, inner.ranges);
    return inner;
  }
  return known;
}

void collect_reads(const Val& v, const Known& known, bool caught, std::vector<ReadSite>& out) {
  for (size_t i = 0; i < v->args.size(); ++i)
    collect_reads(v->args[i], known_at(*v, i, known), caught || (v->kind == ValKind::orelse && i == 0), out);
  if (v->kind == ValKind::read) out.push_back({v, access_map(v->args), known, caught});
}

bool nonzero(const Val& divisor, const Known& known) {
  if (typing::is_literal(divisor)) return typing::as_double(divisor) != 0;
  const auto e = val::as_expr(divisor);
  return e && (provably_nonnegative(*e - 1, known) || provably_nonnegative(-*e - 1, known));
}

// The operator itself gives a value whenever its operands have one.
bool operator_defined(const ValNode& v, const Known& known) {
  if (v.kind == ValKind::call)
    return (v.fn() != Fn::tdiv && v.fn() != Fn::fmod) || v.type.is_float() || nonzero(v.args[1], known);
  // Nothing has no largest element to point at.
  if (v.kind == ValKind::reduce && (v.reduce_op() == ReduceOp::argmax || v.reduce_op() == ReduceOp::argmin))
    return std::ranges::all_of(v.loops, [&](const Loop& l) { return provably_lt(0, l.extent, known.ranges); });
  if (v.kind != ValKind::binary) return true;
  switch (v.binary_op()) {
    case BinaryOp::floor_div:
    case BinaryOp::mod:
      return nonzero(v.args[1], known);
    case BinaryOp::shl:
    case BinaryOp::shr: {
      const auto count = val::as_expr(v.args[1]);
      return count && provably_nonnegative(*count, known) && provably_nonnegative(Expr(63) - *count, known);
    }
    default:
      return true;
  }
}

}  // namespace

std::vector<ReadSite> reads(const Val& v, const Known& known) {
  std::vector<ReadSite> out;
  collect_reads(v, known, false, out);
  return out;
}

bool provably_in_bounds(const AccessMap& access, const std::vector<Expr>& shape, const Known& known) {
  if (access.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!access[d] || !provably_nonnegative(*access[d], known)) return false;
    if (!provably_lt(*access[d], shape[d], known.ranges) && !provably_nonnegative(shape[d] - 1 - *access[d], known))
      return false;
  }
  return true;
}

bool provably_defined(const Val& v, const Kernel& k, const Known& known) {
  switch (v->kind) {
    case ValKind::undef:
      return false;
    case ValKind::index:
      return !typing::may_divide_by_zero(v->index, known.ranges);
    case ValKind::orelse:
      return provably_defined(v->args[0], k, known) || provably_defined(v->args[1], k, known);
    case ValKind::read:
      if (!provably_in_bounds(access_map(v->args), k.tensors[static_cast<size_t>(v->tensor)].shape, known))
        return false;
      break;
    default:
      break;
  }
  for (size_t i = 0; i < v->args.size(); ++i)
    if (!provably_defined(v->args[i], k, known_at(*v, i, known))) return false;
  return operator_defined(*v, known);
}

// ---- footprints

namespace {

Expr of_atom(Atom a) {
  const auto args = a.args();
  switch (a.kind()) {
    case AtomKind::symbol:
      return Expr::symbol(a.name());
    case AtomKind::floor_div:
      return floor_div(args[0], args[1]);
    case AtomKind::mod:
      return mod(args[0], args[1]);
    case AtomKind::min:
      return min(args[0], args[1]);
    case AtomKind::max:
      return max(args[0], args[1]);
    case AtomKind::select:
      return select_nonneg(args[0], args[1], args[2]);
  }
  return Expr::invalid();
}

std::optional<Span> span_of(const Expr& index, const std::map<std::string, Expr, std::less<>>& tile,
                            const Ranges& ranges) {
  // v runs as v + v.in: v is the first point, v.in the place inside the tile.
  std::map<std::string, Expr, std::less<>> values;
  std::vector<std::string> inner;
  Ranges all = ranges;
  for (const auto& [v, extent] : tile) {
    inner.push_back(v + ".in");
    values.insert_or_assign(v, Expr::symbol(v) + Expr::symbol(inner.back()));
    add_loop_ranges({{inner.back(), extent}}, all);
  }
  const Expr e = simplify(substitute(index, values), all);
  if (const auto form = affine(e, inner)) {
    Expr low = form->base, reach = 0;
    bool constant = true;
    for (size_t i = 0; i < inner.size(); ++i) {
      const auto c = form->coefficients[i].constant();
      constant = constant && c;
      if (!c) break;
      const Expr last = (tile.find(std::string_view(inner[i]).substr(0, inner[i].size() - 3))->second - 1) * *c;
      if (*c < 0) low += last;
      reach += *c < 0 ? -last : last;
    }
    if (constant && low.valid() && reach.valid()) return Span{low, reach + 1};
  }
  // Not affine: the part free of the tile's inside is the base, the rest must have numeric bounds.
  Expr base = 0, rest = 0;
  for (const Term& t : e.terms()) {
    Expr term = t.coefficient;
    for (const Atom a : t.factors) term = term * of_atom(a);
    const bool inside = std::ranges::any_of(inner, [&](const std::string& v) { return term.mentions(v); });
    (inside ? rest : base) += term;
  }
  const Interval i = bounds(rest, all);
  if (i.lo == Interval::kNegInf || i.hi == Interval::kPosInf) return std::nullopt;
  const Span s{base + i.lo, Expr(i.hi) - i.lo + 1};
  return s.base.valid() && s.extent.valid() ? std::optional(s) : std::nullopt;
}

}  // namespace

std::vector<std::optional<Span>> footprint(const AccessMap& access,
                                           const std::map<std::string, Expr, std::less<>>& tile, const Ranges& ranges) {
  std::vector<std::optional<Span>> spans;
  for (const auto& index : access) spans.push_back(index ? span_of(*index, tile, ranges) : std::nullopt);
  return spans;
}

}  // namespace dlc
