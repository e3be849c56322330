#include "plugins/cpu/driver.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "plugins/cpu/work.h"

namespace dlc::cpu {

namespace {

Expr aligned(const Expr& bytes) { return ceil_div(bytes, 64) * 64; }

Expr bytes_of(const KernelTensor& t) {
  Expr n(t.dtype.bytes());
  for (const Expr& d : t.shape) n = n * d;
  return n;
}
Expr bytes_of(const TensorType& t) { return bytes_of(KernelTensor{"", t.dtype, t.shape, Role::temp, {}}); }

// One function being written.
class Writer {
 public:
  Writer(llvm::Function* f, const Ranges& symbols, llvm::Value* dims) : b_(f->getContext()) {
    b_.SetInsertPoint(llvm::BasicBlock::Create(f->getContext(), "entry", f));
    unsigned i = 0;
    for (const auto& [name, range] : symbols) {
      auto* at = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), dims, i++);
      symbols_[name] = b_.CreateLoad(b_.getInt64Ty(), at, name);
    }
  }

  llvm::IRBuilder<>& b() { return b_; }

  llvm::Value* value(const Expr& e) {
    llvm::Value* sum = b_.getInt64(0);
    for (const Term& t : e.terms()) {
      llvm::Value* product = b_.getInt64(static_cast<uint64_t>(t.coefficient));
      for (const Atom& a : t.factors) product = b_.CreateMul(product, atom(a));
      sum = b_.CreateAdd(sum, product);
    }
    return sum;
  }

  llvm::Value* symbol(std::string_view name) { return symbols_.find(name)->second; }
  llvm::Value* advance(llvm::Value* pointer, llvm::Value* bytes) {
    return b_.CreateGEP(b_.getInt8Ty(), pointer, bytes);
  }

 private:
  llvm::Value* atom(const Atom& a) {
    if (a.kind() == AtomKind::symbol) return symbol(a.name());
    std::vector<llvm::Value*> v;
    for (const Expr& e : a.args()) v.push_back(value(e));
    llvm::Value* zero = b_.getInt64(0);
    switch (a.kind()) {
      case AtomKind::min:
        return b_.CreateSelect(b_.CreateICmpSLT(v[0], v[1]), v[0], v[1]);
      case AtomKind::max:
        return b_.CreateSelect(b_.CreateICmpSGT(v[0], v[1]), v[0], v[1]);
      case AtomKind::select:
        return b_.CreateSelect(b_.CreateICmpSGE(v[0], zero), v[1], v[2]);
      default:
        break;
    }
    // Toward minus infinity: one less than the machine's where the signs differ and something remains.
    llvm::Value* remainder = b_.CreateSRem(v[0], v[1]);
    llvm::Value* differ = b_.CreateICmpSLT(b_.CreateXor(remainder, v[1]), zero);
    llvm::Value* below = b_.CreateAnd(b_.CreateICmpNE(remainder, zero), differ);
    if (a.kind() == AtomKind::mod) return b_.CreateAdd(remainder, b_.CreateSelect(below, v[1], zero));
    return b_.CreateSub(b_.CreateSDiv(v[0], v[1]), b_.CreateZExt(below, b_.getInt64Ty()));
  }

  llvm::IRBuilder<> b_;
  std::map<std::string, llvm::Value*, std::less<>> symbols_;
};

class Driver {
 public:
  Driver(const DriverInput& in, llvm::Module& m, std::span<const CompiledKernel> kernels)
      : in_(in), p_(*in.program), m_(m), kernels_(kernels) {
    auto& cx = m.getContext();
    pointer_ = llvm::PointerType::getUnqual(cx);
    i64_ = llvm::Type::getInt64Ty(cx);
    step_type_ = llvm::FunctionType::get(i64_, {pointer_, pointer_, i64_, i64_}, false);
    context_type_ = llvm::StructType::get(cx, {pointer_, pointer_, pointer_, i64_});
  }

