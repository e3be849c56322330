// Exprs and addresses: every part is emitted in the outermost scope that has its variables.
#include <bit>

#include "emitter.h"

namespace dlc::cpu {

namespace {

Expr to_expr(const Atom& a) {
  switch (a.kind()) {
    case AtomKind::symbol:
      return Expr::symbol(a.name());
    case AtomKind::floor_div:
      return floor_div(a.args()[0], a.args()[1]);
    case AtomKind::mod:
      return mod(a.args()[0], a.args()[1]);
    case AtomKind::min:
      return min(a.args()[0], a.args()[1]);
    case AtomKind::max:
      return max(a.args()[0], a.args()[1]);
    case AtomKind::select:
      return select_nonneg(a.args()[0], a.args()[1], a.args()[2]);
  }
  return Expr::invalid();
}

Expr to_expr(const Term& t) {
  Expr e = t.coefficient;
  for (const Atom& a : t.factors) e = e * to_expr(a);
  return e;
}

int64_t constant_part(const Expr& e) {
  for (const Term& t : e.terms())
    if (t.factors.empty()) return t.coefficient;
  return 0;
}

}  // namespace

const Ranges& Emitter::ranges() const {
  static const Ranges kNone;
  return l_ ? l_->ranges() : kNone;
}

bool Emitter::depends_on_lane(const Expr& e) const {
  return tile_.lanes > 1 && !tile_.vector_var.empty() && e.mentions(tile_.vector_var);
}

Expr Emitter::at(const Expr& e, const Point& p) const {
  std::map<std::string, Expr, std::less<>> moved;
  for (size_t d = 0; d < tile_.dims.size(); ++d)
    if (p[d] != 0 && e.mentions(tile_.dims[d].var)) moved[tile_.dims[d].var] = Expr::symbol(tile_.dims[d].var) + p[d];
  for (const auto& [var, offset] : fixed_)
    if (offset != 0 && e.mentions(var)) moved[var] = Expr::symbol(var) + offset;
  return moved.empty() ? e : substitute(e, moved);
}

Emitter::Value* Emitter::expr(const Expr& e) {
  if (const auto c = e.constant()) return b_.getInt64(static_cast<uint64_t>(*c));
  if (!e.valid()) {
    error("an index or extent overflows 64 bits");
    return b_.getInt64(0);
  }
  const size_t level = scope_of(e);
  if (const auto it = scopes_[level].exprs.find(e.node()); it != scopes_[level].exprs.end()) return it->second;
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  insert_in(level);
  Value* v = build_expr(e, level);
  scopes_[level].exprs[e.node()] = v;
  return v;
}

Emitter::Value* Emitter::build_expr(const Expr& e, size_t level) {
  Expr outer = 0;
  std::vector<Term> inner;
  for (const Term& t : e.terms()) {
    const Expr term = to_expr(t);
    if (!t.factors.empty() && scope_of(term) == level)
      inner.push_back(t);
    else
      outer += term;
  }
  Value* sum = outer.is(0) ? nullptr : expr(outer);
  for (const Term& t : inner) {
    Value* product = nullptr;
    for (const Atom& factor : t.factors) {
      const Expr f = to_expr(factor);
      Value* v = scope_of(f) < level || inner.size() + t.factors.size() > 2 || t.coefficient != 1 || !outer.is(0)
                     ? expr(f)
                     : atom(factor);
      product = product ? b_.CreateNSWMul(product, v) : v;
    }
    if (t.coefficient != 1) product = b_.CreateNSWMul(product, b_.getInt64(static_cast<uint64_t>(t.coefficient)));
    sum = sum ? b_.CreateNSWAdd(sum, product) : product;
  }
  return sum;
}

Emitter::Value* Emitter::atom(const Atom& a) {
  switch (a.kind()) {
    case AtomKind::symbol: {
      for (size_t i = scopes_.size(); i-- > 0;)
        if (scopes_[i].var == a.name()) return scopes_[i].var_value;
      const auto it = dims_.find(a.name());
      return it == dims_.end() ? b_.getInt64(0) : it->second;
    }
    case AtomKind::floor_div:
    case AtomKind::mod:
      return divide(expr(a.args()[0]), expr(a.args()[1]), a.args()[0], a.args()[1], a.kind() == AtomKind::mod);
    case AtomKind::min:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, expr(a.args()[0]), expr(a.args()[1]));
    case AtomKind::max:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, expr(a.args()[0]), expr(a.args()[1]));
    case AtomKind::select:
      return b_.CreateSelect(b_.CreateICmpSGE(expr(a.args()[0]), b_.getInt64(0)), expr(a.args()[1]), expr(a.args()[2]));
  }
  return b_.getInt64(0);
}

