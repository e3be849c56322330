// Functions. Those that have a vector form (has_vector_form) are polynomials of our own, without branches, within 2 ulp
// of f32; the rest are calls of the C library, one element at a time.
//
// The polynomials interpolate at Chebyshev nodes in high precision, rounded to f32.
#include "emitter.h"
#include "schedule.h"

namespace dlc::cpu {

Emitter::Value* Emitter::fma(Value* a, Value* b, Value* c) {
  if (!target_.has("fma")) return b_.CreateFAdd(b_.CreateFMul(a, b), c);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

Emitter::Value* Emitter::polynomial(Value* x, std::initializer_list<double> highest_first) {
  Value* p = nullptr;
  for (double c : highest_first) p = p ? fma(p, x, real(c, x)) : real(c, x);
  return p;
}

// v * 2^n for n in [-252, 254], in two factors so that results near the ends of the range stay right.
Emitter::Value* Emitter::scale_by_power(Value* v, Value* n) {
  const auto power = [&](Value* e) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(e, integer(127, e)), integer(23, e)), v->getType());
  };
  Value* half = b_.CreateAShr(n, integer(1, n));
  return b_.CreateFMul(b_.CreateFMul(v, power(half)), power(b_.CreateSub(n, half)));
}

// 2^n * exp(r), r = x - n ln 2 in two parts; exp(r) = 1 + r + r^2 P(r).
Emitter::Value* Emitter::exp_f32(Value* x) {
  Value *lo = real(-104.0, x), *hi = real(89.0, x);
  Value* c = b_.CreateSelect(b_.CreateFCmpOLT(x, lo), lo, x);  // NaN passes
  c = b_.CreateSelect(b_.CreateFCmpOGT(c, hi), hi, c);
  // Adding 1.5 * 2^23 rounds to an integer, which then lies in the low bits.
  Value* magic = real(12582912.0, x);
  Value* shifted = fma(c, real(1.44269504088896341, x), magic);
  Value* n = b_.CreateFSub(shifted, magic);
  Value* bits = b_.CreateBitCast(shifted, like(b_.getInt32Ty(), x));
  Value* count = b_.CreateSub(bits, integer(0x4B400000, bits));
  Value* r = fma(n, real(-0.693145751953125, x), c);
  r = fma(n, real(-1.42860682030941723e-6, x), r);
  Value* p = polynomial(r, {0x1.a1256cp-13, 0x1.6d43b0p-10, 0x1.1110e0p-7, 0x1.5554e8p-5, 0x1.555556p-3, 0.5});
  Value* e = b_.CreateFAdd(fma(b_.CreateFMul(r, r), p, r), real(1, x));
  Value* result = scale_by_power(e, count);
  return b_.CreateSelect(is_nan(x), x, result);
}

// x = 2^e m, m in [sqrt(1/2), sqrt(2)): e ln 2 + f - f^2/2 + f^3 P(f), f = m - 1.
Emitter::Value* Emitter::log_f32(Value* x) {
  llvm::Type* i32 = like(b_.getInt32Ty(), x);
  Value* tiny = b_.CreateFCmpOLT(x, real(0x1p-126, x));
  Value* normal = b_.CreateSelect(tiny, b_.CreateFMul(x, real(0x1p23, x)), x);
  Value* bits = b_.CreateBitCast(normal, i32);
  // The exponent rounds at sqrt(1/2) (0x3f3504f3) instead of at 1.
  Value* biased = b_.CreateSub(bits, integer(0x3f3504f3, bits));
  Value* exponent = b_.CreateAShr(biased, integer(23, bits));
  Value* m = b_.CreateBitCast(b_.CreateSub(bits, b_.CreateShl(exponent, integer(23, bits))), x->getType());
  Value* e = b_.CreateFSub(b_.CreateSIToFP(exponent, x->getType()), b_.CreateSelect(tiny, real(23, x), real(0, x)));
  Value* f = b_.CreateFSub(m, real(1, x));
  Value* p = polynomial(f, {0x1.1d8ea6p-4, -0x1.d635bcp-4, 0x1.dea282p-4, -0x1.fcf4c6p-4, 0x1.23d21ap-3, -0x1.555b4ap-3,
                            0x1.999d5ap-3, -0x1.fffffcp-3, 0x1.555554p-2});
  Value* f2 = b_.CreateFMul(f, f);
  Value* tail = b_.CreateFMul(b_.CreateFMul(f2, f), p);
  tail = fma(e, real(1.42860682030941723e-6, x), tail);
  tail = fma(f2, real(-0.5, x), tail);
  Value* result = fma(e, real(0.693145751953125, x), b_.CreateFAdd(f, tail));
  Value *zero = real(0, x), *infinity = real(std::numeric_limits<double>::infinity(), x);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, zero), b_.CreateFNeg(infinity), result);
  result = b_.CreateSelect(b_.CreateFCmpOLT(x, zero), real(std::numeric_limits<double>::quiet_NaN(), x), result);
  Value* same = b_.CreateOr(is_nan(x), b_.CreateFCmpOEQ(x, infinity));
  return b_.CreateSelect(same, x, result);
}

