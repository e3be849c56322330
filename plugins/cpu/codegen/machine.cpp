#include "machine.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetOptions.h>

#include <ctime>
#include <mutex>

namespace dlc::cpu {

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

llvm::orc::JITTargetMachineBuilder machine_builder() {
  llvm::orc::JITTargetMachineBuilder builder{llvm::Triple(kTriple)};
  builder.setCPU("x86-64");
  return builder;
}

double thread_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

}  // namespace dlc::cpu
