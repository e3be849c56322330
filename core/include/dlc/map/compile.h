// From a program to an instruction stream for a machine of the family queue_machine/1.
//
//   DLC_TRY(AcceleratorImage image, compile_for(hw, program));
//
// Nothing here knows an op or an instruction by name: values are unified with the texts of the instructions
// (docs/hardware.md), loops and fields are solved, tiles are chosen by the texts' `cycles`, queues are synchronised by
// what instructions touch, and the result is proved race-free and deadlock-free before it is returned.
//
// External memory follows the family's contract: segments `code`, `weights`, `arena`, and others for inputs and
// outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dlc/hw/description.h"
#include "dlc/hw/encode.h"
#include "dlc/hw/timing.h"
#include "dlc/program/program.h"
#include "dlc/program/refusal.h"

namespace dlc {

// An input or output of the program in external memory.
struct AcceleratorIo {
  std::string name;  // the buffer's
  DType dtype = kS8;
  std::vector<int64_t> shape;
  int64_t lanes = 1;   // the layout: dim 1 (dim 0 of a vector) in blocks of so many elements, innermost
  int segment = -1;    // index of a space
  int64_t offset = 0;  // bytes
  int64_t bytes = 0;
};

struct AcceleratorLayer {
  std::string name;            // the model's node
  int64_t first = 0, end = 0;  // instructions
  int64_t macs = 0;
  int64_t predicted_cycles = 0;
  std::string plan;  // what computes it: "mac.row, vec"
  std::string tile;  // "o.1:1 y:14 x:14"
};

struct AcceleratorImage {
  std::vector<Instruction> program;
  std::vector<int32_t> tiles;  // per instruction: number of its tile in its layer
  std::vector<std::byte> weights;
  int64_t arena_bytes = 0;
  std::vector<AcceleratorIo> inputs, outputs;
  std::vector<AcceleratorLayer> layers;

  // Index of the layer of an instruction; -1: none.
  int layer_of(int64_t instruction) const;
};

// Bytes that the program needs of each segment, by index of its space.
std::vector<uint64_t> segment_sizes(const HwDescription& hw, const AcceleratorImage& image, size_t code_bytes);
// Where the segments begin in the machine's memory, one behind the other in whole pages; code is at 0.
std::vector<uint64_t> segment_bases(const HwDescription& hw, const AcceleratorImage& image, size_t code_bytes,
                                    uint64_t* end);

// The queue whose instructions multiply and add most in a cycle, and how much that is.
struct HwArray {
  int queue = -1;
  int64_t macs_per_cycle = 1;
};
HwArray array_of(const HwDescription& hw);

// How the cycles of a run are shared among its layers, predicted or measured. A layer's time begins when all before it
// have retired, or when the array starts on it or on one behind it, if that is earlier; it ends where the next one's
// begins. So the layers sum to `total`, and what the array does for a layer lies in that layer's time.
std::vector<int64_t> layer_cycles(const HwDescription& hw, const AcceleratorImage& image,
                                  std::span<const InstructionTime> times, int64_t total);

struct AcceleratorOptions {
  bool prove = true;  // check_program
};

Result<AcceleratorImage> compile_for(const HwDescription& hw, const Program& program,
                                     const AcceleratorOptions& options = {});

// The same for many programs of one machine: each kind of call is searched for once, by whichever asks first.
class AcceleratorCompiler {
 public:
  static Result<AcceleratorCompiler> make(std::shared_ptr<const HwDescription> hw);
  // The calls that the machine's instructions cannot do, and why.
  std::vector<Refusal> refused(const Program& program);
  Result<AcceleratorImage> compile(const Program& program, const AcceleratorOptions& options = {});

  AcceleratorCompiler(AcceleratorCompiler&&) noexcept;
  AcceleratorCompiler& operator=(AcceleratorCompiler&&) noexcept;
  ~AcceleratorCompiler();

 private:
  struct Impl;
  explicit AcceleratorCompiler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Dense tensor to the bytes of the layout and back.
std::vector<std::byte> pack_io(const AcceleratorIo& io, const Tensor& from);
Result<Tensor> unpack_io(const AcceleratorIo& io, std::span<const std::byte> from);

}  // namespace dlc
