#include "core/interp/plan.h"

#include <algorithm>
#include <set>

#include "core/interp/lanes.h"
#include "core/interp/ops.h"

namespace dlc::interp {

namespace {

constexpr size_t kMaxRank = 32;  // as the strips' address code has room for
constexpr Interval kUnknown;

bool fits_s32(const Interval& r) { return r.lo >= INT32_MIN && r.hi <= INT32_MAX && r.lo <= r.hi; }

__extension__ typedef __int128 Wide;

Interval interval_of(Wide lo, Wide hi) {
  if (lo < INT64_MIN || hi > INT64_MAX) return kUnknown;
  return {static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

bool known(const Interval& r) { return r.lo != Interval::kNegInf && r.hi != Interval::kPosInf; }

Interval combine(BinaryOp op, const Interval& a, const Interval& b) {
  if (!known(a) || !known(b)) return kUnknown;
  using W = Wide;
  switch (op) {
    case BinaryOp::add:
      return interval_of(W{a.lo} + b.lo, W{a.hi} + b.hi);
    case BinaryOp::sub:
      return interval_of(W{a.lo} - b.hi, W{a.hi} - b.lo);
    case BinaryOp::mul: {
      const W p[] = {W{a.lo} * b.lo, W{a.lo} * b.hi, W{a.hi} * b.lo, W{a.hi} * b.hi};
      return interval_of(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
    }
    case BinaryOp::floor_div: {  // no larger in magnitude than a
      const W m = std::max(W{a.hi}, -W{a.lo});
      return interval_of(-m, m);
    }
    case BinaryOp::mod:
      return {std::min<int64_t>(0, b.lo), std::max<int64_t>(0, b.hi)};
    default:
      return kUnknown;
  }
}

Interval type_range(DType t) { return t == kU64 ? kUnknown : Interval{t.min_value(), t.max_value()}; }

class Builder {
 public:
  Builder(const Lowered& code, const Task& task) : code_(code), task_(task) {}

  std::optional<Program> build() {
    if (!extents_are_fixed()) return std::nullopt;
    name_loops(*task_.around);
    name_loops(*task_.loops);
    const Lanes lanes = choose_lanes(code_, task_);
    std::vector<LoopCode> lane_loops;
    for (int slot : {lanes.row, lanes.col})
      for (const LoopCode& l : *task_.loops)
        if (l.slot == slot) lane_loops.push_back(l);
    for (const LoopCode& l : *task_.loops)
      if (l.slot != lanes.row && l.slot != lanes.col) p_.loops.push_back(l);
    p_.outer = static_cast<int>(p_.loops.size());
    open({});
    for (int i = 0; i < p_.outer; ++i) open({p_.loops[static_cast<size_t>(i)].slot});
    p_.loops.insert(p_.loops.end(), lane_loops.begin(), lane_loops.end());
    open({lanes.row, lanes.col});
    row_ = lanes.row;
    col_ = lanes.col;
    for (const Level& l : levels_) p_.blocks.push_back(std::unique_ptr<Block>(l.block));

    p_.source = task_.source;
    p_.value = emit(*task_.value);
    p_.value_ty = reg(p_.value).ty;
    p_.value_uniform = reg(p_.value).uniform;
    if (task_.tensor >= 0) {
      const TensorCode& t = code_.tensors[static_cast<size_t>(task_.tensor)];
      p_.store = access(task_.tensor, *task_.indices);
      p_.put = reinterpret_cast<void (*)()>(store_rows(t.elem, p_.value_ty, is_odd_width(t.dtype)));
    }
    if (!ok_) return std::nullopt;
    return std::move(p_);
  }

 private:
  struct Level {
    Block* block;
    std::vector<int> slots;
  };

  struct Pin {
    int from, to;
  };
  // Levels above one, taken off while code is built that only sees the lower ones.
  struct Cut {
    std::vector<Level> levels;
    std::vector<Pin> pins;
  };

  // ---- loops and levels ----

  Cut cut_above(int level) {
    const auto first = levels_.begin() + level + 1;
    Cut c{{first, levels_.end()}, pins_};
    levels_.erase(first, levels_.end());
    std::erase_if(pins_, [&](const Pin& p) { return p.to > level; });
    return c;
  }
  void restore(int level, Cut c) {
    levels_.resize(static_cast<size_t>(level) + 1);
    levels_.insert(levels_.end(), c.levels.begin(), c.levels.end());
    pins_ = std::move(c.pins);
  }

  void open(std::vector<int> slots) { levels_.push_back({new Block, std::move(slots)}); }

  void name_loops(const std::vector<LoopCode>& loops) {
    for (const LoopCode& l : loops) {
      loop_slots_.insert(l.slot);
      ranges_[code_.slots.name(l.slot)] = l.extent.is_constant()
                                              ? Range(0, std::max<int64_t>(0, l.extent.constant() - 1))
                                              : Range(0, Interval::kPosInf);
    }
  }

  // Every extent must follow from the parameters alone.
  bool extents_are_fixed() const {
    std::set<int> bound;
    std::vector<const std::vector<LoopCode>*> all{task_.around, task_.loops};
    collect_loops(*task_.value, all);
    if (task_.indices)
      for (const Node& n : *task_.indices) collect_loops(n, all);
    for (const auto* loops : all)
      for (const LoopCode& l : *loops) bound.insert(l.slot);
    for (const auto* loops : all)
      for (const LoopCode& l : *loops)
        for (const int s : l.extent.slots())
          if (bound.contains(s)) return false;
    return true;
  }
  static void collect_loops(const Node& n, std::vector<const std::vector<LoopCode>*>& out) {
    if (!n.loops.empty()) out.push_back(&n.loops);
    for (const Node& a : n.args) collect_loops(a, out);
  }

  int level_of(int slot) const {
    for (size_t i = levels_.size(); i-- > 0;)
      if (std::ranges::count(levels_[i].slots, slot)) return static_cast<int>(i);
    return 0;
  }
  int level_of(const std::vector<int>& slots) const {
    int level = 0;
    for (int s : slots) level = std::max(level, level_of(s));
    return pinned(level);
  }
  // Inside the side of a branch, what would run at the branch's own level runs in the side's block.
  int pinned(int level) const {
    for (const Pin& p : pins_)
      if (level == p.from) level = p.to;
    return level;
  }
  bool is_lane(int slot) const { return slot >= 0 && (slot == row_ || slot == col_); }
  bool varies(const std::vector<int>& slots) const {
    return std::ranges::any_of(slots, [&](int s) { return is_lane(s); });
  }

  // ---- registers and instructions ----

  const RegInfo& reg(int r) const { return p_.regs[static_cast<size_t>(r)]; }

  int new_reg(Ty ty, bool uniform, int level, Interval range = kUnknown) {
    p_.regs.push_back({ty, uniform, level, range});
    return static_cast<int>(p_.regs.size()) - 1;
  }

  // Appends an instruction of up to three operands at the level where all of them exist.
  int add(Instr::Fn fn, Ty ty, std::initializer_list<int> operands, Interval range = kUnknown, Instr i = {}) {
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

  int place(Instr i, Ty ty, bool uniform, int level, Interval range = kUnknown) {
    level = pinned(level);
    i.uniform = uniform;
    i.dst = new_reg(ty, uniform, level, range);
    levels_[static_cast<size_t>(level)].block->push_back(std::move(i));
    return static_cast<int>(p_.regs.size()) - 1;
  }

  // r in type ty; only s32 and s64 stand for each other.
  int as(int r, Ty ty) {
    if (reg(r).ty == ty) return r;
    return add(convert_op(reg(r).ty, ty), ty, {r}, reg(r).range);
  }

  // The type two integer registers of a node of type ty are computed in, for a result of this range.
  Ty work_type(Ty ty, std::initializer_list<int> operands, const Interval& range) const {
    if (ty != Ty::s64) return ty;
    for (const int r : operands)
      if (reg(r).ty != Ty::s32) return Ty::s64;
    return fits_s32(range) ? Ty::s32 : Ty::s64;
  }

  // ---- values ----

  int emit(const Node& n) {
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

  int emit_constant(const Node& n) {
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

  std::vector<std::string> names_of(const std::vector<int>& slots) const {
    std::vector<std::string> r;
    for (int s : slots) r.push_back(code_.slots.name(s));
    return r;
  }
  std::vector<int> slots_of(const Expr& e) const {
    std::vector<int> r;
    for (const auto& s : e.symbols())
      if (const auto slot = code_.slots.find(s)) r.push_back(*slot);
    std::ranges::sort(r);
    return r;
  }
  std::vector<int> loop_slots_of(const Expr& e) const {
    auto r = slots_of(e);
    std::erase_if(r, [&](int s) { return !loop_slots_.contains(s); });
    return r;
  }
  ExprCode code_of(const Expr& e) const {
    Slots slots = code_.slots;  // every symbol has a slot already
    return ExprCode(e, slots);
  }
  // e = base + sum of terms over `slots`, coefficients over parameters only.
  std::optional<std::vector<Term>> terms_of(const Expr& e, const std::vector<int>& slots, Expr& base) const {
    if (slots.empty()) {
      base = e;
      return std::vector<Term>{};
    }
    const auto names = names_of(slots);
    const auto form = affine(e, names);
    if (!form) return std::nullopt;
    std::vector<Term> terms;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!loop_slots_of(form->coefficients[i]).empty()) return std::nullopt;
      terms.push_back({slots[i], code_of(form->coefficients[i])});
    }
    base = form->base;
    return terms;
  }
  std::vector<int> lanes_in(std::vector<int> slots) const {
    std::erase_if(slots, [&](int s) { return !is_lane(s); });
    return slots;
  }

  int emit_index(const Expr& e) {
    const auto slots = slots_of(e);
    const auto lanes = lanes_in(slots);
    Expr base;
    if (auto terms = terms_of(e, lanes, base)) {
      Instr i;
      i.fn = index_op;
      i.code = code_of(e);
      i.terms = std::move(*terms);
      i.row_slot = row_;
      i.col_slot = col_;
      const Interval range = bounds(e, ranges_);
      const int r = place(std::move(i), Ty::s64, lanes.empty(), level_of(slots), range);
      return fits_s32(range) ? as(r, Ty::s32) : r;
    }
    // Lanes under a division, a minimum, ...: as arithmetic on strips.
    int sum = -1;
    for (const dlc::Term& t : e.terms()) {
      Expr rest(t.coefficient);  // what needs no strips of its own
      std::vector<Atom> hard;
      for (const Atom& a : t.factors) {
        if (a.kind() == AtomKind::symbol)
          rest = rest * Expr::symbol(a.name());
        else
          hard.push_back(a);
      }
      int product = hard.empty() || !rest.is(1) ? emit_product_of_symbols(rest) : -1;
      for (const Atom& a : hard)
        product = product < 0 ? emit_atom(a) : arithmetic(BinaryOp::mul, product, emit_atom(a));
      sum = sum < 0 ? product : arithmetic(BinaryOp::add, sum, product);
    }
    return sum;
  }

  // A product of symbols that is not affine in the lanes (x * x) is multiplied out.
  int emit_product_of_symbols(const Expr& e) {
    Expr base;
    if (terms_of(e, lanes_in(slots_of(e)), base)) return emit_index(e);
    const dlc::Term& t = e.terms()[0];
    int r = emit_index(Expr(t.coefficient));
    for (const Atom& a : t.factors) r = arithmetic(BinaryOp::mul, r, emit_index(Expr::symbol(a.name())));
    return r;
  }

  int emit_atom(const Atom& a) {
    const auto arg = [&](size_t k) { return emit_index(a.args()[k]); };
    switch (a.kind()) {
      case AtomKind::symbol:
        return emit_index(Expr::symbol(a.name()));
      case AtomKind::floor_div:
        return arithmetic(BinaryOp::floor_div, arg(0), arg(1));
      case AtomKind::mod:
        return arithmetic(BinaryOp::mod, arg(0), arg(1));
      case AtomKind::min:
        return extreme(Fn::min, arg(0), arg(1));
      case AtomKind::max:
        return extreme(Fn::max, arg(0), arg(1));
      default: {
        const int d = arg(0);
        const int zero = emit_index(Expr(0));
        const Ty ty = reg(d).ty == Ty::s32 && reg(zero).ty == Ty::s32 ? Ty::s32 : Ty::s64;
        const int cond = add(binary_op(BinaryOp::ge, ty), Ty::b, {as(d, ty), as(zero, ty)});
        const int x = as(arg(1), Ty::s64), y = as(arg(2), Ty::s64);
        return add(select_op(Ty::s64), Ty::s64, {cond, x, y});
      }
    }
  }

  int arithmetic(BinaryOp op, int a, int b) {
    const Interval range = combine(op, reg(a).range, reg(b).range);
    const Ty ty = work_type(Ty::s64, {a, b}, range);
    const bool defined = reg(b).range.lo > 0 || reg(b).range.hi < 0;
    return add(binary_op(op, ty, defined), ty, {as(a, ty), as(b, ty)}, range);
  }
  int extreme(Fn fn, int a, int b) {
    const Interval &x = reg(a).range, &y = reg(b).range;
    const Interval range = fn == Fn::min ? Interval{std::min(x.lo, y.lo), std::min(x.hi, y.hi)}
                                         : Interval{std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    const Ty ty = work_type(Ty::s64, {a, b}, range);
    return add(call_op(fn, ty), ty, {as(a, ty), as(b, ty)}, range);
  }

  int emit_unary(const Node& n) {
    const int a = emit(n.args[0]);
    Interval range;
    if (n.unary_op() == UnaryOp::neg) range = combine(BinaryOp::sub, {0, 0}, reg(a).range);
    if (n.unary_op() == UnaryOp::bit_not) range = combine(BinaryOp::sub, {-1, -1}, reg(a).range);
    const Ty ty = work_type(n.ty, {a}, range);
    return add(unary_op(n.unary_op(), ty), ty, {as(a, ty)}, range);
  }

  int emit_binary(const Node& n) {
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

  static bool is_cheap(const Node& n) {
    return n.kind == NodeKind::constant || n.kind == NodeKind::index || n.kind == NodeKind::undef;
  }

  int emit_select(const Node& n) {
    const int c = emit(n.args[0]);
    const bool worth = !is_cheap(n.args[1]) || !is_cheap(n.args[2]);
    if (reg(c).uniform && worth) return emit_branch(n, c);
    const int a = emit(n.args[1]), b = emit(n.args[2]);
    const Interval range = hull(a, b);
    const Ty ty = work_type(n.ty, {a, b}, range);
    return add(select_op(ty), ty, {c, as(a, ty), as(b, ty)}, range);
  }

  // One condition for all lanes: only the side it chooses is computed.
  int emit_branch(const Node& n, int condition) {
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

  Interval hull(int a, int b) const {
    return {std::min(reg(a).range.lo, reg(b).range.lo), std::max(reg(a).range.hi, reg(b).range.hi)};
  }

  int emit_orelse(const Node& n) {
    const int a = emit(n.args[0]), b = emit(n.args[1]);
    const Interval range = hull(a, b);
    const Ty ty = work_type(n.ty, {a, b}, range);
    return add(orelse_op(ty), ty, {as(a, ty), as(b, ty)}, range);
  }

  int emit_call(const Node& n) {
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

  int emit_cast(const Node& n) {
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

  // ---- memory ----

  int access(int tensor, const std::vector<Node>& indices) {
    Access a;
    a.tensor = tensor;
    a.row_slot = row_;
    a.col_slot = col_;
    ok_ &= indices.size() <= kMaxRank;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Node& n = indices[d];
      AccessDim dim;
      if (n.kind != NodeKind::index || !index_dim(n.expr, tensor, d, dim)) {
        dim.kind = AccessDim::Kind::reg;
        dim.reg = emit(n);
        dim.reg_uniform = reg(dim.reg).uniform;
        dim.reg_ty = reg(dim.reg).ty;
      }
      a.dims.push_back(std::move(dim));
    }
    p_.accesses.push_back(std::move(a));
    return static_cast<int>(p_.accesses.size()) - 1;
  }

  bool index_dim(const Expr& e, int tensor, size_t d, AccessDim& dim) const {
    Expr base;
    if (auto terms = terms_of(e, loop_slots_of(e), base)) {
      dim.kind = AccessDim::Kind::affine;
      dim.base = code_of(base);
      dim.terms = std::move(*terms);
      return true;
    }
    auto lanes = terms_of(e, lanes_in(slots_of(e)), base);
    if (!lanes) return false;
    dim.kind = AccessDim::Kind::scalar;
    dim.base = code_of(e);
    dim.terms = std::move(*lanes);
    if (const auto& shape = tensor_shape(tensor); d < shape.size() && shape[d].is_constant()) {
      const Interval r = bounds(e, ranges_);
      dim.in_bounds = r.lo >= 0 && r.hi < shape[d].constant();
    }
    return true;
  }
  const std::vector<ExprCode>& tensor_shape(int tensor) const {
    return code_.tensors[static_cast<size_t>(tensor)].shape;
  }

  int emit_read(const Node& n) {
    const TensorCode& t = code_.tensors[static_cast<size_t>(n.tensor)];
    Interval range;
    Ty ty = n.ty;
    if (ty == Ty::s64) {
      range = type_range(t.dtype);
      if (fits_s32(range)) ty = Ty::s32;
    }
    Instr i;
    i.fn = load_op;
    i.access = access(n.tensor, n.args);
    i.op = static_cast<uint8_t>(ty);
    i.move = reinterpret_cast<void (*)()>(load_rows(t.elem, ty, is_odd_width(t.dtype)));
    int level = 0;
    bool uniform = true;
    for (const AccessDim& d : p_.accesses.back().dims) {
      if (d.kind == AccessDim::Kind::reg) {
        level = std::max(level, reg(d.reg).level);
        uniform &= d.reg_uniform;
        continue;
      }
      for (const int s : d.base.slots()) level = std::max(level, level_of(s)), uniform &= !is_lane(s);
      for (const Term& t2 : d.terms) level = std::max(level, level_of(t2.slot)), uniform &= !is_lane(t2.slot);
    }
    return place(std::move(i), ty, uniform, level, range);
  }

  // ---- reductions ----

  int emit_reduce(const Node& n) {
    name_loops(n.loops);
    p_.inner_loops.insert(p_.inner_loops.end(), n.loops.begin(), n.loops.end());
    const auto slots = free_slots(n);
    const int level = level_of(slots);
    const bool uniform = !varies(slots);

    // Inside, only levels up to `level` exist.
    Cut cut = cut_above(level);
    const int row = row_, col = col_;

    auto nest = std::make_unique<Nest>();
    nest->op = n.reduce_op();
    nest->to = n.to;
    nest->own_lanes = uniform;
    if (uniform) {
      const Lanes lanes = choose_lanes(code_, n);
      for (const int slot : {lanes.row, lanes.col})
        for (const LoopCode& l : n.loops)
          if (l.slot == slot) nest->lanes.push_back(l);
      for (const LoopCode& l : n.loops)
        if (l.slot != lanes.row && l.slot != lanes.col) nest->loops.push_back(l);
      for (const LoopCode& l : nest->loops) open({l.slot});
      open({lanes.row, lanes.col});
      row_ = lanes.row;
      col_ = lanes.col;
    } else {
      nest->loops = n.loops;
      for (const LoopCode& l : nest->loops) open({l.slot});
    }
    const auto first = static_cast<size_t>(level) + 1;
    for (size_t i = first; i < levels_.size(); ++i) nest->blocks.push_back(std::unique_ptr<Block>(levels_[i].block));

    const bool is_arg = nest->op == ReduceOp::argmax || nest->op == ReduceOp::argmin;
    int body = emit(n.args[0]);
    const bool wraps_in_32 = nest->op == ReduceOp::sum || nest->op == ReduceOp::prod;
    const bool keeps_32 = is_arg || (fits_s32(type_range(nest->to)) && (wraps_in_32 || fits_s32(reg(body).range)));
    if (reg(body).ty == Ty::s32 && !keeps_32) body = as(body, Ty::s64);
    const Ty ty = reg(body).ty;
    nest->body = body;
    nest->body_uniform = reg(body).uniform;
    nest->acc = new_reg(ty, false, level);
    if (is_arg) {
      nest->best = new_reg(Ty::s64, false, level);
      nest->position_slot = n.loops[0].slot;
    }
    restore(level, std::move(cut));
    row_ = row;
    col_ = col;
    Instr i;
    i.fn = reduce_op(ty);
    i.nest = std::move(nest);
    if (is_arg) return place(std::move(i), Ty::s64, uniform, level);
    return place(std::move(i), ty, uniform, level, n.ty == Ty::s64 ? type_range(n.to) : kUnknown);
  }

  const Lowered& code_;
  const Task& task_;
  Program p_;
  std::vector<Level> levels_;
  std::vector<Pin> pins_;
  std::set<int> loop_slots_;
  Ranges ranges_;
  int row_ = -1, col_ = -1;
  bool ok_ = true;
};

void collect_free(const Node& n, std::set<int>& out) {
  std::set<int> inner;
  for (const Node& a : n.args) collect_free(a, inner);
  if (n.kind == NodeKind::index) inner.insert(n.code.slots().begin(), n.code.slots().end());
  for (const LoopCode& l : n.loops) inner.erase(l.slot);
  for (const LoopCode& l : n.loops) inner.insert(l.extent.slots().begin(), l.extent.slots().end());
  out.insert(inner.begin(), inner.end());
}

}  // namespace

std::vector<int> free_slots(const Node& n) {
  std::set<int> r;
  collect_free(n, r);
  return {r.begin(), r.end()};
}

std::optional<Program> plan(const Lowered& code, const Task& task) { return Builder(code, task).build(); }

}  // namespace dlc::interp
