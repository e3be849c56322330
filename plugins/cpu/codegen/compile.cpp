// From kernels to machine code: IR, passes, code generation, linking in memory.
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>

#include "codegen.h"
#include "emitter.h"

namespace dlc::cpu {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// Time of this thread, so that other load does not count.
double now_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
}

std::string take(llvm::Error e) { return llvm::toString(std::move(e)); }

Result<std::unique_ptr<llvm::TargetMachine>> machine(const Target& target) {
  initialise_llvm();
  std::string problem;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  if (!t) return fail({}, "LLVM has no x86-64 target: " + problem);
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> m(t->createTargetMachine(kTriple, "x86-64", target.features, options,
                                                                llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                llvm::CodeGenOptLevel::Default));
  if (!m) return fail({}, "LLVM cannot make code for features " + target.features);
  return m;
}

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

// Symbols of the C library that generated code may call.
template <class R, class... Args>
void* address_of(R (*f)(Args...)) {
  return reinterpret_cast<void*>(f);
}

std::map<std::string, void*> library() {
  using F = float (*)(float);
  using D = double (*)(double);
  std::map<std::string, void*> r;
#define DLC_LIBM(name)                           \
  r[#name] = address_of(static_cast<D>(::name)); \
  r[#name "f"] = address_of(static_cast<F>(::name##f))
  DLC_LIBM(exp);
  DLC_LIBM(log);
  DLC_LIBM(sin);
  DLC_LIBM(cos);
  DLC_LIBM(tan);
  DLC_LIBM(asin);
  DLC_LIBM(acos);
  DLC_LIBM(atan);
  DLC_LIBM(sinh);
  DLC_LIBM(cosh);
  DLC_LIBM(tanh);
  DLC_LIBM(asinh);
  DLC_LIBM(acosh);
  DLC_LIBM(atanh);
  DLC_LIBM(erf);
  DLC_LIBM(exp2);
  DLC_LIBM(log2);
  DLC_LIBM(log10);
  DLC_LIBM(cbrt);
  DLC_LIBM(sqrt);
#undef DLC_LIBM
  r["pow"] = address_of(static_cast<double (*)(double, double)>(::pow));
  r["powf"] = address_of(static_cast<float (*)(float, float)>(::powf));
  r["fmod"] = address_of(static_cast<double (*)(double, double)>(::fmod));
  r["fmodf"] = address_of(static_cast<float (*)(float, float)>(::fmodf));
  r["ldexp"] = address_of(static_cast<double (*)(double, int)>(::ldexp));
  r["ldexpf"] = address_of(static_cast<float (*)(float, int)>(::ldexpf));
  r["memcpy"] = address_of(::memcpy);
  r["memmove"] = address_of(::memmove);
  r["memset"] = address_of(::memset);
  return r;
}

struct Ir {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

}  // namespace

// Shared by both forms of output.
struct Compiler {
  static Result<Ir> build(std::span<const Unit> units, const Target& target, llvm::TargetMachine& m,
                          const Options& options, std::vector<CompiledKernel>& kernels, Stats& stats) {
    const double start = now_ms();
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
    std::string problem;
    llvm::raw_string_ostream out(problem);
    if (llvm::verifyModule(*ir.module, &out)) return fail({}, "internal error: invalid LLVM IR: " + problem);
    const double built = now_ms();
    run_passes(*ir.module, m, options.opt_level);
    stats.ir_ms = built - start;
    stats.passes_ms = now_ms() - built;
    return ir;
  }

  static std::string emit(llvm::Module& module, llvm::TargetMachine& m, bool assembly) {
    llvm::SmallString<0> bytes;
    llvm::raw_svector_ostream out(bytes);
    llvm::legacy::PassManager passes;
    m.addPassesToEmitFile(passes, out, nullptr,
                          assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile);
    passes.run(module);
    return bytes.str().str();
  }

  static Result<CompiledKernels> compile(std::span<const Unit> units, const Target& target, const Options& options) {
    if (!target.runs_here())
      return fail({}, "this machine lacks a feature of the target (" + target.features + ")",
                  "compile to an object file, or for a lower target");
    DLC_TRY(auto m, machine(target));
    CompiledKernels out;
    DLC_TRY(Ir ir, build(units, target, *m, options, out.kernels_, out.stats_));
    if (options.keep_assembly) {
      auto copy = llvm::CloneModule(*ir.module);
      out.assembly_ = emit(*copy, *m, true);
      out.stats_.spills = count_spills(out.assembly_);
    }
    const double start = now_ms();
    llvm::orc::JITTargetMachineBuilder builder{llvm::Triple(kTriple)};
    builder.setCPU("x86-64");
    builder.addFeatures({target.features});
    builder.getFeatures() = llvm::SubtargetFeatures(target.features);
    auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(builder)).create();
    if (!jit) return fail({}, "cannot start the JIT: " + take(jit.takeError()));
    llvm::orc::SymbolMap symbols;
    for (const auto& [name, address] : library())
      symbols[(*jit)->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                                llvm::JITSymbolFlags::Exported};
    if (auto e = (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))))
      return fail({}, "JIT: " + take(std::move(e)));
    if (auto e = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(std::move(ir.module), std::move(ir.context))))
      return fail({}, "JIT: " + take(std::move(e)));
    for (CompiledKernel& k : out.kernels_) {
      auto address = (*jit)->lookup(k.name);
      if (!address) return fail({}, "JIT: " + take(address.takeError()));
      k.entry = address->toPtr<EntryPoint>();
      for (Step& s : k.steps) {
        auto step = (*jit)->lookup(s.name);
        if (!step) return fail({}, "JIT: " + take(step.takeError()));
        s.run = step->toPtr<StepFunction>();
      }
    }
    out.stats_.codegen_ms = now_ms() - start;
    out.code_ = std::shared_ptr<llvm::orc::LLJIT>(std::move(*jit));
    return out;
  }

  static Result<ObjectFile> object(std::span<const Unit> units, const Target& target, const Options& options) {
    DLC_TRY(auto m, machine(target));
    ObjectFile out;
    DLC_TRY(Ir ir, build(units, target, *m, options, out.kernels, out.stats));
    const double start = now_ms();
    if (options.keep_assembly) {
      auto copy = llvm::CloneModule(*ir.module);
      out.stats.spills = count_spills(emit(*copy, *m, true));
    }
    const std::string bytes = emit(*ir.module, *m, false);
    out.bytes.resize(bytes.size());
    std::memcpy(out.bytes.data(), bytes.data(), bytes.size());
    out.stats.codegen_ms = now_ms() - start;
    return out;
  }
};