  void write() {
    {
      auto* f = function(i64_, {pointer_}, in_.name + "_workspace_bytes");
      Writer w(f, p_.symbols, f->getArg(0));
      check_dims(w, f);
      w.b().CreateRet(w.value(workspace_bytes(p_)));
    }
    write_part();
    write_step();
    auto* i32 = llvm::Type::getInt32Ty(m_.getContext());
    auto* all = function(i32, std::vector<llvm::Type*>(7, pointer_), in_.name + "_run_parallel");
    write_run(all);
    auto* f = function(i32, std::vector<llvm::Type*>(5, pointer_), in_.name + "_run");
    Writer w(f, {}, nullptr);
    auto* none = llvm::ConstantPointerNull::get(pointer_);
    w.b().CreateRet(
        w.b().CreateCall(all, {f->getArg(0), f->getArg(1), f->getArg(2), f->getArg(3), f->getArg(4), none, none}));
    // The library's own: another model in the same program may have the same names.
    for (const CompiledKernel& k : kernels_) {
      own(k.name);
      for (const Step& s : k.steps) own(s.name);
    }
  }

 private:
  llvm::Function* function(llvm::Type* result, const std::vector<llvm::Type*>& arguments, const std::string& name,
                           bool is_own = false) {
    auto* f =
        llvm::Function::Create(llvm::FunctionType::get(result, arguments, false),
                               is_own ? llvm::Function::InternalLinkage : llvm::Function::ExternalLinkage, name, m_);
    f->addFnAttr("target-cpu", "x86-64");
    return f;
  }

  void own(const std::string& name) {
    llvm::Function* f = m_.getFunction(name);
    if (f->use_empty())
      f->eraseFromParent();
    else
      f->setLinkage(llvm::Function::InternalLinkage);
  }