Emitter::Value* Emitter::divide(Value* a, Value* b, const Expr& dividend, const Expr& divisor, bool remainder) {
  const Interval n = bounds(dividend, ranges()), d = bounds(divisor, ranges());
  unify(a, b);
  if (n.lo >= 0 && d.lo > 0) return remainder ? b_.CreateURem(a, b) : b_.CreateUDiv(a, b);
  if (d.lo <= 0) {  // a divisor that may be 0 belongs to a point that is never used: divide by 1 there
    Value* zero = integer(0, b);
    b = b_.CreateSelect(b_.CreateICmpEQ(b, zero), llvm::ConstantInt::get(b->getType(), 1), b);
  }
  return integer_divide(a, b, false, true, remainder);
}

Emitter::Value* Emitter::lanes_of(const Expr& e, llvm::Type* element) {
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(tile_.lanes));
  if (!depends_on_lane(e))
    return b_.CreateVectorSplat(static_cast<unsigned>(tile_.lanes), b_.CreateSExtOrTrunc(expr(e), element));
  if (const auto form = affine(e, std::span(&tile_.vector_var, 1))) {
    Value* base = b_.CreateVectorSplat(static_cast<unsigned>(tile_.lanes), b_.CreateSExtOrTrunc(expr(e), element));
    Value* steps = b_.CreateStepVector(type);
    const Expr& c = form->coefficients[0];
    if (!c.is(1))
      steps = b_.CreateMul(
          steps, b_.CreateVectorSplat(static_cast<unsigned>(tile_.lanes), b_.CreateSExtOrTrunc(expr(c), element)));
    return b_.CreateAdd(base, steps);
  }
  Value* sum = nullptr;
  for (const Term& t : e.terms()) {
    Value* product = llvm::ConstantInt::get(type, static_cast<uint64_t>(t.coefficient), true);
    for (const Atom& f : t.factors) product = b_.CreateMul(product, lane_atom(f, element));
    sum = sum ? b_.CreateAdd(sum, product) : product;
  }
  return sum;
}

Emitter::Value* Emitter::lane_atom(const Atom& a, llvm::Type* element) {
  if (a.kind() == AtomKind::symbol) return lanes_of(to_expr(a), element);
  const auto arg = [&](size_t i) { return lanes_of(a.args()[i], element); };
  switch (a.kind()) {
    case AtomKind::floor_div:
    case AtomKind::mod:
      return divide(arg(0), arg(1), a.args()[0], a.args()[1], a.kind() == AtomKind::mod);
    case AtomKind::min:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, arg(0), arg(1));
    case AtomKind::max:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, arg(0), arg(1));
    default: {
      Value* d = arg(0);
      return b_.CreateSelect(b_.CreateICmpSGE(d, llvm::Constant::getNullValue(d->getType())), arg(1), arg(2));
    }
  }
}

Emitter::Value* Emitter::pointer(int tensor, const Expr& byte_offset) {
  const int64_t constant = constant_part(byte_offset);
  Value* p = pointer_part(tensor, byte_offset - constant);
  return constant == 0 ? p : b_.CreateConstGEP1_64(b_.getInt8Ty(), p, static_cast<uint64_t>(constant));
}

Emitter::Value* Emitter::pointer_part(int tensor, const Expr& byte_offset) {
  if (byte_offset.is(0)) return buffers_[static_cast<size_t>(tensor)];
  if (!byte_offset.valid()) {
    error("an address overflows 64 bits");
    return llvm::PoisonValue::get(b_.getPtrTy());
  }
  const size_t level = scope_of(byte_offset);
  const auto key = std::pair(tensor, byte_offset.node());
  if (const auto it = scopes_[level].pointers.find(key); it != scopes_[level].pointers.end()) return it->second;
  Expr outer = 0, inner = 0;
  for (const Term& t : byte_offset.terms()) {
    const Expr term = to_expr(t);
    (scope_of(term) == level ? inner : outer) += term;
  }
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  insert_in(level);
  Value* p =
      b_.CreateGEP(b_.getInt8Ty(), level == 0 ? buffers_[static_cast<size_t>(tensor)] : pointer_part(tensor, outer),
                   expr(level == 0 ? byte_offset : inner));
  scopes_[level].pointers[key] = p;
  return p;
}

}  // namespace dlc::cpu
