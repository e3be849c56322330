// The C header beside a library.
#pragma once

#include <cstddef>
#include <string>

#include "dlc/program/program.h"

namespace dlc::cpu {

// `prefix`: of the symbols; `file`: the library's name without ending; `weights_bytes`: of the file beside it, or 0.
std::string c_header(const Program& p, const std::string& prefix, const std::string& file, size_t weights_bytes);

}  // namespace dlc::cpu
