// Kernels to machine code: generic lowering of any flat Kernel through LLVM, in memory (JIT) or as an object file.
//
// A compiled kernel is one function. buffers[i] is the storage of tensors[i] (ignored for views, as in the
// interpreter); dims are the values of the kernel's free symbols in the order of CompiledKernel::symbols. It returns 0,
// or the 1-based number of the statement (in program order) that stored an undefined value or stored out of bounds.
//
//   DLC_TRY(const cpu::Target target, cpu::Target::of(hw));  // an HwDescription
//   DLC_TRY(auto code, cpu::compile({{&kernel}}, target));
//   int64_t failed_statement = code.kernels()[0].entry(buffers, dims);
//
// How the loops of a statement run is a Schedule: loop order, register tile and vector loop. Statements without one get
// the default schedule. Schedules never change the meaning, apart from the order in which a float sum is added up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/kernel/kernel.h"

namespace llvm {
class Module;
}

namespace dlc {
struct HwDescription;
}

namespace dlc::cpu {

// What the code may use. Chosen by feature bits, never by the CPU's name.
struct Target {
  std::string features;  // LLVM feature string: "+avx2,+fma,..."
  int vector_bytes = 0;  // width of the vectors that are used
  int registers = 0;     // vector registers
  int64_t l2_bytes = 0;  // second-level cache of one core

  bool has(std::string_view feature) const;  // has("fma")

  // What a description says: its features, the widest of its vectors that they allow, its cache. Features are named
  // as there ("avx512_vnni", "sse4_1") or as in LLVM; one that x86-64 does not have is an error at its place.
  static Result<Target> of(const HwDescription& hw);
  std::string missing_here() const;  // features that this machine lacks: "avx512f, avx512bw"
  bool runs_here() const { return missing_here().empty(); }
};

// One loop of a schedule, outermost first. A loop over `step` points at once (step > 1) is part of the register tile:
// its points are unrolled and computed together. The vector loop takes step * lanes points. A `block` loop only bounds
// the range of a later entry for the same variable (cache blocking).
struct ScheduleLoop {
  enum class Kind : uint8_t { point, tile, vector, block };
  std::string var;
  Kind kind = Kind::point;
  int64_t step = 1;
};

// A cache line fetched to the second-level cache in every iteration of the innermost reduction loop: the part of the
// next packed panel whose turn it is. It may lie behind the tensor, where nothing is read.
struct Prefetch {
  int tensor = -1;
  Expr byte_offset;  // over the loops of the statement and the reduction
};

struct Schedule {
  std::vector<ScheduleLoop> loops;  // empty: the default schedule
  int lanes = 1;                    // elements of one vector
  int64_t unroll = 0;               // of the innermost reduction loop; 0: chosen
  std::vector<Prefetch> prefetch;
};

// A kernel and the schedules of its assignments in program order (missing ones are chosen).
struct Unit {
  const Kernel* kernel = nullptr;
  std::vector<Schedule> schedules;
};

using EntryPoint = int64_t (*)(void* const* buffers, const int64_t* dims);

// One top-level statement of a kernel, for several threads: parts [begin, end) of [0, extent) may run at the same time,
// steps run one after the other. The entry point runs all parts of all steps. Returns what the entry point returns.
using StepFunction = int64_t (*)(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end);
struct Step {
  std::string name;
  Expr extent;                 // over the symbols; 1: cannot be split
  StepFunction run = nullptr;  // null for objects
};

struct CompiledKernel {
  std::string name;                  // of the function; unique within one compilation
  std::vector<std::string> symbols;  // what dims[i] is
  EntryPoint entry = nullptr;        // null for objects
  std::vector<Step> steps = {};
};

struct Options {
  int opt_level = 1;  // of the IR passes: 0 none, 1 a short list (the emitter already makes vectors), 2, 3 as clang
  bool keep_assembly = false;  // fill `assembly` and count spills
  bool keep_llvm = false;      // fill ObjectFile::llvm
  // Adds functions that call the kernels to the module they are in, before the IR passes.
  std::function<void(llvm::Module&, std::span<const CompiledKernel>)> extend = {};
};

// CPU time of the compiling thread.
struct Stats {
  double ir_ms = 0;       // building the IR
  double passes_ms = 0;   // IR passes
  double codegen_ms = 0;  // machine code and linking
  int spills = 0;         // vector registers moved to or from the stack in innermost loops (needs keep_assembly)
};

struct ObjectFile {
  std::vector<std::byte> bytes;  // ELF relocatable
  std::vector<CompiledKernel> kernels;
  Stats stats;
  std::string assembly, llvm;  // texts of the same, when they are kept
};
Result<ObjectFile> compile_to_object(std::span<const Unit> units, const Target& target, const Options& options = {});

// Code in this process.
class CompiledKernels {
 public:
  const std::vector<CompiledKernel>& kernels() const { return kernels_; }
  const Stats& stats() const { return stats_; }
  const std::string& assembly() const { return assembly_; }

 private:
  friend Result<CompiledKernels> link(const ObjectFile& object);
  std::shared_ptr<void> code_;  // keeps the machine code alive
  std::vector<CompiledKernel> kernels_;
  Stats stats_;
  std::string assembly_;
};

// Puts the object's code into memory and finds the functions of object.kernels in it, by their names.
Result<CompiledKernels> link(const ObjectFile& object);

// Both in one.
Result<CompiledKernels> compile(std::span<const Unit> units, const Target& target, const Options& options = {});

// The schedule compile() would choose for an assignment of k: what explain and tests print.
Schedule default_schedule(const Kernel& k, const Stmt& assign, const Target& target);
std::string to_string(const Schedule& s);

// Moves of vector registers to or from the stack in the innermost loops of assembly text.
int count_spills(std::string_view assembly);

}  // namespace dlc::cpu
