// Loops in SSA form with values carried around them, and the scopes that follow the open loops.
#include "emitter.h"

namespace dlc::cpu {

namespace {

// The only value the variable takes, when that is known.
std::optional<int64_t> one_iteration(llvm::Value* start, llvm::Value* end, int64_t step) {
  const auto* lo = llvm::dyn_cast<llvm::ConstantInt>(start);
  const auto* hi = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (!lo || !hi) return std::nullopt;
  const int64_t a = lo->getSExtValue(), b = hi->getSExtValue();
  return a < b && b - a <= step ? std::optional(a) : std::nullopt;
}

}  // namespace

Emitter::OpenLoop Emitter::open_loop(const std::string& var, Value* start, Value* end, int64_t step, bool reverse,
                                     std::vector<Value*>& carried) {
  llvm::LLVMContext& context = module_.getContext();
  OpenLoop loop;
  loop.end = end;
  loop.step = step;
  loop.initial = carried;
  if (const auto once = one_iteration(start, end, step)) {  // no loop at all: the variable is a constant
    Scope scope;
    scope.var = var;
    scope.var_value = b_.getInt64(static_cast<uint64_t>(*once));
    loop.is_straight = true;
    loop.counter = scope.var_value;
    scopes_.push_back(std::move(scope));
    return loop;
  }
  loop.before = b_.GetInsertBlock();
  loop.body = llvm::BasicBlock::Create(context, var, function_);
  loop.after = llvm::BasicBlock::Create(context, var + ".end", function_);
  const auto* lo = llvm::dyn_cast<llvm::ConstantInt>(start);
  const auto* hi = llvm::dyn_cast<llvm::ConstantInt>(end);
  loop.may_be_empty = !(lo && hi && lo->getSExtValue() < hi->getSExtValue());
  llvm::Instruction* entry =
      loop.may_be_empty ? b_.CreateCondBr(b_.CreateICmpSLT(start, end), loop.body, loop.after) : b_.CreateBr(loop.body);
  for (size_t i = scopes_.size(); i-- > 0 && !scopes_[i].anchor;) {  // also scopes that hold values without a loop
    scopes_[i].anchor = entry;
    ++loop.anchored;
  }
  b_.SetInsertPoint(loop.body);
  loop.phi = b_.CreatePHI(b_.getInt64Ty(), 2, var);
  loop.phi->addIncoming(start, loop.before);
  loop.counter = loop.phi;
  for (Value*& c : carried) {
    auto* phi = b_.CreatePHI(c->getType(), 2);
    phi->addIncoming(c, loop.before);
    loop.carried.push_back(phi);
    c = phi;
  }
  Scope scope;
  scope.var = var;
  scope.var_value = loop.counter;
  if (reverse)
    scope.var_value = b_.CreateNSWSub(b_.CreateNSWSub(end, b_.getInt64(1)), b_.CreateNSWSub(loop.counter, start));
  scopes_.push_back(std::move(scope));
  return loop;
}

void Emitter::close_loop(OpenLoop& loop, std::vector<Value*>& carried) {
  scopes_.pop_back();
  if (loop.is_straight) return;
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  Value* next = b_.CreateNSWAdd(loop.counter, b_.getInt64(loop.step));
  loop.phi->addIncoming(next, latch);
  for (size_t i = 0; i < carried.size(); ++i) loop.carried[i]->addIncoming(carried[i], latch);
  b_.CreateCondBr(b_.CreateICmpSLT(next, loop.end), loop.body, loop.after);
  b_.SetInsertPoint(loop.after);
  for (size_t i = 0; i < loop.anchored; ++i) scopes_[scopes_.size() - 1 - i].anchor = nullptr;
  for (size_t i = 0; i < carried.size(); ++i) {
    auto* phi = b_.CreatePHI(carried[i]->getType(), 2);
    phi->addIncoming(carried[i], latch);
    if (loop.may_be_empty) phi->addIncoming(loop.initial[i], loop.before);
    carried[i] = phi;
  }
}

size_t Emitter::scope_of(const Expr& e) {
  size_t deepest = 0;
  for (const std::string& s : e.symbols()) {
    size_t i = scopes_.size();
    while (i > 0 && scopes_[i - 1].var != s) --i;
    if (i == 0 && !dims_.contains(s)) error("unbound symbol " + s);
    if (i > 0) deepest = std::max(deepest, i - 1);
  }
  return deepest;
}

void Emitter::insert_in(size_t scope) {
  if (scopes_[scope].anchor) b_.SetInsertPoint(scopes_[scope].anchor);
}

VarSet Emitter::bound_vars() const {
  VarSet r = 0;
  for (const Scope& s : scopes_) r |= l_->bit(s.var);
  return r;
}

// Computes now what `v` needs only of the loops that are open, and not of the register tile.
void Emitter::hoist(const Val& v) {
  if (!l_->computes(v.get())) return;
  const VarSet vars = l_->vars(v.get());
  VarSet tile = l_->bit(tile_.vector_var);
  for (const TileDim& d : tile_.dims) tile |= l_->bit(d.var);
  if ((vars & ~bound_vars()) == 0 && (vars & tile) == 0) {
    eval(v);
    return;
  }
  for (const Val& arg : v->args) hoist(arg);
}

}  // namespace dlc::cpu
