// The fake driver as tests use it: kernel texts compiled for the host, launched with buffers, and what the checks say.
//
//   Device device;                                     // checks on
//   Kernels kernels(device, "planted.cu");
//   Buffer x = device.upload(values), y = device.buffer(4 * n);
//   kernels.launch("scale", {1}, {32}, 0, {x, y, 32ll});
//   REQUIRE(device.finish() == 0);                     // or device.fault_kinds()
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simulators/cuda/driver/cuda_api.h"

namespace dlc::test {

// The driver's functions, by name.
struct Cuda {
  static void* find(const char* name);
  template <class... T>
  static CUresult call(const char* name, T... args) {
    return reinterpret_cast<CUresult (*)(T...)>(find(name))(args...);
  }
};

// A kernel text of this folder as a module of the host. Compiled once.
const std::string& module_of(const std::string& file, bool checks);
std::string text_of(const std::string& file);

struct Buffer {
  CUdeviceptr at = 0;
  size_t bytes = 0;
};
using Param = std::variant<Buffer, long long, int, float>;
using Size = std::array<unsigned, 3>;

class Device {
 public:
  explicit Device(const std::string& options = "{}");
  ~Device();

  Buffer buffer(size_t bytes) const;
  template <class T>
  Buffer upload(const std::vector<T>& values) const {
    const Buffer b = buffer(values.size() * sizeof(T));
    write(b, values.data());
    return b;
  }
  template <class T>
  std::vector<T> download(Buffer b) const {
    std::vector<T> values(b.bytes / sizeof(T));
    read(b, values.data());
    return values;
  }
  CUresult finish() const { return Cuda::call("cuCtxSynchronize"); }
  nlohmann::json report() const;
  // "race", "out of bounds", ...: of the first fault; empty: none.
  std::string first_fault() const;
  std::string first_text() const;
  nlohmann::json counters(const std::string& kernel) const;

 private:
  void write(Buffer b, const void* from) const;
  void read(Buffer b, void* to) const;
};

class Kernels {
 public:
  explicit Kernels(const std::string& image);
  CUfunction function(const std::string& name) const;
  CUresult launch(const std::string& name, Size grid, Size block, unsigned shared, const std::vector<Param>& params,
                  CUstream stream = nullptr) const;

 private:
  CUmodule module_ = nullptr;
};

}  // namespace dlc::test
