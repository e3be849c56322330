// Kernel text inside a larger file.
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc {

// parse_kernel for a text that begins on line `line` of the file: messages name the file's lines.
Result<Kernel> parse_kernel_at(std::string_view text, const std::string& file, int line);

}  // namespace dlc
