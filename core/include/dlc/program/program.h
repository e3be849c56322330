// The program level: kernels called in order over buffers that have a place in memory. It is what a backend compiles.
//
//   dlc.program 1
//   program @mlp (N in 1..64) {
//     input  x: f32[N,784]
//     const  w1: f32[784,128]
//     temp   t0: f32[N,128] at 0
//     output y "probabilities": f32[N,10]
//     kernel @k0 { ... dlc.kernel text without its header line ... }
//     call @k0(x, w1, t0)  loc "fc1", "relu1"
//   }
//
// A call names one buffer for every input, constant and output tensor of its kernel, in the kernel's tensor order; the
// kernel's temporaries are its own. Buffers of kind temp lie in one arena at the offset the planner gave them. An alias
// has no offset of its own: it lies inside another buffer, as a part of its value (a reshape, a slice, the operand of a
// concat), or takes the place of a value that is no longer needed (a residual sum):
//
//     temp   t1: f32[N,64] in t0 at 256 * N
//     temp   t2: f32[N,128] over t0
//
// `state past -> present` says that an output is the next run's input; where it lies over that, it is kept in place
// (dlc/program/state.h).
//
// What the kernels assume of the symbols beyond their ranges is a guard (dlc/program/guard.h), checked by every entry.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/graph/graph.h"
#include "dlc/kernel/kernel.h"
#include "dlc/passes/fuse.h"
#include "dlc/program/guard.h"

namespace dlc {

enum class BufferKind : uint8_t { input, output, constant, temp };

struct BufferAlias {
  int base = -1;          // index of the buffer that holds the bytes
  Expr byte_offset;       // from its start
  bool replaces = false;  // a value of its own in the bytes of one that is no longer needed, not a part of it
  bool keeps = false;     // and that has the old one's elements where nothing is written: `keeping`, not `over`
};

struct ProgramBuffer {
  std::string name;           // unique; also the name in the weight table for constants
  std::string external_name;  // inputs and outputs: the model's own name
  TensorType type;            // of its bytes, which is what kernels see
  std::vector<Expr> holds;    // the shape of its value, at the bytes' origin, where that is less; otherwise empty
  BufferKind kind = BufferKind::temp;
  Expr offset;  // temp: bytes from the start of the arena
  std::optional<BufferAlias> alias;
};

struct Call {
  int kernel = -1;           // index into Program::kernels
  std::vector<int> buffers;  // one per non-temp tensor of the kernel, in tensor order
  std::vector<std::string> locations;
};

struct Program {
  std::string name = "main";
  Ranges symbols;
  std::vector<Guard> guards;
  std::vector<ProgramBuffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Call> calls;
  std::vector<StatePair> states;  // by the names of buffers
  Expr arena_bytes;
  std::vector<std::pair<std::string, Tensor>> weights;  // constants by buffer name, in execution order

  int find_buffer(std::string_view name) const;  // -1 when absent
  const Tensor* weight(std::string_view name) const;
};

// What a caller gives or gets of an input or output.
TensorType value_type(const ProgramBuffer& b);

std::string print(const Program& p);
Result<Program> parse_program(std::string_view text, const std::string& file = {});  // weights stay empty
Result<> verify(const Program& p);

// Graph to program: one kernel per fusion group, buffers, the memory plan. `align` is the alignment of every temp
// buffer in bytes. Kernels are named k<number>_<op of the first node>.
Result<Program> lower_to_program(const Graph& g, const FusionOptions& options = {}, int64_t align = 64);

// Makes kernels that differ in names only one. Calls keep their own locations; the kernel lists those of all.
void share_kernels(Program& p);

// Gives every temp buffer an offset such that buffers alive at the same time do not overlap, and sets arena_bytes.
Result<> plan_memory(Program& p, int64_t align = 64);
// Independent check of the plan: no two live buffers overlap unless one aliases the other.
Result<> check_memory_plan(const Program& p);

// What must hold of the symbols of a run, each relying on those before it: their ranges, then the guards.
std::vector<Guard> entry_conditions(const Program& p);
// Whether the program is right for these values.
Result<> check_entry(const Program& p, const Bindings& symbols);
// The entry of every run: checks the inputs against the program's and takes the symbols' values from them.
Result<Bindings> bind_symbols(const Program& p, std::span<const Tensor> inputs);

// Runs the program through the kernel interpreter: the oracle of every backend that compiles programs.
Result<std::vector<Tensor>> run_program(const Program& p, std::span<const Tensor> inputs,
                                        const InterpOptions& options = {});

}  // namespace dlc
