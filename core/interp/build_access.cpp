// Index expressions, reads and stores.
#include "core/interp/builder.h"

namespace dlc::interp {

namespace {
constexpr size_t kMaxRank = 32;  // as the strips' address code has room for
}

std::vector<int> Builder::slots_of(const Expr& e) const {
  std::vector<int> r;
  for (const auto& s : e.symbols())
    if (const auto slot = code_.slots.find(s)) r.push_back(*slot);
  std::ranges::sort(r);
  return r;
}

std::optional<std::vector<Term>> Builder::terms_of(const Expr& e, const std::vector<int>& slots, Expr& base) const {
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

int Builder::emit_index(const Expr& e) {
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
    for (const Atom& a : hard) product = product < 0 ? emit_atom(a) : arithmetic(BinaryOp::mul, product, emit_atom(a));
    sum = sum < 0 ? product : arithmetic(BinaryOp::add, sum, product);
  }
  return sum;
}

int Builder::emit_product_of_symbols(const Expr& e) {
  Expr base;
  if (terms_of(e, lanes_in(slots_of(e)), base)) return emit_index(e);
  const dlc::Term& t = e.terms()[0];
  int r = emit_index(Expr(t.coefficient));
  for (const Atom& a : t.factors) r = arithmetic(BinaryOp::mul, r, emit_index(Expr::symbol(a.name())));
  return r;
}

int Builder::emit_atom(const Atom& a) {
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

int Builder::access(int tensor, const std::vector<Node>& indices) {
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

bool Builder::index_dim(const Expr& e, int tensor, size_t d, AccessDim& dim) const {
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

int Builder::emit_read(const Node& n) {
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

}  // namespace dlc::interp
