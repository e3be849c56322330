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
};
Result<Bytes> compile_for_host(const std::string& text, const HostOptions& options = {});

// What NVRTC's log says of a kernel.
struct KernelFacts {
  std::string name;
  int registers = 0, stack_bytes = 0, spill_bytes = 0, shared_bytes = 0;
};
struct DeviceCode {
  Bytes bytes;                       // a cubin, or PTX
  std::vector<KernelFacts> kernels;  // of a cubin
  std::vector<std::string> warnings;
};
// `target`: "sm_90a" gives a cubin, "compute_80" PTX.
Result<DeviceCode> compile_for_device(const std::string& text, const std::string& target);
Result<> nvrtc_available();  // or why not, and what to install

// The error for a text that does not compile: the log, the nodes of the kernel that its first line names, and a file
// with the text, which is left for a report.
Error does_not_compile(const std::string& compiler, const std::string& text, const std::string& log);

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
