// Words of 32 bits in generated code, scalars or vectors, with the operations that dlc/base/float_format.h is written
// in:
//
//   Word x{&b, b.CreateZExt(stored, i32)};
//   Value* f32 = words::decode(kFormatE4M3FN, x).as_float();
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>

namespace dlc::cpu {

struct Word {
  llvm::IRBuilderBase* b;
  llvm::Value* value;

  Word of(uint32_t c) const { return {b, llvm::ConstantInt::get(value->getType(), c)}; }
  llvm::Value* as_float() const { return b->CreateBitCast(value, value->getType()->getWithNewType(b->getFloatTy())); }
  Word from_float(llvm::Value* f) const { return {b, b->CreateBitCast(f, value->getType())}; }
};

struct Condition {
  llvm::Value* value;
};

inline Word operator&(const Word& x, const Word& y) { return {x.b, x.b->CreateAnd(x.value, y.value)}; }
inline Word operator|(const Word& x, const Word& y) { return {x.b, x.b->CreateOr(x.value, y.value)}; }
inline Word operator+(const Word& x, const Word& y) { return {x.b, x.b->CreateAdd(x.value, y.value)}; }
inline Word operator-(const Word& x, const Word& y) { return {x.b, x.b->CreateSub(x.value, y.value)}; }
inline Word operator&(const Word& x, uint32_t c) { return x & x.of(c); }
inline Word operator|(const Word& x, uint32_t c) { return x | x.of(c); }
inline Word operator+(const Word& x, uint32_t c) { return x + x.of(c); }
inline Word operator-(const Word& x, uint32_t c) { return x - x.of(c); }
inline Word operator<<(const Word& x, int n) { return {x.b, x.b->CreateShl(x.value, static_cast<uint64_t>(n))}; }
inline Word operator>>(const Word& x, int n) { return {x.b, x.b->CreateLShr(x.value, static_cast<uint64_t>(n))}; }
inline Condition operator<(const Word& x, uint32_t c) { return {x.b->CreateICmpULT(x.value, x.of(c).value)}; }

inline Word select(Condition c, const Word& yes, const Word& no) {
  return {yes.b, yes.b->CreateSelect(c.value, yes.value, no.value)};
}
inline Word select(Condition c, const Word& yes, uint32_t no) { return select(c, yes, yes.of(no)); }
inline Word select(Condition c, uint32_t yes, const Word& no) { return select(c, no.of(yes), no); }

inline Word add_floats(const Word& x, uint32_t y) {
  return x.from_float(x.b->CreateFAdd(x.as_float(), x.of(y).as_float()));
}
inline Word multiply_floats(const Word& x, uint32_t y) {
  return x.from_float(x.b->CreateFMul(x.as_float(), x.of(y).as_float()));
}

}  // namespace dlc::cpu
