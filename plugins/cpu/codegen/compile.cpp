// From kernels to an object file: IR, passes, machine code.
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <cstring>
#include <set>

#include "codegen.h"
#include "emitter.h"
#include "machine.h"

namespace dlc::cpu {

namespace {

void run_passes(llvm::Module& module, llvm::TargetMachine& target_machine, int level) {
  if (level <= 0) return;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target_machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  if (level == 1) {
    // The emitter already makes vectors, hoists and names every address once: tidying up is enough.
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::EarlyCSEPass(true));
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::DCEPass());
    llvm::ModulePassManager all;
    all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    all.run(module, modules);
    return;
  }
  auto pipeline =
      builder.buildPerModuleDefaultPipeline(level == 2 ? llvm::OptimizationLevel::O2 : llvm::OptimizationLevel::O3);
  pipeline.run(module, modules);
}

struct Ir {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

Result<Ir> build(std::span<const Unit> units, const Target& target, llvm::TargetMachine& m, const Options& options,
                 std::vector<CompiledKernel>& kernels, Stats& stats) {
  const double start = thread_ms();
  Ir ir;
  ir.context = std::make_unique<llvm::LLVMContext>();
  ir.module = std::make_unique<llvm::Module>("dlc", *ir.context);
  ir.module->setDataLayout(m.createDataLayout());
  ir.module->setTargetTriple(kTriple);
  std::set<std::string> names;
  for (const Unit& u : units) {
    std::string name = u.kernel->name.empty() ? "kernel" : u.kernel->name;
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    name = "dlc_" + name;
    std::string unique = name;
    for (int i = 1; !names.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
    Emitter e(*u.kernel, target, *ir.module);
    DLC_CHECK(e.emit(unique, u.schedules));
    kernels.push_back({unique, e.symbols(), nullptr, e.steps()});
  }
  if (options.extend) options.extend(*ir.module, kernels);
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(*ir.module, &out)) return fail({}, "internal error: invalid LLVM IR: " + problem);
  const double built = thread_ms();
  run_passes(*ir.module, m, options.opt_level);
  stats.ir_ms = built - start;
  stats.passes_ms = thread_ms() - built;
  return ir;
}

// What LLVM writes, as bytes: no copy of an object that has weights inside.
class ByteStream final : public llvm::raw_pwrite_stream {
 public:
  explicit ByteStream(std::vector<std::byte>& to) : llvm::raw_pwrite_stream(true), to_(to) {}

 private:
  void write_impl(const char* bytes, size_t size) override {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes);
    to_.insert(to_.end(), begin, begin + size);
  }
  void pwrite_impl(const char* bytes, size_t size, uint64_t offset) override {
    std::memcpy(to_.data() + offset, bytes, size);
  }
  uint64_t current_pos() const override { return to_.size(); }

  std::vector<std::byte>& to_;
};

std::vector<std::byte> emit(llvm::Module& module, llvm::TargetMachine& m, llvm::CodeGenFileType type) {
  std::vector<std::byte> bytes;
  ByteStream out(bytes);
  llvm::legacy::PassManager passes;
  m.addPassesToEmitFile(passes, out, nullptr, type);
  passes.run(module);
  return bytes;
}

}  // namespace

Result<ObjectFile> compile_to_object(std::span<const Unit> units, const Target& target, const Options& options) {
  DLC_TRY(const auto m, machine(target));
  ObjectFile out;
  DLC_TRY(const Ir ir, build(units, target, *m, options, out.kernels, out.stats));
  if (options.keep_llvm) {
    llvm::raw_string_ostream text(out.llvm);
    ir.module->print(text, nullptr);
  }
  if (options.keep_assembly) {
    const auto copy = llvm::CloneModule(*ir.module);
    const auto text = emit(*copy, *m, llvm::CodeGenFileType::AssemblyFile);
    out.assembly.assign(reinterpret_cast<const char*>(text.data()), text.size());
    out.stats.spills = count_spills(out.assembly);
  }
  const double start = thread_ms();
  out.bytes = emit(*ir.module, *m, llvm::CodeGenFileType::ObjectFile);
  out.stats.codegen_ms = thread_ms() - start;
  return out;
}

}  // namespace dlc::cpu
