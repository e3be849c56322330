// Operators, conversions and the storage of element types.
#include "dlc/base/float_format.h"
#include "emitter.h"
#include "word.h"

namespace dlc::cpu {

// ---- helpers

llvm::Type* Emitter::type_of(Rep r) {
  switch (r) {
    case Rep::b1:
      return b_.getInt1Ty();
    case Rep::i8:
      return b_.getInt8Ty();
    case Rep::i16:
      return b_.getInt16Ty();
    case Rep::i32:
      return b_.getInt32Ty();
    case Rep::i64:
      return b_.getInt64Ty();
    case Rep::f32:
      return b_.getFloatTy();
    default:
      return b_.getDoubleTy();
  }
}

llvm::Type* Emitter::like(llvm::Type* element, Value* shape) const {
  const auto* v = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  return v ? llvm::FixedVectorType::get(element, v->getNumElements()) : element;
}

Emitter::Value* Emitter::real(double v, Value* shape) { return llvm::ConstantFP::get(shape->getType(), v); }
Emitter::Value* Emitter::integer(int64_t v, Value* shape) {
  return llvm::ConstantInt::get(shape->getType(), static_cast<uint64_t>(v), true);
}

Emitter::Value* Emitter::broadcast(Value* v) {
  return is_vector(v) || tile_.lanes == 1 ? v : b_.CreateVectorSplat(static_cast<unsigned>(tile_.lanes), v);
}

void Emitter::unify(Value*& a, Value*& b) {
  const auto splat_as = [&](Value* v, Value* other) {
    const auto* t = llvm::cast<llvm::FixedVectorType>(other->getType());
    return b_.CreateVectorSplat(t->getNumElements(), v);
  };
  if (is_vector(a) && !is_vector(b)) b = splat_as(b, a);
  if (is_vector(b) && !is_vector(a)) a = splat_as(a, b);
}

Emitter::Value* Emitter::both(Value* a, Value* b) {
  if (!a || !b) return a ? a : b;
  unify(a, b);
  return b_.CreateAnd(a, b);
}

Emitter::Value* Emitter::resize(Value* v, Rep rep, bool zero_extend) {
  llvm::Type* type = like(type_of(rep), v);
  return zero_extend ? b_.CreateZExtOrTrunc(v, type) : b_.CreateSExtOrTrunc(v, type);
}

// ---- binary operators

Emitter::Value* Emitter::integer_divide(Value* a, Value* b, bool is_unsigned, bool floor, bool remainder) {
  if (is_unsigned) return remainder ? b_.CreateURem(a, b) : b_.CreateUDiv(a, b);
  // INT_MIN / -1 traps: divide by 1 there, and negate (the remainder is 0).
  Value* minus_one = b_.CreateICmpEQ(b, integer(-1, b));
  Value* divisor = b_.CreateSelect(minus_one, integer(1, b), b);
  Value* q = b_.CreateSDiv(a, divisor);
  Value* r = b_.CreateSub(a, b_.CreateMul(q, divisor));
  if (!floor) return remainder ? r : b_.CreateSelect(minus_one, b_.CreateNeg(a), q);
  Value* zero = integer(0, a);
  Value* adjust = b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, divisor), zero));
  if (remainder) return b_.CreateAdd(r, b_.CreateSelect(adjust, divisor, zero));
  return b_.CreateSelect(minus_one, b_.CreateNeg(a), b_.CreateSub(q, b_.CreateZExt(adjust, q->getType())));
}

