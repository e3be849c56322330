// Ahead of time: a program as an object file, an archive or a shared library with a C header.
//
//   uint64_t mlp_workspace_bytes(const int64_t* dims);
//   int32_t  mlp_run(const void* const* inputs, void* const* outputs, void* workspace, const int64_t* dims,
//                    const void* weights);
//
// The library calls nothing but libm and memcpy: no allocation, no threads, no runtime of dlc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dlc/program/program.h"
#include "plugins/cpu/codegen/codegen.h"

namespace dlc::cpu {

struct Library {
  std::vector<std::byte> bytes;    // .o, .a or .so
  std::string header;              // C
  std::vector<std::byte> weights;  // for a file beside it; empty: they are inside
};

// `format`: "o", "a" or "so". `name` becomes the prefix of every symbol.
Result<Library> make_library(Program program, const Target& target, const std::string& name, const std::string& format);

}  // namespace dlc::cpu
