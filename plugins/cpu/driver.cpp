#include "plugins/cpu/driver.h"

#include <fmt/format.h>
#include <llvm-c/Target.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace dlc::cpu {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

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
  Writer(llvm::Function* f, const Ranges& symbols, llvm::Value* dims) : b_(f->getContext()), function_(f) {
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
  llvm::Function* function_;
  std::map<std::string, llvm::Value*, std::less<>> symbols_;
};

class Driver {
 public:
  Driver(const DriverInput& in, llvm::Module& m, std::string name) : in_(in), m_(m), name_(std::move(name)) {}

  void write() {
    auto& cx = m_.getContext();
    auto* pointer = llvm::PointerType::getUnqual(cx);
    auto* i64 = llvm::Type::getInt64Ty(cx);
    {
      auto* f = llvm::Function::Create(llvm::FunctionType::get(i64, {pointer}, false), llvm::Function::ExternalLinkage,
                                       name_ + "_workspace_bytes", m_);
      Writer w(f, in_.program->symbols, f->getArg(0));
      w.b().CreateRet(w.value(workspace_bytes(in_)));
    }
    auto* f = llvm::Function::Create(
        llvm::FunctionType::get(llvm::Type::getInt32Ty(cx), {pointer, pointer, pointer, pointer, pointer}, false),
        llvm::Function::ExternalLinkage, name_ + "_run", m_);
    Writer w(f, in_.program->symbols, f->getArg(3));
    weights_ = f->getArg(4);
    if (in_.weights_inside) {
      const llvm::StringRef raw(reinterpret_cast<const char*>(in_.weights.data()), in_.weights.size());
      auto* data = llvm::ConstantDataArray::getRaw(raw, raw.size(), llvm::Type::getInt8Ty(cx));
      auto* global = new llvm::GlobalVariable(m_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
      global->setAlignment(llvm::Align(64));
      weights_ = global;
    }
    places(w, f);
    calls(w, f);
  }

 private:
  void places(Writer& w, llvm::Function* f) {
    auto& b = w.b();
    unsigned input = 0, output = 0;
    for (size_t i = 0; i < in_.program->buffers.size(); ++i) {
      const ProgramBuffer& p = in_.program->buffers[i];
      llvm::Value* at = nullptr;
      if (p.alias)
        at = w.advance(places_[static_cast<size_t>(p.alias->base)], w.value(p.alias->byte_offset));
      else if (p.kind == BufferKind::temp)
        at = w.advance(f->getArg(2), w.value(p.offset));
      else if (p.kind == BufferKind::constant)
        at = w.advance(weights_, b.getInt64(in_.constants[i]));
      else if (p.kind == BufferKind::input)
        at = b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), f->getArg(0), input));
      if (p.kind == BufferKind::input) ++input;
      if (p.kind == BufferKind::output) {
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
    for (const DriverKernel& k : in_.kernels) {
      most_buffers = std::max(most_buffers, k.plan->kernel.tensors.size());
      most_dims = std::max(most_dims, k.symbols.size());
    }
    auto* buffers = b.CreateAlloca(b.getPtrTy(), b.getInt64(most_buffers));
    auto* dims = b.CreateAlloca(b.getInt64Ty(), b.getInt64(most_dims));
    auto* entry_type = llvm::FunctionType::get(b.getInt64Ty(), {b.getPtrTy(), b.getPtrTy()}, false);
    llvm::Value* scratch = w.advance(f->getArg(2), w.value(aligned(in_.program->arena_bytes)));
    for (size_t c = 0; c < in_.program->calls.size(); ++c) {
      const Call& call = in_.program->calls[c];
      const DriverKernel& kernel = in_.kernels[static_cast<size_t>(call.kernel)];
      const auto store = [&](size_t i, llvm::Value* p) {
        b.CreateStore(p, b.CreateConstInBoundsGEP1_64(b.getPtrTy(), buffers, i));
      };
      size_t next = 0;
      Expr used(0);
      for (size_t t = 0; t < kernel.plan->kernel.tensors.size(); ++t) {
        const KernelTensor& tensor = kernel.plan->kernel.tensors[t];
        if (tensor.view) continue;
        const auto& packed = kernel.plan->packed;
        const auto at = std::ranges::find(packed, static_cast<int>(t), &PackedTensor::packed);
        if (at != packed.end()) {
          store(t, w.advance(weights_, b.getInt64(in_.packed[c][static_cast<size_t>(at - packed.begin())])));
        } else if (tensor.role == Role::temp) {
          store(t, w.advance(scratch, w.value(used)));
          used = used + aligned(bytes_of(tensor));
        } else {
          store(t, places_[static_cast<size_t>(call.buffers[next++])]);
        }
      }
      for (size_t d = 0; d < kernel.symbols.size(); ++d)
        b.CreateStore(w.symbol(kernel.symbols[d]), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), dims, d));
      auto callee = m_.getOrInsertFunction(kernel.symbol, entry_type);
      llvm::Value* failed = b.CreateICmpNE(b.CreateCall(callee, {buffers, dims}), b.getInt64(0));
      auto* stop = llvm::BasicBlock::Create(b.getContext(), "failed", f);
      auto* go_on = llvm::BasicBlock::Create(b.getContext(), "next", f);
      b.CreateCondBr(failed, stop, go_on);
      b.SetInsertPoint(stop);
      b.CreateRet(b.getInt32(static_cast<uint32_t>(c) + 1));
      b.SetInsertPoint(go_on);
    }
    for (const auto& [to, from, buffer] : copies_)
      b.CreateMemCpy(to, llvm::MaybeAlign(), from, llvm::MaybeAlign(),
                     w.value(bytes_of(in_.program->buffers[buffer].type)));
    b.CreateRet(b.getInt32(0));
  }

  struct Copy {
    llvm::Value *to, *from;
    size_t buffer;
  };

  const DriverInput& in_;
  llvm::Module& m_;
  std::string name_;
  llvm::Value* weights_ = nullptr;
  std::vector<llvm::Value*> places_;
  std::vector<Copy> copies_;
};

}  // namespace

Expr workspace_bytes(const DriverInput& in) {
  Expr most(0);
  for (const DriverKernel& k : in.kernels) {
    Expr sum(0);
    for (const KernelTensor& t : k.plan->kernel.tensors)
      if (t.role == Role::temp && !t.view) sum = sum + aligned(bytes_of(t));
    most = max(most, sum);
  }
  return aligned(in.program->arena_bytes) + most;
}

Result<std::vector<std::byte>> driver_object(const DriverInput& in, const Target& target, const std::string& name) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  std::string problem;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  if (t == nullptr) return fail({}, "LLVM has no x86-64 target: " + problem);
  const std::unique_ptr<llvm::TargetMachine> machine(t->createTargetMachine(
      kTriple, "x86-64", target.features, llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small));
  llvm::LLVMContext context;
  llvm::Module module("dlc_driver", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(kTriple);
  Driver(in, module, name).write();
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(module, &out)) return fail({}, "internal error: invalid LLVM IR: " + problem);
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  passes.run(module);
  const auto* begin = reinterpret_cast<const std::byte*>(object.data());
  return std::vector<std::byte>(begin, begin + object.size());
}

}  // namespace dlc::cpu