Emitter::Value* Emitter::compare(BinaryOp op, DType type, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  const bool is_unsigned = type == kU64 || type.is_bool();
  const auto pick = [&](P f, P s, P u) { return type.is_float() ? f : is_unsigned ? u : s; };
  P p = P::ICMP_EQ;
  switch (op) {
    case BinaryOp::eq:
      p = pick(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
      break;
    case BinaryOp::ne:
      p = pick(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
      break;
    case BinaryOp::lt:
      p = pick(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
      break;
    case BinaryOp::le:
      p = pick(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
      break;
    case BinaryOp::gt:
      p = pick(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
      break;
    default:
      p = pick(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
      break;
  }
  return b_.CreateCmp(p, a, b);
}

Emitter::Value* Emitter::arithmetic(const ValNode& n, Value* a, Value* b) {
  if (n.type.is_float()) {
    switch (n.binary_op()) {
      case BinaryOp::add:
        return b_.CreateFAdd(a, b);
      case BinaryOp::sub:
        return b_.CreateFSub(a, b);
      case BinaryOp::mul:
        return b_.CreateFMul(a, b);
      case BinaryOp::div:
        return b_.CreateFDiv(a, b);
      case BinaryOp::floor_div:
        return round_to(b_.CreateFDiv(a, b), Fn::floor);
      case BinaryOp::mod: {  // the remainder with the divisor's sign
        Value *r = libm(Fn::fmod, {a, b}), *zero = real(0, a);
        Value* opposite = b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(b, zero));
        Value* adjust = b_.CreateAnd(b_.CreateFCmpUNE(r, zero), opposite);
        return b_.CreateSelect(adjust, b_.CreateFAdd(r, b), r);
      }
      default:
        break;
    }
  }
  switch (n.binary_op()) {
    case BinaryOp::add:
      return b_.CreateAdd(a, b);
    case BinaryOp::sub:
      return b_.CreateSub(a, b);
    case BinaryOp::mul:
      return b_.CreateMul(a, b);
    case BinaryOp::bit_and:
      return b_.CreateAnd(a, b);
    case BinaryOp::bit_or:
      return b_.CreateOr(a, b);
    case BinaryOp::bit_xor:
      return b_.CreateXor(a, b);
    case BinaryOp::shl:
      return b_.CreateShl(a, b);
    case BinaryOp::shr:
      return n.type == kU64 ? b_.CreateLShr(a, b) : b_.CreateAShr(a, b);
    case BinaryOp::floor_div:
      return integer_divide(a, b, n.type == kU64, true, false);
    case BinaryOp::mod:
      return integer_divide(a, b, n.type == kU64, true, true);
    default:
      error("an operator of unknown kind");
      return a;
  }
}

Cell Emitter::binary(const ValNode& n, Cell a, Cell b) {
  const BinaryOp op = n.binary_op();
  const DType type = n.args[0]->type;
  if (op == BinaryOp::logical_and || op == BinaryOp::logical_or) {
    const bool is_and = op == BinaryOp::logical_and;
    unify(a.v, b.v);
    Value* ok = a.ok;
    if (b.ok) {  // lazy: b does not matter when a decides
      Value* decided = is_and ? b_.CreateNot(a.v) : a.v;
      unify(b.ok, decided);
      ok = both(ok, b_.CreateOr(b.ok, decided));
    }
    return {is_and ? b_.CreateAnd(a.v, b.v) : b_.CreateOr(a.v, b.v), ok};
  }
  Value* ok = both(a.ok, b.ok);
  unify(a.v, b.v);
  if (type.is_float()) {
    if (n.type.is_bool()) return {compare(op, type, a.v, b.v), ok};
    if (op == BinaryOp::floor_div || op == BinaryOp::mod) {
      const Val& d = n.args[1];
      if (!(d->kind == ValKind::real && d->real != 0)) ok = both(ok, b_.CreateFCmpUNE(b.v, real(0, b.v)));
    }
    return {arithmetic(n, a.v, b.v), ok};
  }
  if (type.is_bool()) {
    if (n.type.is_bool() && op >= BinaryOp::eq && op <= BinaryOp::ge) return {compare(op, type, a.v, b.v), ok};
    return {arithmetic(n, a.v, b.v), ok};
  }
  const Rep ra = l_->rep(n.args[0].get()), rb = l_->rep(n.args[1].get());
  Rep width = ra == Rep::i64 || rb == Rep::i64 ? Rep::i64 : Rep::i32;
  if (n.type.is_bool()) return {compare(op, type, resize(a.v, width), resize(b.v, width)), ok};
  const Rep result = l_->rep(&n);
  if (result == Rep::i64) width = Rep::i64;
  a.v = resize(a.v, width);
  b.v = resize(b.v, width);
  const Interval r = l_->range(n.args[1].get());
  if (op == BinaryOp::floor_div || op == BinaryOp::mod) {
    if (r.lo <= 0 && r.hi >= 0) {
      Value* zero = b_.CreateICmpEQ(b.v, integer(0, b.v));
      ok = both(ok, b_.CreateNot(zero));
      b.v = b_.CreateSelect(zero, integer(1, b.v), b.v);
    }
    const Interval dividend = l_->range(n.args[0].get());
    if (dividend.lo >= 0 && r.lo > 0)
      return {resize(integer_divide(a.v, b.v, true, true, op == BinaryOp::mod), result), ok};
  }
  if (op == BinaryOp::shl || op == BinaryOp::shr) {
    if (r.lo < 0 || r.hi > 63) {
      Value* inside = b_.CreateICmpULE(b.v, integer(63, b.v));
      ok = both(ok, inside);
      b.v = b_.CreateSelect(inside, b.v, integer(0, b.v));
    }
    if (width == Rep::i32 && r.hi > 31) {  // a count a 32-bit register cannot shift by
      a.v = resize(a.v, Rep::i64);
      b.v = resize(b.v, Rep::i64);
    }
  }
  return {resize(arithmetic(n, a.v, b.v), result), ok};
}

// ---- conversions

Emitter::Value* Emitter::float_to_int(Value* v, bool to_u64) {
  llvm::Type* to = like(b_.getInt64Ty(), v);
  return b_.CreateIntrinsic(to_u64 ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat, {to, v->getType()},
                            {v});
}

Emitter::Value* Emitter::wrap(Value* v, DType to) {
  const unsigned width = v->getType()->getScalarSizeInBits();
  if (to.bits >= width) return v;
  if (!to.is_signed()) return b_.CreateAnd(v, integer((int64_t{1} << to.bits) - 1, v));
  Value* shift = integer(static_cast<int64_t>(width) - to.bits, v);
  return b_.CreateAShr(b_.CreateShl(v, shift), shift);
}

Emitter::Value* Emitter::saturate(Value* v, DType from, DType to) {
  if (from.is_float()) {
    if (to.bits > 32 || (to.bits == 32 && !to.is_signed())) {
      if (to == kU64 || to == kS64) return float_to_int(v, to == kU64);
      v = float_to_int(v, false);
      from = kS64;
    } else {
      // Clamp first, so that the conversion is the cheap one. The limits of 32 bits are no floats of 24 bits.
      llvm::Type* type =
          like(to.bits <= 24 || v->getType()->getScalarType()->isDoubleTy() ? b_.getInt32Ty() : b_.getInt64Ty(), v);
      if (type->getScalarSizeInBits() == 64) {
        v = float_to_int(v, false);
        from = kS64;
      } else {
        Value *lo = real(static_cast<double>(to.min_value()), v), *hi = real(static_cast<double>(to.max_value()), v);
        Value* number = b_.CreateSelect(is_nan(v), real(0, v), v);
        Value* low = b_.CreateSelect(b_.CreateFCmpOLT(number, lo), lo, number);
        Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(low, hi), hi, low);
        return b_.CreateFPToSI(clamped, type);
      }
    }
  }
  if (from == kU64) {
    if (to == kU64) return v;
    Value* hi = integer(to.max_value(), v);
    return b_.CreateSelect(b_.CreateICmpUGT(v, hi), hi, v);
  }
  Value *lo = integer(to.min_value(), v), *hi = integer(to.max_value(), v);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, lo), hi);
}

Emitter::Value* Emitter::convert(Value* v, DType from, Rep rep, DType to) {
  llvm::Type* type = like(type_of(rep), v);
  if (to.is_bool()) {
    if (from.is_bool()) return v;
    return from.is_float() ? b_.CreateFCmpUNE(v, real(0, v)) : b_.CreateICmpNE(v, integer(0, v));
  }
  if (to.is_float()) {
    if (from.is_float()) return b_.CreateFPCast(v, type);
    return from == kU64 || from.is_bool() ? b_.CreateUIToFP(v, type) : b_.CreateSIToFP(v, type);
  }
  if (from.is_float()) return resize(float_to_int(v, to == kU64), rep);
  return from.is_bool() ? b_.CreateZExt(v, type) : resize(v, rep);
}

Emitter::Value* Emitter::cast(const ValNode& n, Value* v) {
  const DType from = n.args[0]->type, to = n.to;
  const Rep rep = l_->rep(&n);
  if (to.is_int()) {
    if (from.is_bool()) return wrap(b_.CreateZExt(v, like(type_of(rep), v)), to);
    if (n.saturate) {
      if (from.is_int() && l_->rep(n.args[0].get()) == Rep::i32 && to.bits >= 32) v = resize(v, Rep::i64);
      return resize(saturate(v, from, to), rep, to == kU32);
    }
    if (from.is_float()) v = float_to_int(v, to == kU64);
    const Interval range = from.is_int() ? l_->range(n.args[0].get()) : Interval{};
    const bool fits = from.is_int() && to.bits < 64 && range.lo >= to.min_value() && range.hi <= to.max_value();
    if (fits || to.bits == 64) return resize(v, rep);
    if (rep == Rep::i64) v = resize(v, Rep::i64);  // u32 of a negative i32: widen before it is masked
    return resize(wrap(v, to), rep);
  }
  if (to.is_narrow_float()) {
    Value* f = convert(v, from, Rep::f32, kF32);
    return decode(to, encode(to, f, kF32), Rep::f32);
  }
  return convert(v, from, rep, compute_type(to));
}

// ---- storage

llvm::Type* Emitter::storage_type(DType t) {
  if (t == kF32) return b_.getFloatTy();
  if (t == kF64) return b_.getDoubleTy();
  return b_.getIntNTy(static_cast<unsigned>(8 * t.bytes()));
}

Emitter::Value* Emitter::decode(DType t, Value* stored, Rep rep) {
  if (t == kF32 || t == kF64) return stored;
  if (t == kF16 && target_.has("f16c"))
    return b_.CreateFPExt(b_.CreateBitCast(stored, like(b_.getHalfTy(), stored)), like(b_.getFloatTy(), stored));
  if (t.is_narrow_float())
    return words::decode(float_format(t), Word{&b_, b_.CreateZExt(stored, like(b_.getInt32Ty(), stored))}).as_float();
  if (t.is_bool()) return b_.CreateICmpNE(stored, integer(0, stored));
  Value* v = resize(stored, rep, !t.is_signed());
  return t.bits == 8 * t.bytes() ? v : wrap(v, t);
}

Emitter::Value* Emitter::encode(DType t, Value* v, DType from) {
  llvm::Type* stored = like(storage_type(t), v);
  if (t.is_bool()) return b_.CreateZExt(convert(v, from, Rep::b1, kBool), stored);
  if (t.is_float()) {
    Value* f = convert(v, from, t == kF64 ? Rep::f64 : Rep::f32, t == kF64 ? kF64 : kF32);
    if (!t.is_narrow_float()) return f;
    if (t == kF16 && target_.has("f16c")) return b_.CreateBitCast(b_.CreateFPTrunc(f, like(b_.getHalfTy(), f)), stored);
    const Word bits{&b_, b_.CreateBitCast(f, like(b_.getInt32Ty(), f))};
    return b_.CreateTrunc(words::encode(float_format(t), bits).value, stored);
  }
  Value* i = v;
  if (from.is_float())
    i = float_to_int(v, t == kU64);
  else if (from.is_bool())
    i = b_.CreateZExt(v, like(b_.getInt64Ty(), v));
  // Odd widths lie wrapped in their container.
  if (t.bits != 8 * t.bytes()) i = wrap(resize(i, Rep::i64), t);
  return b_.CreateSExtOrTrunc(i, stored);
}

}  // namespace dlc::cpu
