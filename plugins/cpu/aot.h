// Ahead of time: a program as an object file, an archive or a shared library with a C header.
//
//   int64_t  mlp_workspace_bytes(const int64_t* dims);
//   int32_t  mlp_run(const void* const* inputs, void* const* outputs, void* workspace, const int64_t* dims,
//                    const void* weights);
//   int32_t  mlp_run_parallel(..., dlc_parallel_for parallel_for, void* pool);
//
// The library calls nothing but libm, memcpy and the caller's parallel_for: no allocation, no threads, no runtime of
// dlc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plugins/cpu/prepare.h"
#include "plugins/cpu/weights.h"

namespace dlc::cpu {

struct Library {
  std::vector<std::byte> bytes;  // .o, .a or .so
  std::string header;            // C
  ObjectFile object;             // what was compiled, without its bytes
};

// `format`: "o", "a" or "so". `name` becomes the prefix of every symbol.
Result<Library> make_library(const Prepared& prepared, const Weights& weights, const Target& target,
                             const std::string& name, const std::string& format, const Options& options);

}  // namespace dlc::cpu
