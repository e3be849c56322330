// Object files to functions of this process.
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cmath>
#include <cstring>
#include <map>

#include "codegen.h"
#include "machine.h"

namespace dlc::cpu {

namespace {

std::string take(llvm::Error e) { return llvm::toString(std::move(e)); }

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

}  // namespace

Result<CompiledKernels> link(const ObjectFile& object) {
  const double start = thread_ms();
  initialise_llvm();
  CompiledKernels out;
  out.kernels_ = object.kernels;
  out.stats_ = object.stats;
  out.assembly_ = object.assembly;
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(machine_builder()).create();
  if (!jit) return fail({}, "cannot start the linker: " + take(jit.takeError()));
  const auto failed = [](llvm::Error e) { return fail({}, "cannot link the compiled code: " + take(std::move(e))); };
  llvm::orc::SymbolMap symbols;
  for (const auto& [name, address] : library())
    symbols[(*jit)->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                              llvm::JITSymbolFlags::Exported};
  if (auto e = (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return failed(std::move(e));
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size());
  if (auto e = (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(bytes, "dlc"))) return failed(std::move(e));
  for (CompiledKernel& k : out.kernels_) {
    auto address = (*jit)->lookup(k.name);
    if (!address) return failed(address.takeError());
    k.entry = address->toPtr<EntryPoint>();
    for (Step& s : k.steps) {
      auto step = (*jit)->lookup(s.name);
      if (!step) return failed(step.takeError());
      s.run = step->toPtr<StepFunction>();
    }
  }
  out.stats_.codegen_ms += thread_ms() - start;
  out.code_ = std::shared_ptr<llvm::orc::LLJIT>(std::move(*jit));
  return out;
}

Result<CompiledKernels> compile(std::span<const Unit> units, const Target& target, const Options& options) {
  if (!target.runs_here())
    return fail({}, "this machine lacks a feature of the target (" + target.features + ")",
                "compile to an object file, or for a lower target");
  DLC_TRY(const ObjectFile object, compile_to_object(units, target, options));
  return link(object);
}

}  // namespace dlc::cpu
