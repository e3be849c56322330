// A `.so` that the cpu backend made, as a C program uses it: its two functions, which the header beside it declares.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "dlc_test/catch.h"

namespace dlc_test {

class LoadedLibrary {
 public:
  LoadedLibrary(const std::string& file, const std::string& prefix)
      : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(handle_ != nullptr);
    workspace_bytes = reinterpret_cast<WorkspaceBytes*>(dlsym(handle_, (prefix + "_workspace_bytes").c_str()));
    run = reinterpret_cast<Run*>(dlsym(handle_, (prefix + "_run").c_str()));
    REQUIRE(workspace_bytes != nullptr);
    REQUIRE(run != nullptr);
  }
  // Of bytes that are in no file yet.
  LoadedLibrary(std::span<const std::byte> bytes, const std::string& prefix)
      : LoadedLibrary(written(bytes, prefix), prefix) {
    std::filesystem::remove(path_of(prefix));
  }
  ~LoadedLibrary() { dlclose(handle_); }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  using WorkspaceBytes = int64_t(const int64_t* dims);
  using Run = int32_t(const void* const* inputs, void* const* outputs, void* workspace, const int64_t* dims,
                      const void* parallel);
  WorkspaceBytes* workspace_bytes = nullptr;
  Run* run = nullptr;

 private:
  static std::string path_of(const std::string& prefix) {
    return std::filesystem::temp_directory_path() / ("dlc_" + prefix + "_" + std::to_string(getpid()) + ".so");
  }
  static std::string written(std::span<const std::byte> bytes, const std::string& prefix) {
    const std::string file = path_of(prefix);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file;
  }

  void* handle_;
};

}  // namespace dlc_test
