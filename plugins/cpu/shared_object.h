// An object file to a shared library, by lld, without files: the linker reads and writes memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dlc/base/diag.h"

namespace dlc::cpu {

// `exported`: the symbols that leave the library.
Result<std::vector<std::byte>> link_shared(const std::vector<std::byte>& object, const std::string& soname,
                                           const std::vector<std::string>& exported);

}  // namespace dlc::cpu
