// Which side broke: {last green, new} RTL x {last green, new} stream, each pair co-simulated.
//
// The last green pair lies in a folder, as `stream.dlca` and `rtl.so`; a new pair that is bit exact takes its place,
// both at once.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/dlc/json.h"

namespace dlc::cli {

struct MatrixPair {
  std::string artifact, library;
};
// Co-simulates a pair: the result of `dlc cosim`.
using CosimulatePair = std::function<Result<Json>(const MatrixPair&)>;

// Whether the folder has an entry of this name.
bool is_in_matrix(std::string_view name);

// Adds to the result of the new pair: matrix[], of each pair what came out, and `broke`: "nothing", "RTL", "stream",
// "both", "neither alone" or "something else".
Result<> add_matrix(const std::string& folder, const MatrixPair& changed, const CosimulatePair& run, Json& result);
std::string matrix_text(const Json& result);

}  // namespace dlc::cli
