// States in place: an output that is the next run's input has that input's bytes.
//
//   state  past -> present                                state  past -> present
//   input  past: f32[n,P,64]                              input  past: f32[n,512,64] holds [n,P,64]
//   output present: f32[n,P + S,64]                  ->   output present: f32[n,512,64] holds [n,P + S,64] keeping past
//   @concat: present[n, t, d] = past[n, t, d] ?:          @concat: present[n, P + s, d] = new[n, s, d]
//                               new[n, t - P, d]
//
// A value that grows lies in memory of its *capacity*, the most that its range allows, so that its elements stay where
// they are. What a kernel only copies onto itself is not done. `keeping` says that elements nobody writes are the old
// ones; check_aliases proves that no old element is needed after it was written over.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "dlc/program/program.h"

namespace dlc {

// Puts every state in place that can be proved right; how many. The others stay two buffers, and whoever runs the
// program hands the value on. Run it after layouts were chosen and before alias_sets.
Result<int> states_in_place(Program& p);

// The states that are in place, in the order of Program::states.
std::vector<StatePair> in_place_states(const Program& p);

// Memory of a state in place: dense, of the type that its input has in the program, with a value at its origin.
struct StateMemory {
  std::byte* bytes = nullptr;
  DType dtype;
  std::vector<int64_t> capacity;  // the memory's shape
  std::vector<int64_t> shape;     // the value's
};

// As bind_symbols(): `inputs` lacks those that are in place, `states` has them; each must have the memory it needs.
Result<Bindings> bind_symbols(const Program& p, std::span<const Tensor> inputs, std::span<const StateMemory> states);
// The shape of this type for these symbols, checked.
Result<std::vector<int64_t>> shape_of(const std::vector<Expr>& dims, const Bindings& symbols);

// A value into its memory, and out of it.
void put_value(const Tensor& value, const StateMemory& memory);
Result<Tensor> take_value(const StateMemory& memory);

// Who runs a program with the memory of its states: the outputs that are not in place.
using RunInPlace =
    std::function<Result<std::vector<Tensor>>(std::span<const Tensor> inputs, std::span<const StateMemory> states)>;
// All inputs and all outputs as values: states are copied into memory of their own and out of it.
Result<std::vector<Tensor>> run_by_value(const Program& p, std::span<const Tensor> inputs, const RunInPlace& run);

}  // namespace dlc
