#include "dlc/lower/lowered.h"

#include <algorithm>

#include "dlc/base/checked.h"

namespace dlc::lower {

namespace {

constexpr int64_t kInf = Interval::kPosInf, kNegInf = Interval::kNegInf;

bool finite(const Interval& i) { return i.lo != kNegInf && i.hi != kInf; }
Interval hull(const Interval& a, const Interval& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

// The interval of {f(x, y)} over the corners, or everything when a corner overflows.
template <class F>
Interval corners(const Interval& a, const Interval& b, F&& f) {
  if (!finite(a) || !finite(b)) return {};
  Interval r{kInf, kNegInf};
  for (int64_t x : {a.lo, a.hi}) {
    for (int64_t y : {b.lo, b.hi}) {
      const std::optional<int64_t> v = f(x, y);
      if (!v) return {};
      r = hull(r, {*v, *v});
    }
  }
  return r;
}

Interval of_dtype(DType t) {
  return t.bits == 64 && !t.is_signed() ? Interval{} : Interval{t.min_value(), t.max_value()};
}

std::optional<Expr> byte_strides(const KernelTensor& t, std::vector<Expr>& strides) {
  if (t.view) {
    strides = t.view->byte_strides;
    return t.view->byte_offset;
  }
  strides.assign(t.shape.size(), Expr(t.dtype.bytes()));
  for (size_t d = t.shape.size(); d-- > 1;) strides[d - 1] = strides[d] * t.shape[d];
  return Expr(0);
}

}  // namespace

int bytes_of(Rep r) {
  switch (r) {
    case Rep::b1:
    case Rep::i8:
      return 1;
    case Rep::i16:
      return 2;
    case Rep::i32:
    case Rep::f32:
      return 4;
    default:
      return 8;
  }
}

DType Lowered::store_type() const { return kernel_->tensors[static_cast<size_t>(target_)].dtype; }

VarSet Lowered::bit(std::string_view var) const {
  const auto it = bits_.find(var);
  return it == bits_.end() ? 0 : VarSet{1} << it->second;
}

VarSet Lowered::vars(const Expr& e) const {
  VarSet r = 0;
  for (const std::string& s : e.symbols()) r |= bit(s);
  return r;
}

// A store rounds to a narrow float by itself.
static const Val& without_store_cast(const Val& v, DType stored) {
  const bool rounds = v->kind == ValKind::cast && v->to == stored && stored.is_narrow_float();
  return rounds && v->args[0]->type.is_float() ? v->args[0] : v;
}

// What is assumed of the symbols as ranges: P >= 0, and S <= 512 - P, which bounds one of them by the others.
void assume(const std::vector<Expr>& nonnegative, Ranges& ranges) {
  for (const Expr& e : nonnegative) {
    for (const std::string& name : e.symbols()) {
      const Expr s = Expr::symbol(name), least = s - e, most = e + s;
      Range& r = ranges.emplace(name, Range(Interval::kNegInf, kInf)).first->second;
      if (const auto n = least.constant()) r.bounds.lo = std::max(r.bounds.lo, *n);
      if (most.mentions(name)) continue;
      if (const auto n = most.constant()) r.bounds.hi = std::min(r.bounds.hi, *n);
      if (most.constant() || r.upper != nullptr) continue;
      r.upper = most.node();
      break;
    }
  }
}

Result<Lowered> Lowered::make(const Kernel& k, const Stmt& stmt, const std::vector<Loop>& around) {
  Lowered l;
  l.kernel_ = &k;
  l.target_ = stmt.tensor;
  l.loops_ = stmt.loops;
  l.value_ = without_store_cast(stmt.value, l.store_type());
  l.store_indices_ = stmt.indices;
  for (const KernelTensor& t : k.tensors)
    for (const Expr& d : t.shape)
      for (const std::string& s : d.symbols()) l.ranges_.emplace(s, Range(0, kInf));
  assume(k.assumptions, l.ranges_);
  const auto declare = [&](const std::vector<Loop>& loops) {
    add_loop_ranges(loops, l.ranges_);
    for (const Loop& loop : loops) l.bits_.emplace(loop.var, static_cast<int>(l.bits_.size()));
  };
  declare(around);
  declare(stmt.loops);
  const auto declare_reductions = [&](const ValNode& n) {
    if (n.kind == ValKind::reduce) declare(n.loops);
  };
  walk(l.value_, declare_reductions);
  for (const Val& i : stmt.indices) walk(i, declare_reductions);
  if (l.bits_.size() > 64) return fail({}, "kernel " + k.name + ": a statement with more than 64 loops");

  for (const Val& i : stmt.indices) l.analyse(i);
  l.analyse(l.value_);
  if (!l.error_.empty()) return fail({}, "kernel " + k.name + ": " + l.error_);
  DLC_TRY(l.store_, l.lower_access(stmt.tensor, stmt.indices));
  l.is_copy_ = l.copies_only(l.value_);
  return l;
}

Result<Access> Lowered::lower_access(int tensor, const std::vector<Val>& indices) const {
  Access a;
  a.root = tensor;
  const KernelTensor* t = &kernel_->tensors[static_cast<size_t>(tensor)];
  std::vector<Expr> strides;
  a.offset = *byte_strides(*t, strides);
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr& extent = t->shape[d];
    if (const auto e = val::as_expr(indices[d])) {
      a.offset += *e * strides[d];
      const bool inside = provably_le(Expr(0), *e, ranges_) && provably_lt(*e, extent, ranges_);
      if (!inside) a.checks.push_back({static_cast<int>(d), false, *e, extent});
      continue;
    }
    a.dynamic.push_back(static_cast<int>(d));
    a.dynamic_strides.push_back(strides[d]);
    const Interval range = intervals_.at(indices[d].get());
    const auto n = extent.constant();
    if (!(n && range.lo >= 0 && range.hi < *n)) a.checks.push_back({static_cast<int>(d), true, {}, extent});
  }
  for (int depth = 0; t->view; ++depth) {
    a.root = t->view->base;
    t = &kernel_->tensors[static_cast<size_t>(a.root)];
    if (t->view) a.offset += t->view->byte_offset;
    if (depth > 64) return fail({}, "kernel " + kernel_->name + ": views of views without end");
  }
  if (!a.offset.valid()) return fail({}, "kernel " + kernel_->name + ": an address overflows 64 bits");
  return a;
}

bool Lowered::copies_only(const Val& v) const {
  switch (v->kind) {
    case ValKind::read:
      return kernel_->tensors[static_cast<size_t>(v->tensor)].dtype == store_type() &&
             (store_type().bits == 8 * store_type().bytes());
    case ValKind::undef:
      return true;
    case ValKind::integer:  // a container that the type fills wraps by itself
      return store_type().is_bool() || (store_type().is_int() && (store_type().bits == 8 * store_type().bytes() ||
                                                                  wrap_to(store_type(), v->integer) == v->integer));
    case ValKind::real:
      return store_type() == kF32 || store_type() == kF64;
    case ValKind::select:
      return copies_only(v->args[1]) && copies_only(v->args[2]);
    case ValKind::orelse:
      return copies_only(v->args[0]) && copies_only(v->args[1]);
    default:
      return false;
  }
}

Interval Lowered::interval_of(const ValNode& v) const {
  const auto arg = [&](size_t i) { return intervals_.at(v.args[i].get()); };
  switch (v.kind) {
    case ValKind::integer:
      return {v.integer, v.integer};
    case ValKind::index:
      return bounds(v.index, ranges_);
    case ValKind::read:
      return of_dtype(kernel_->tensors[static_cast<size_t>(v.tensor)].dtype);
    case ValKind::select:
      return hull(arg(1), arg(2));
    case ValKind::orelse:
      return hull(arg(0), arg(1));
    case ValKind::cast: {
      const Interval to = v.to.is_float() ? Interval{} : of_dtype(v.to);
      if (v.args[0]->type.is_int() && finite(arg(0)) && arg(0).lo >= to.lo && arg(0).hi <= to.hi) return arg(0);
      return to;
    }
    case ValKind::unary:
      if (v.unary_op() == UnaryOp::neg)
        return corners(arg(0), {0, 0},
                       [](int64_t x, int64_t) { return x == kNegInf ? std::nullopt : std::optional(-x); });
      if (v.unary_op() == UnaryOp::bit_not)
        return corners(arg(0), {0, 0}, [](int64_t x, int64_t) { return std::optional(~x); });
      return {};
    case ValKind::binary: {
      const Interval a = v.args[0]->type.is_float() ? Interval{} : arg(0);
      const Interval b = v.args[1]->type.is_float() ? Interval{} : arg(1);
      switch (v.binary_op()) {
        case BinaryOp::add:
          return corners(a, b, checked_add);
        case BinaryOp::sub:
          return corners(a, b, [](int64_t x, int64_t y) {
            int64_t r;
            return __builtin_sub_overflow(x, y, &r) ? std::nullopt : std::optional(r);
          });
        case BinaryOp::mul:
          return corners(a, b, checked_mul);
        case BinaryOp::floor_div:
          if (b.lo <= 0) return {};
          return corners(a, b, [](int64_t x, int64_t y) { return std::optional(floor_div(x, y)); });
        case BinaryOp::mod:
          return b.lo > 0 && b.hi != kInf ? Interval{0, b.hi - 1} : Interval{};
        case BinaryOp::bit_and:
          if (b.lo >= 0 && b.hi != kInf) return {0, b.hi};
          return a.lo >= 0 && a.hi != kInf ? Interval{0, a.hi} : Interval{};
        case BinaryOp::shr:
          return b.lo >= 0 && b.hi <= 63 ? corners(a, b, [](int64_t x, int64_t y) { return std::optional(x >> y); })
                                         : Interval{};
        default:
          return {};
      }
    }
    case ValKind::call: {
      if (v.type.is_float()) return {};
      switch (v.fn()) {
        case Fn::min:
        case Fn::max: {
          Interval r = arg(0);
          for (size_t i = 1; i < v.args.size(); ++i) {
            const Interval b = arg(i);
            r = v.fn() == Fn::min ? Interval{std::min(r.lo, b.lo), std::min(r.hi, b.hi)}
                                  : Interval{std::max(r.lo, b.lo), std::max(r.hi, b.hi)};
          }
          return r;
        }
        case Fn::abs:
          return finite(arg(0)) && arg(0).lo > kNegInf + 1
                     ? Interval{0, std::max(std::abs(arg(0).lo), std::abs(arg(0).hi))}
                     : Interval{};
        case Fn::sign:
          return {-1, 1};
        case Fn::floor:
        case Fn::ceil:
        case Fn::round:
        case Fn::trunc:
          return v.args[0]->type.is_int() ? arg(0) : Interval{};
        default:
          return {};
      }
    }
    case ValKind::reduce: {
      const ReduceOp op = v.reduce_op();
      if (op == ReduceOp::argmax || op == ReduceOp::argmin) {
        const Interval extent = bounds(v.loops.front().extent, ranges_);
        return extent.hi == kInf ? Interval{} : Interval{0, std::max<int64_t>(extent.hi, 0)};
      }
      if (!v.type.is_int()) return {};
      const Interval body = arg(0), to = of_dtype(v.to);
      if (op == ReduceOp::sum && finite(body)) {
        std::optional<int64_t> count = 1;
        for (const Loop& loop : v.loops) {
          const auto n = loop.extent.constant();
          count = count && n && *n >= 0 ? checked_mul(*count, *n) : std::nullopt;
        }
        if (count) {
          const Interval sum = hull({0, 0}, corners(body, {*count, *count}, checked_mul));
          if (finite(sum) && sum.lo >= to.lo && sum.hi <= to.hi) return sum;
        }
      }
      return to;
    }
    default:
      return {};
  }
}

void Lowered::analyse(const Val& v) {
  if (vars_.contains(v.get())) return;
  VarSet vars = 0;
  bool undefined = false, computes = false, reduces = v->kind == ValKind::reduce;
  for (const Val& a : v->args) {
    analyse(a);
    vars |= vars_.at(a.get());
    undefined |= undefined_.at(a.get());
    computes |= computes_.at(a.get());
    reduces |= reduces_.at(a.get());
  }
  intervals_[v.get()] = v->type.is_float() ? Interval{} : interval_of(*v);
  switch (v->kind) {
    case ValKind::index:
      vars |= this->vars(v->index);
      break;
    case ValKind::read: {
      auto access = lower_access(v->tensor, v->args);
      if (!access) {
        error_ = access.error().message();
        access = Access{};
      }
      undefined |= !access->checks.empty();
      computes = true;
      accesses_[v.get()] = std::move(*access);
      break;
    }
    case ValKind::orelse:
      undefined = undefined_.at(v->args[1].get());
      break;
    case ValKind::undef:
      undefined = true;
      break;
    case ValKind::binary: {
      const BinaryOp op = v->binary_op();
      if (op == BinaryOp::floor_div || op == BinaryOp::mod) {
        const Val& b = v->args[1];
        const Interval r = intervals_.at(b.get());
        const bool nonzero_real = b->kind == ValKind::real && b->real != 0;
        undefined |= b->type.is_float() ? !nonzero_real : r.lo <= 0 && r.hi >= 0;
      }
      if (op == BinaryOp::shl || op == BinaryOp::shr) {
        const Interval r = intervals_.at(v->args[1].get());
        undefined |= r.lo < 0 || r.hi > 63;
      }
      break;
    }
    case ValKind::call: {
      computes = true;
      if (v->fn() == Fn::tdiv || (v->fn() == Fn::fmod && !v->type.is_float())) {
        const Interval r = intervals_.at(v->args[1].get());
        undefined |= r.lo <= 0 && r.hi >= 0;
      }
      break;
    }
    case ValKind::reduce:
      computes = true;
      for (const Loop& loop : v->loops) vars |= this->vars(loop.extent);
      for (const Loop& loop : v->loops) vars &= ~bit(loop.var);
      break;
    default:
      break;
  }
  vars_[v.get()] = vars;
  undefined_[v.get()] = undefined;
  computes_[v.get()] = computes;
  reduces_[v.get()] = reduces;
  const Interval i = intervals_[v.get()];
  Rep rep = Rep::i64;
  if (v->type.is_bool())
    rep = Rep::b1;
  else if (v->type.is_float())
    rep = v->type == kF64 ? Rep::f64 : Rep::f32;
  else if (v->type != kU64 && i.lo >= INT32_MIN && i.hi <= INT32_MAX)
    rep = Rep::i32;
  reps_[v.get()] = rep;
}

std::optional<int64_t> Lowered::stride(const Access& a, std::string_view var) const {
  const std::string name(var);
  const auto form = affine(a.offset, std::span(&name, 1));
  if (!form) return std::nullopt;
  return form->coefficients[0].constant();
}

void Lowered::collapse_loops() {
  for (size_t i = loops_.size(); i-- > 1;) {
    // The inner loop takes the place of both, so the one before it is next in line.
    try_collapse(i - 1);
  }
}

bool Lowered::try_collapse(size_t outer) {
  const Loop a = loops_[outer], b = loops_[outer + 1];
  const auto walks_as_one = [&](const Access& access) {
    const std::string names[] = {a.var, b.var};
    const auto form = affine(access.offset, names);
    if (!form || !(form->coefficients[0] == form->coefficients[1] * b.extent)) return false;
    for (const Check& c : access.checks)
      if (c.index.mentions(a.var) || c.index.mentions(b.var)) return false;
    return true;
  };
  if (b.extent.mentions(a.var) || !walks_as_one(store_)) return false;
  for (const Loop& l : loops_)
    if (l.extent.mentions(a.var) || l.extent.mentions(b.var)) return false;
  const VarSet both = bit(a.var) | bit(b.var);
  for (const auto& [node, access] : accesses_)
    if ((vars_.at(node) & both) && !walks_as_one(access)) return false;
  bool elsewhere = false;
  const auto uses = [&](const ValNode& n) {
    if (n.kind == ValKind::index && (vars(n.index) & both)) elsewhere = true;
    if (n.kind == ValKind::reduce)
      for (const Loop& l : n.loops) elsewhere |= (vars(l.extent) & both) != 0;
  };
  // Index nodes below reads are covered by the accesses, unless the read has data-dependent parts.
  const std::function<void(const Val&)> visit = [&](const Val& v) {
    uses(*v);
    for (const Val& arg : v->args) {
      if (v->kind == ValKind::read && val::as_expr(arg)) continue;
      visit(arg);
    }
  };
  visit(value_);
  for (const Val& i : store_indices_)
    if (!val::as_expr(i)) visit(i);
  if (elsewhere) return false;

  const std::map<std::string, Expr, std::less<>> zero{{a.var, Expr(0)}};
  store_.offset = substitute(store_.offset, zero);
  for (auto& [node, access] : accesses_) access.offset = substitute(access.offset, zero);
  for (auto& [node, set] : vars_)
    if (set & bit(a.var)) set = (set & ~bit(a.var)) | bit(b.var);
  Loop joined{b.var, a.extent * b.extent};
  if (!joined.extent.valid()) return false;
  loops_.erase(loops_.begin() + static_cast<std::ptrdiff_t>(outer));
  loops_[outer] = joined;
  ranges_.erase(a.var);
  ranges_.erase(b.var);
  add_loop_ranges({joined}, ranges_);
  return true;
}

}  // namespace dlc::lower