Result<CompiledKernels> compile(std::span<const Unit> units, const Target& target, const Options& options) {
  return Compiler::compile(units, target, options);
}

Result<ObjectFile> compile_to_object(std::span<const Unit> units, const Target& target, const Options& options) {
  return Compiler::object(units, target, options);
}

int count_spills(std::string_view assembly) {
  std::vector<std::string_view> lines;
  while (!assembly.empty()) {
    const size_t end = std::min(assembly.find('\n'), assembly.size());
    lines.push_back(assembly.substr(0, end));
    assembly.remove_prefix(std::min(end + 1, assembly.size()));
  }
  // Innermost loops: from a label to the first jump back to it, without a whole loop in between.
  std::map<std::string_view, size_t> labels;
  size_t last_loop_start = 0;
  int spills = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (line.starts_with(".L") && line.find(':') != std::string_view::npos) {
      labels[line.substr(0, line.find(':'))] = i;
      continue;
    }
    if (!line.starts_with("\tj")) continue;
    const auto target = labels.find(line.substr(std::min(line.find_last_of('\t') + 1, line.size())));
    if (target == labels.end() || target->second < last_loop_start) continue;
    last_loop_start = target->second + 1;
    for (size_t j = target->second; j < i; ++j)
      spills += lines[j].find("mm") != std::string_view::npos && lines[j].find("mov") != std::string_view::npos &&
                lines[j].find("(%rsp)") != std::string_view::npos;
  }
  return spills;
}

}  // namespace dlc::cpu
