// A file out of pieces that lie in different places: written as they are, not put together first.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "dlc/base/diag.h"

namespace dlc::detail {

// As write_file(), for the bytes of all parts one after the other.
Result<> write_parts(const std::string& path, std::span<const std::span<const std::byte>> parts);

}  // namespace dlc::detail