// |x| < 0.63: x + x^3 P(x^2); above: 1 - 2 / (exp(2|x|) + 1).
Emitter::Value* Emitter::tanh_f32(Value* x) {
  Value* a = intrinsic(llvm::Intrinsic::fabs, x);
  Value* t = b_.CreateFMul(x, x);
  Value* p =
      polynomial(t, {0x1.2977d8p-9, -0x1.10bbf4p-7, 0x1.648e8ep-6, -0x1.ba0718p-5, 0x1.1110e4p-3, -0x1.555556p-2});
  Value* small = fma(b_.CreateFMul(t, x), p, x);
  Value* e = exp_f32(b_.CreateFAdd(a, a));
  Value* large = b_.CreateFSub(real(1, x), b_.CreateFDiv(real(2, x), b_.CreateFAdd(e, real(1, x))));
  large = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, large, x);
  return b_.CreateSelect(b_.CreateFCmpOGT(a, real(0.63, x)), large, small);
}

// |x| < 1: x + x Q(x^2); above: 1 - exp(P(|x|)), P = log(1 - erf).
Emitter::Value* Emitter::erf_f32(Value* x) {
  Value* a = intrinsic(llvm::Intrinsic::fabs, x);
  Value* t = b_.CreateFMul(x, x);
  Value* q = polynomial(t, {0x1.4a5690p-14, -0x1.a45088p-11, 0x1.541270p-8, -0x1.b7fabap-6, 0x1.ce2d10p-4,
                            -0x1.81273ep-2, 0.128379167095512574});
  Value* small = fma(x, q, x);
  Value* c = b_.CreateSelect(b_.CreateFCmpOGT(a, real(4, x)), real(4, x), a);
  Value* p = polynomial(c, {0x1.b77830p-20, -0x1.825ce4p-15, 0x1.38e5e6p-11, -0x1.37ecc6p-8, 0x1.b0e246p-6,
                            -0x1.c2e356p-4, -0x1.437eb4p-1, -0x1.2156fap+0, 0x1.4fb068p-12});
  Value* large = b_.CreateFSub(real(1, x), exp_f32(p));
  large = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, large, x);
  return b_.CreateSelect(b_.CreateFCmpOGT(a, real(1, x)), large, small);
}

// NaN if either is.
Emitter::Value* Emitter::float_min_max(Value* a, Value* b, bool is_max) {
  const auto number = [](Value* v) {
    const auto* c = llvm::dyn_cast<llvm::Constant>(v);
    if (!c) return false;
    if (const auto* s = c->getType()->isVectorTy() ? c->getSplatValue() : c)
      if (const auto* f = llvm::dyn_cast<llvm::ConstantFP>(s)) return !f->isNaN();
    return false;
  };
  if (number(b)) std::swap(a, b);  // select(a > b, a, b) is one instruction and gives b when b is NaN
  Value* r = b_.CreateSelect(is_max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b), a, b);
  return number(a) ? r : b_.CreateSelect(is_nan(a), a, r);
}

