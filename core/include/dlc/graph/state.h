// States: what a model keeps from one run to the next, such as the keys and values of a decoder.
//
//   state %past -> "present"      # the output `present` is the input `past` of the next run
//
// A present may be longer than its past in one dim, past[n, P, d] and present[n, P + S, d]. Memory is then kept for the
// most that P may be, its *capacity*, and a present that would be longer is refused when a run begins: the ranges of
// the other symbols say so (`S in 1..512 - P`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

// Pairs by name, such as "past=present". One `*` in both stands for the same text: "past.*=present.*" is a state for
// every input that fits. Names, types and dims are checked, ranges narrowed.
Result<> declare_states(Graph& g, const std::vector<std::string>& wanted);

// Why these two cannot be a state, said of the output; empty if they can.
std::string not_a_state(const TensorType& input, const TensorType& output, const Ranges& symbols);
// The one dim in which an output is not as its input; nothing when they are the same.
std::optional<size_t> growing_dim(const TensorType& input, const TensorType& output, const Ranges& symbols);
// How long that dim of the input and of the output may become; nothing where no bound can be proved.
std::optional<int64_t> capacity(const TensorType& input, const TensorType& output, size_t dim, const Ranges& symbols);

}  // namespace dlc
