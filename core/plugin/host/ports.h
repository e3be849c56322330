// A tensor against the port that says what it should be.
#pragma once

#include <optional>
#include <string>

#include "dlc/plugin/compiled.h"

namespace dlc::detail {

// Nothing if it fits; else what is said after "is T, P is expected": "", or " with N = 3". Symbols that are dims of the
// port and have no value yet get the tensor's.
std::optional<std::string> mismatch(const TensorType& type, const Tensor& t, Bindings& symbols);

}  // namespace dlc::detail
