// --dim: what symbolic dims are bound to.
//
//   --dim N=1 --dim S=1..512
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc::cli {

using Dims = std::map<std::string, Interval, std::less<>>;

Result<Dims> parse_dims(const std::vector<std::string>& given);
// Those that are one value.
Bindings single_values(const Dims& dims);
// Every name is a symbol of the model, every value inside the symbol's range.
Result<> check_dims(const Dims& dims, const Ranges& symbols, const std::string& file);
// A value takes the symbol's place everywhere; a range narrows the symbol's.
Result<> bind_dims(Graph& g, const Dims& dims, const std::string& file);

}  // namespace dlc::cli