Emitter::Value* Emitter::round_to(Value* v, Fn fn) {
  if (target_.has("sse4.1")) {
    switch (fn) {
      case Fn::floor:
        return intrinsic(llvm::Intrinsic::floor, v);
      case Fn::ceil:
        return intrinsic(llvm::Intrinsic::ceil, v);
      case Fn::trunc:
        return intrinsic(llvm::Intrinsic::trunc, v);
      default:
        return intrinsic(llvm::Intrinsic::roundeven, v);
    }
  }
  // |v| + 2^23 - 2^23 (2^52 for f64) rounds to an even integer; larger values are integers already.
  const bool is_double = v->getType()->getScalarType()->isDoubleTy();
  Value *limit = real(is_double ? 0x1p52 : 0x1p23, v), *a = intrinsic(llvm::Intrinsic::fabs, v);
  Value* rounded = b_.CreateFSub(b_.CreateFAdd(a, limit), limit);
  Value *zero = real(0, v), *one = real(1, v);
  if (fn == Fn::trunc) rounded = b_.CreateFSub(rounded, b_.CreateSelect(b_.CreateFCmpOGT(rounded, a), one, zero));
  Value* r = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rounded, v);
  if (fn == Fn::floor) r = b_.CreateFSub(r, b_.CreateSelect(b_.CreateFCmpOGT(r, v), one, zero));
  if (fn == Fn::ceil) r = b_.CreateFAdd(r, b_.CreateSelect(b_.CreateFCmpOLT(r, v), one, zero));
  r = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, r, v);
  return b_.CreateSelect(b_.CreateFCmpOLT(a, limit), r, v);
}

Emitter::Value* Emitter::libm(Fn fn, const std::vector<Value*>& args) {
  static const std::map<Fn, std::string> kNames = {
      {Fn::exp, "exp"},   {Fn::log, "log"},     {Fn::sin, "sin"},     {Fn::cos, "cos"},     {Fn::tan, "tan"},
      {Fn::asin, "asin"}, {Fn::acos, "acos"},   {Fn::atan, "atan"},   {Fn::sinh, "sinh"},   {Fn::cosh, "cosh"},
      {Fn::tanh, "tanh"}, {Fn::asinh, "asinh"}, {Fn::acosh, "acosh"}, {Fn::atanh, "atanh"}, {Fn::erf, "erf"},
      {Fn::pow, "pow"},   {Fn::fmod, "fmod"}};
  llvm::Type* element = args[0]->getType()->getScalarType();
  const std::string name = kNames.at(fn) + (element->isFloatTy() ? "f" : "");
  const std::vector<llvm::Type*> types(args.size(), element);
  auto callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(element, types, false));
  if (auto* f = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    f->setDoesNotThrow();
    f->setMemoryEffects(llvm::MemoryEffects::none());
  }
  if (!is_vector(args[0])) return b_.CreateCall(callee, args);
  const auto lanes = llvm::cast<llvm::FixedVectorType>(args[0]->getType())->getNumElements();
  Value* out = llvm::PoisonValue::get(args[0]->getType());
  for (unsigned i = 0; i < lanes; ++i) {
    std::vector<Value*> lane;
    for (Value* a : args) lane.push_back(b_.CreateExtractElement(a, i));
    out = b_.CreateInsertElement(out, b_.CreateCall(callee, lane), i);
  }
  return out;
}

Emitter::Value* Emitter::float_call(const ValNode& n, const std::vector<Value*>& args) {
  Value* x = args[0];
  const bool is_f32 = x->getType()->getScalarType()->isFloatTy();
  switch (n.fn()) {
    case Fn::exp:
      return is_f32 ? exp_f32(x) : libm(n.fn(), args);
    case Fn::log:
      return is_f32 ? log_f32(x) : libm(n.fn(), args);
    case Fn::tanh:
      return is_f32 ? tanh_f32(x) : libm(n.fn(), args);
    case Fn::erf:
      return is_f32 ? erf_f32(x) : libm(n.fn(), args);
    case Fn::sqrt:
      return intrinsic(llvm::Intrinsic::sqrt, x);
    case Fn::rsqrt:
      return b_.CreateFDiv(real(1, x), intrinsic(llvm::Intrinsic::sqrt, x));
    case Fn::abs:
      return intrinsic(llvm::Intrinsic::fabs, x);
    case Fn::sign: {
      Value *zero = real(0, x), *one = real(1, x);
      Value* s = b_.CreateSelect(b_.CreateFCmpOGT(x, zero), one,
                                 b_.CreateSelect(b_.CreateFCmpOLT(x, zero), real(-1, x), zero));
      return b_.CreateSelect(is_nan(x), x, s);
    }
    case Fn::floor:
    case Fn::ceil:
    case Fn::round:
    case Fn::trunc:
      return round_to(x, n.fn());
    default:
      return libm(n.fn(), args);
  }
}

