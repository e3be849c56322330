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
#include <span>
#include <string>
#include <vector>

#include "dlc/base/huge.h"
#include "plugins/cpu/prepare.h"

namespace dlc::cpu {

struct Library {
  std::vector<std::byte> bytes;        // .o, .a or .so
  std::string header;                  // C
  HugePages memory;                    // of the weights
  std::span<const std::byte> weights;  // for a file beside it; empty: they are inside
  ObjectFile object;                   // what was compiled
};

// `format`: "o", "a" or "so". `name` becomes the prefix of every symbol. `most_inside`: bytes of weights beyond which
// they go to a file of their own.
Result<Library> make_library(const Prepared& prepared, const Target& target, const std::string& name,
                             const std::string& format, const Options& options, size_t most_inside = size_t{64} << 20);

}  // namespace dlc::cpu
