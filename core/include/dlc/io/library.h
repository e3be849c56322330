// Before dlopen().
#pragma once

#include <string>

#include "dlc/base/diag.h"

namespace dlc {

// That the file is an ELF library and has every byte that its headers promise. The loader maps what they say without
// asking for the file's size: one that was cut short would end the process with a bus error.
Result<> check_library(const std::string& path);

}  // namespace dlc