  // void part(context, begin, end): what parallel_for is given. The context: step, buffers, dims, and its result.
  void write_part() {
    part_ = function(llvm::Type::getVoidTy(m_.getContext()), {pointer_, i64_, i64_}, in_.name + ".part", true);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(m_.getContext(), "entry", part_));
    llvm::Value* context = part_->getArg(0);
    const auto field = [&](unsigned i) { return b.CreateLoad(pointer_, b.CreateStructGEP(context_type_, context, i)); };
    llvm::Value* step = field(0);
    llvm::Value* failed = b.CreateCall(step_type_, step, {field(1), field(2), part_->getArg(1), part_->getArg(2)});
    auto* bad = llvm::BasicBlock::Create(m_.getContext(), "failed", part_);
    auto* done = llvm::BasicBlock::Create(m_.getContext(), "done", part_);
    b.CreateCondBr(b.CreateICmpNE(failed, b.getInt64(0)), bad, done);
    b.SetInsertPoint(bad);
    auto* store = b.CreateAlignedStore(failed, b.CreateStructGEP(context_type_, context, 3), llvm::Align(8));
    store->setAtomic(llvm::AtomicOrdering::Monotonic);
    b.CreateBr(done);
    b.SetInsertPoint(done);
    b.CreateRetVoid();
  }

  // i64 step(parallel_for or null, pool, step, buffers, dims, extent)
  void write_step() {
    step_ = function(i64_, {pointer_, pointer_, pointer_, pointer_, pointer_, i64_}, in_.name + ".step", true);
    auto& cx = m_.getContext();
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(cx, "entry", step_));
    auto* serial = llvm::BasicBlock::Create(cx, "serial", step_);
    auto* parallel = llvm::BasicBlock::Create(cx, "parallel", step_);
    llvm::Value* extent = step_->getArg(5);
    auto* context = b.CreateAlloca(context_type_);
    b.CreateCondBr(b.CreateOr(b.CreateIsNull(step_->getArg(0)), b.CreateICmpSLE(extent, b.getInt64(1))), serial,
                   parallel);
    b.SetInsertPoint(serial);
    b.CreateRet(
        b.CreateCall(step_type_, step_->getArg(2), {step_->getArg(3), step_->getArg(4), b.getInt64(0), extent}));
    b.SetInsertPoint(parallel);
    for (unsigned i = 0; i < 3; ++i) b.CreateStore(step_->getArg(2 + i), b.CreateStructGEP(context_type_, context, i));
    llvm::Value* result = b.CreateStructGEP(context_type_, context, 3);
    b.CreateStore(b.getInt64(0), result);
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer_, i64_, pointer_, pointer_}, false);
    b.CreateCall(type, step_->getArg(0), {step_->getArg(1), extent, part_, context});
    b.CreateRet(b.CreateLoad(i64_, result));
  }

  void write_run(llvm::Function* f) {
    Writer w(f, p_.symbols, f->getArg(3));
    check_dims(w, f);
    weights_ = f->getArg(4);
    if (in_.weights->is_inside()) {
      const llvm::StringRef raw(reinterpret_cast<const char*>(in_.weights->memory.data()), in_.weights->size);
      auto* data = llvm::ConstantDataArray::getRaw(raw, raw.size(), llvm::Type::getInt8Ty(m_.getContext()));
      auto* global = new llvm::GlobalVariable(m_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
      global->setAlignment(llvm::Align(64));
      weights_ = global;
    } else {
      check_weights(w, f);
    }
    places(w, f);
    calls(w, f);
  }

  // Returns -2 unless the program is right for these dims. One after the other: a guard may divide by a symbol whose
  // range says that it is not zero.
  void check_dims(Writer& w, llvm::Function* f) {
    const std::vector<Guard> conditions = entry_conditions(p_);
    if (conditions.empty()) return;
    auto& b = w.b();
    auto* refused = llvm::BasicBlock::Create(b.getContext(), "refused", f);
    llvm::IRBuilder<>(refused).CreateRet(llvm::ConstantInt::getSigned(f->getReturnType(), -2));
    for (const Guard& g : conditions) {
      auto* fine = llvm::BasicBlock::Create(b.getContext(), "fine", f);
      llvm::Value* excess = w.value(g.excess);
      llvm::Value* zero = b.getInt64(0);
      b.CreateCondBr(g.is_equality ? b.CreateICmpEQ(excess, zero) : b.CreateICmpSGE(excess, zero), fine, refused);
      b.SetInsertPoint(fine);
    }
  }

  // Returns -1 unless the weights are those of this model.
  void check_weights(Writer& w, llvm::Function* f) {
    auto& b = w.b();
    auto* present = llvm::BasicBlock::Create(b.getContext(), "present", f);
    auto* fine = llvm::BasicBlock::Create(b.getContext(), "fine", f);
    auto* wrong = llvm::BasicBlock::Create(b.getContext(), "wrong", f);
    b.CreateCondBr(b.CreateIsNull(weights_), wrong, present);
    b.SetInsertPoint(wrong);
    b.CreateRet(b.getInt32(static_cast<uint32_t>(-1)));
    b.SetInsertPoint(present);
    llvm::Value* is_right = b.getTrue();
    for (const size_t at : {size_t{0}, size_t{8}}) {
      uint64_t word = 0;
      std::memcpy(&word, in_.weights->head.data() + at, sizeof(word));
      llvm::Value* found = b.CreateLoad(i64_, b.CreateConstGEP1_64(b.getInt8Ty(), weights_, at));
      is_right = b.CreateAnd(is_right, b.CreateICmpEQ(found, b.getInt64(word)));
    }
    b.CreateCondBr(is_right, fine, wrong);
    b.SetInsertPoint(fine);
  }

  void places(Writer& w, llvm::Function* f) {
    auto& b = w.b();
    unsigned input = 0, output = 0;
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      const ProgramBuffer& p = p_.buffers[i];
      llvm::Value* at = nullptr;
      if (p.alias)
        at = w.advance(places_[static_cast<size_t>(p.alias->base)], w.value(p.alias->byte_offset));
      else if (p.kind == BufferKind::temp)
        at = w.advance(f->getArg(2), w.value(p.offset));
      else if (p.kind == BufferKind::constant)
        at = w.advance(weights_, b.getInt64(in_.weights->places[i]));
      else if (p.kind == BufferKind::input)
        at = b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), f->getArg(0), input));
      if (p.kind == BufferKind::input) ++input;
      if (p.kind == BufferKind::output && p.alias && p.alias->keeps) {
        ++output;  // it is where its input is
      } else if (p.kind == BufferKind::output) {
        auto* to = b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), f->getArg(1), output++));
        if (p.alias)
          copies_.push_back({to, at, i});
        else
          at = to;
      }
      places_.push_back(at);
    }
  }

  void calls(Writer& w, llvm::Function* f) {
    auto& b = w.b();
    size_t most_buffers = 1, most_dims = 1;
    for (const Kernel& k : p_.kernels) most_buffers = std::max(most_buffers, k.tensors.size());
    for (const CompiledKernel& k : kernels_) most_dims = std::max(most_dims, k.symbols.size());
    auto* buffers = b.CreateAlloca(b.getPtrTy(), b.getInt64(most_buffers));
    auto* dims = b.CreateAlloca(b.getInt64Ty(), b.getInt64(most_dims));
    llvm::Value* scratch = w.advance(f->getArg(2), w.value(aligned(p_.arena_bytes)));
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      const Call& call = p_.calls[c];
      const Kernel& kernel = p_.kernels[static_cast<size_t>(call.kernel)];
      const CompiledKernel& code = kernels_[static_cast<size_t>(call.kernel)];
      size_t next = 0;
      Expr used(0);
      for (size_t t = 0; t < kernel.tensors.size(); ++t) {
        const KernelTensor& tensor = kernel.tensors[t];
        if (tensor.view) continue;
        llvm::Value* at = nullptr;
        if (tensor.role == Role::temp) {
          at = w.advance(scratch, w.value(used));
          used = used + aligned(bytes_of(tensor));
        } else {
          at = places_[static_cast<size_t>(call.buffers[next++])];
        }
        b.CreateStore(at, b.CreateConstInBoundsGEP1_64(b.getPtrTy(), buffers, t));
      }
      for (size_t d = 0; d < code.symbols.size(); ++d)
        b.CreateStore(w.symbol(code.symbols[d]), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), dims, d));
      const auto stop_if = [&](llvm::Value* result) {
        auto* stop = llvm::BasicBlock::Create(b.getContext(), "failed", f);
        auto* go_on = llvm::BasicBlock::Create(b.getContext(), "next", f);
        b.CreateCondBr(b.CreateICmpNE(result, b.getInt64(0)), stop, go_on);
        b.SetInsertPoint(stop);
        b.CreateRet(b.getInt32(static_cast<uint32_t>(c) + 1));
        b.SetInsertPoint(go_on);
      };
      const Expr work = work_of(kernel);
      if (work.constant() && *work.constant() < kWorthThreads) {
        stop_if(b.CreateCall(m_.getFunction(code.name), {buffers, dims}));
        continue;
      }
      llvm::Value* is_worth = b.CreateICmpSGE(w.value(work), b.getInt64(kWorthThreads));
      llvm::Value* parallel = b.CreateSelect(is_worth, f->getArg(5), llvm::ConstantPointerNull::get(pointer_));
      for (const Step& s : code.steps)
        stop_if(
            b.CreateCall(step_, {parallel, f->getArg(6), m_.getFunction(s.name), buffers, dims, w.value(s.extent)}));
    }
    for (const auto& [to, from, buffer] : copies_)
      b.CreateMemCpy(to, llvm::MaybeAlign(), from, llvm::MaybeAlign(), w.value(bytes_of(p_.buffers[buffer].type)));
    b.CreateRet(b.getInt32(0));
  }

  struct Copy {
    llvm::Value *to, *from;
    size_t buffer;
  };

  const DriverInput& in_;
  const Program& p_;
  llvm::Module& m_;
  std::span<const CompiledKernel> kernels_;
  llvm::PointerType* pointer_ = nullptr;
  llvm::IntegerType* i64_ = nullptr;
  llvm::FunctionType* step_type_ = nullptr;
  llvm::StructType* context_type_ = nullptr;
  llvm::Function *part_ = nullptr, *step_ = nullptr;
  llvm::Value* weights_ = nullptr;
  std::vector<llvm::Value*> places_;
  std::vector<Copy> copies_;
};

}  // namespace

Expr workspace_bytes(const Program& p) {
  Expr most(0);
  for (const Kernel& k : p.kernels) {
    Expr sum(0);
    for (const KernelTensor& t : k.tensors)
      if (t.role == Role::temp && !t.view) sum = sum + aligned(bytes_of(t));
    most = max(most, sum);
  }
  return aligned(p.arena_bytes) + most;
}

void write_driver(const DriverInput& in, llvm::Module& module, std::span<const CompiledKernel> kernels) {
  Driver(in, module, kernels).write();
}

}  // namespace dlc::cpu