// base^exponent by squaring, wrapping; a negative exponent truncates 1 / base^|exponent|.
Emitter::Value* Emitter::integer_power(Value* base, Value* exponent, bool is_unsigned) {
  Value *one = integer(1, base), *zero = integer(0, base);
  std::vector<Value*> carried{one, base, exponent};
  Value* rounds = b_.getInt64(64);
  OpenLoop loop = open_loop("power.round", b_.getInt64(0), rounds, 1, false, carried);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(carried[2], one), zero);
  carried[0] = b_.CreateSelect(odd, b_.CreateMul(carried[0], carried[1]), carried[0]);
  carried[1] = b_.CreateMul(carried[1], carried[1]);
  carried[2] = b_.CreateLShr(carried[2], one);
  close_loop(loop, carried);
  if (is_unsigned) return carried[0];
  Value* minus_one = integer(-1, base);
  Value* odd_exponent = b_.CreateICmpNE(b_.CreateAnd(exponent, one), zero);
  Value* small = b_.CreateSelect(
      b_.CreateICmpEQ(base, one), one,
      b_.CreateSelect(b_.CreateICmpEQ(base, minus_one), b_.CreateSelect(odd_exponent, minus_one, one), zero));
  return b_.CreateSelect(b_.CreateICmpSLT(exponent, zero), small, carried[0]);
}

Cell Emitter::call(const ValNode& n, const std::vector<Cell>& args) {
  Value* ok = nullptr;
  std::vector<Value*> values;
  for (const Cell& a : args) {
    ok = both(ok, a.ok);
    values.push_back(a.v);
  }
  for (size_t i = 1; i < values.size(); ++i)
    for (size_t j = 0; j < i; ++j) unify(values[i], values[j]);
  const Fn fn = n.fn();
  const DType type = n.args[0]->type;
  if (fn == Fn::is_nan || fn == Fn::is_inf) {
    Value* x = values[0];
    if (!type.is_float()) return {llvm::Constant::getNullValue(like(b_.getInt1Ty(), x)), ok};
    if (fn == Fn::is_nan) return {is_nan(x), ok};
    Value* a = intrinsic(llvm::Intrinsic::fabs, x);
    return {b_.CreateFCmpOEQ(a, real(std::numeric_limits<double>::infinity(), x)), ok};
  }
  if (n.type.is_float()) {
    if (fn == Fn::min || fn == Fn::max) {
      Value* r = values[0];
      for (size_t i = 1; i < values.size(); ++i) r = float_min_max(r, values[i], fn == Fn::max);
      return {r, ok};
    }
    return {float_call(n, values), ok};
  }
  if (n.type.is_bool()) {
    Value* r = values[0];
    for (size_t i = 1; i < values.size(); ++i)
      r = fn == Fn::min ? b_.CreateAnd(r, values[i]) : b_.CreateOr(r, values[i]);
    return {r, ok};
  }
  // Integers, in the widest of the operands' and the result's registers.
  Rep width = l_->rep(&n);
  for (const Val& a : n.args)
    if (l_->rep(a.get()) == Rep::i64) width = Rep::i64;
  for (Value*& v : values) v = resize(v, width);
  const bool is_unsigned = n.type == kU64;
  Value* x = values[0];
  switch (fn) {
    case Fn::min:
    case Fn::max:
      for (size_t i = 1; i < values.size(); ++i) {
        const auto id = fn == Fn::min ? (is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin)
                                      : (is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax);
        x = b_.CreateBinaryIntrinsic(id, x, values[i]);
      }
      break;
    case Fn::abs:
      if (!is_unsigned) x = b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse());
      break;
    case Fn::sign: {
      Value *zero = integer(0, x), *one = integer(1, x);
      Value* negative = b_.CreateSelect(b_.CreateICmpSLT(x, zero), integer(-1, x),
                                        b_.CreateSelect(b_.CreateICmpSGT(x, zero), one, zero));
      x = is_unsigned ? b_.CreateSelect(b_.CreateICmpEQ(x, zero), zero, one) : negative;
      break;
    }
    case Fn::fmod:
    case Fn::tdiv: {
      Value* divisor = values[1];
      const Interval r = l_->range(n.args[1].get());
      if (r.lo <= 0 && r.hi >= 0) {
        Value* is_zero = b_.CreateICmpEQ(divisor, integer(0, divisor));
        ok = both(ok, b_.CreateNot(is_zero));
        divisor = b_.CreateSelect(is_zero, integer(1, divisor), divisor);
      }
      x = integer_divide(x, divisor, is_unsigned, false, fn == Fn::fmod);
      break;
    }
    case Fn::pow:
      x = integer_power(x, values[1], is_unsigned);
      break;
    default:
      break;  // floor, ceil, round and trunc of an integer
  }
  return {resize(x, l_->rep(&n)), ok};
}

}  // namespace dlc::cpu
