// One device and what is open on it: its context, and memory, modules and streams that end with their owners.
#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "plugins/cuda/runtime/driver.h"

namespace dlc::cuda {

// What a URI asks for: "cuda:1", "cuda:emu?checks=0&seed=3".
struct DeviceChoice {
  bool is_emulator = false;
  int ordinal = 0;
  bool checks = true;  // of the emulator
  int seed = 0;        // of its order of warps

  friend auto operator<=>(const DeviceChoice&, const DeviceChoice&) = default;
};
Result<DeviceChoice> parse_uri(const std::string& uri);

class Gpu {
 public:
  // One for all that choose the same, as long as any of them has it.
  static Result<std::shared_ptr<Gpu>> open(const DeviceChoice& choice);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const Driver& driver() const { return *driver_; }
  const DeviceChoice& choice() const { return choice_; }
  const std::string& name() const { return name_; }
  int compute_capability() const { return capability_; }  // 90
  int processors() const { return processors_; }
  Result<> enter() const;  // before anything else in a thread
  std::mutex& one_at_a_time() { return mutex_; }

 private:
  Gpu() = default;
  static Result<std::shared_ptr<Gpu>> open_new(const DeviceChoice& choice);

  std::shared_ptr<const Driver> driver_;
  DeviceChoice choice_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::string name_;
  int capability_ = 0, processors_ = 1;
  std::mutex mutex_;
};

// Memory of the device.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> allocate(const std::shared_ptr<Gpu>& gpu, size_t bytes);
  DeviceMemory(DeviceMemory&& o) noexcept : gpu_(std::move(o.gpu_)), at_(std::exchange(o.at_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& o) noexcept {
    std::swap(gpu_, o.gpu_);
    std::swap(at_, o.at_);
    return *this;
  }
  ~DeviceMemory();

  CUdeviceptr at() const { return at_; }

 private:
  std::shared_ptr<Gpu> gpu_;
  CUdeviceptr at_ = 0;
};

}  // namespace dlc::cuda
