// What the author of a C++ backend writes: one class and one line.
//
//   class MyBackend : public dlc::Backend {
//    public:
//     std::string name() const override { return "my_npu"; }
//     dlc::Result<> emit(const dlc::EmitRequest& r, dlc::EmitResult& out) override;
//     dlc::Result<std::unique_ptr<dlc::Device>> open(const std::string& uri) override;
//   };
//   DLC_PLUGIN(MyBackend)
//
// The SDK turns this into the C interface of dlc_plugin.h: it parses the program text, wraps the weights, keeps
// exceptions from crossing and carries diagnostics over.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/plugin/dlc_plugin.h"
#include "dlc/program/program.h"
#include "dlc/program/refusal.h"
#include "dlc/program/state.h"

namespace dlc {

struct EmitRequest {
  Program program;              // weights included (wrapped, not copied)
  std::string hardware;         // YAML text
  std::string hardware_file;    // for messages, and where `like:` is looked for
  std::string hardware_params;  // overrides: "R=8,C=8"
  std::string options;          // JSON object: {"format": "dlca", "name": "resnet8"}
};

struct EmitResult {
  std::vector<std::pair<std::string, std::vector<std::byte>>> files;  // "executable", "report.json", "library", ...
  // When set, put() and put_at() hand on at once instead of keeping; the first failure is kept in `forwarded`.
  std::function<Result<>(const std::string& name, std::span<const std::byte> bytes)> forward;
  std::function<Result<>(const std::string& name, uint64_t offset, std::span<const std::byte> bytes)> forward_at;
  Result<> forwarded;
  void put(std::string name, std::string_view text);
  void put(std::string name, std::vector<std::byte> bytes);
  void put(std::string name, std::span<const std::byte> bytes);
  // A piece of a file that is too large to be held: it continues what was put of it, or replaces bytes of that.
  void put_at(const std::string& name, uint64_t offset, std::span<const std::byte> bytes);
  const std::vector<std::byte>* find(std::string_view name) const;  // null when absent
};

// A loaded partition on a device. dlc calls it from one thread at a time; of several executables it may run each on a
// thread of its own.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) = 0;
  // Of a backend that takes states: `inputs` and the results lack those that are in place (in_place_states), `states`
  // is their memory. What makes a run fail before its first call leaves it as it was.
  virtual Result<std::vector<Tensor>> run_in_place(std::span<const Tensor> /*inputs*/,
                                                   std::span<const StateMemory> /*states*/) {
    return fail({}, "this device keeps no states");
  }
  virtual std::string counters() { return "{}"; }  // JSON of the last run
};

class Device {
 public:
  virtual ~Device() = default;
  // The weights' bytes stay valid as long as the executable lives.
  virtual Result<std::unique_ptr<Executable>> load(std::span<const std::byte> executable,
                                                   std::vector<std::pair<std::string, Tensor>> weights) = 0;
};

struct DeviceListing {
  std::string uri;
  bool available = true;
  std::string why;  // when not available
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const { return "0.1.0"; }
  virtual std::string schemes() const { return name(); }  // device URI schemes, comma-separated
  // Which calls of the program it does not take. Each call is a question of its own: the calls of one request need not
  // be a program that runs. dlc asks before it cuts the model in parts.
  virtual Result<std::vector<Refusal>> match(const EmitRequest&) { return std::vector<Refusal>{}; }
  // Whether programs may have states (dlc/program/state.h). Otherwise they come without, and dlc hands the values on.
  virtual bool takes_states() const { return false; }
  virtual Result<> emit(const EmitRequest& request, EmitResult& result) = 0;
  virtual std::vector<DeviceListing> list() = 0;
  virtual Result<std::unique_ptr<Device>> open(const std::string& uri) = 0;
};

// The C interface of a backend that lives for the process. One backend per library.
const dlc_plugin_v1* make_plugin(Backend& backend);

}  // namespace dlc

#define DLC_PLUGIN(BackendClass)                                                                     \
  extern "C" __attribute__((visibility("default"))) const dlc_plugin_v1* dlc_plugin_v1_entry(void) { \
    static BackendClass backend;                                                                     \
    static const dlc_plugin_v1* plugin = ::dlc::make_plugin(backend);                                \
    return plugin;                                                                                   \
  }
