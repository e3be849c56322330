// CUDA C++ text to the bytes of a module: x86-64 code for the emulator through a C++ compiler of this machine, cubins
// and PTX through NVRTC where that is found. What was made once is kept in the user's cache folder, under a hash of all
// that it is made of.
//
//   DLC_TRY(const auto so, cuda::compile_for_host(text, {.checks = true}));   // what cuda:emu loads
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlc/base/diag.h"

namespace dlc::cuda {

using Bytes = std::vector<std::byte>;

// Files beside the text, by name: dlc_dev.h and what it includes.
const std::vector<std::pair<std::string, std::string>>& device_headers();

struct HostOptions {
  bool checks = true;  // every access of the kernels tells the emulator first
  std::string name = "kernels.cu";
};
Result<Bytes> compile_for_host(const std::string& text, const HostOptions& options = {});

// ---- cache

// A name for what is made of these texts.
std::string cache_key(const std::vector<std::string_view>& parts);
std::optional<Bytes> cached(const std::string& key);
void keep(const std::string& key, const Bytes& bytes);  // no error when it cannot: then it is made again

// ---- programs

struct Ran {
  int code = 0;
  std::string output;  // of stdout and stderr
};
Result<Ran> run_program(const std::vector<std::string>& words);

}  // namespace dlc::cuda
