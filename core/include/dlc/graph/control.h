// Control flow of a graph: nodes that own closed graphs, their bodies, and run them when the model runs.
//
//   %1: f32[n] = if(%c, %x) then {
//     in    %x: f32[N]
//     ...
//     out   %y
//   } else {
//     ...
//   }
//   %2: s64[], %3: f32[t,N] = loop(%trips, %going, %start, %x) {carried = 1} body {
//     in    %i: s64[]       # the trip, from 0
//     in    %state: s64[]   # carried
//     in    %x: f32[N]
//     ...
//     out   %more           # whether there is another trip
//     out   %next           # carried
//     out   %y              # stacked: one row for each trip
//   }
//
// `if` runs one of its bodies; the other's errors do not happen. `loop` runs its body as long as both the number of
// trips and the condition allow it; each may be absent. Everything that a body uses from outside is an operand of the
// node and an input of the body. Its symbols are its own: the shapes of its inputs bind them whenever it runs, so that
// a carried value may have another shape in every trip. A dim of a result that the bodies do not say is a symbol that
// the result itself binds, as with extern ops (dlc/graph/segments.h).
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

inline constexpr int kMaxBodyDepth = 16;  // of bodies in bodies

// What the bodies of `if` and `loop` are called, in order; empty for any other op.
std::span<const std::string_view> body_names(std::string_view op);
// How many operands come before those that bodies take: the condition; the number of trips and the condition.
size_t leading_operands(std::string_view op);
// Of `loop`, the number of carried values.
int64_t carried_of(const Node& n);

// Whether operands, bodies and results fit each other. Bodies themselves are not verified.
Result<> check_control(const Graph& g, const Node& n, std::span<const TensorType> results);

// What a body takes and gives: enough to run control flow over it, wherever the body itself runs.
struct BodyType {
  Ranges symbols;
  std::vector<TensorType> inputs, outputs;
};
BodyType body_type(const Graph& body);

// Runs one body on these inputs.
using RunBody = std::function<Result<std::vector<Tensor>>(size_t body, std::vector<Tensor> inputs)>;
// The meaning of `if` and `loop`; an absent operand is an invalid Tensor.
Result<std::vector<Tensor>> run_control(std::string_view op, int64_t carried, std::span<const BodyType> bodies,
                                        std::span<const Tensor> operands, const RunBody& run);

}  // namespace dlc
