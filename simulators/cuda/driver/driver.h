// The state behind the driver's functions: a machine, what the program holds handles of, and the streams' queues.
//
// Work waits in its stream's queue until somebody synchronises, as late as the interface allows: a result that is read
// without waiting is not there. After a fault every call fails, as on a device, until the context is reset.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "simulators/cuda/driver/cuda_api.h"
#include "simulators/cuda/machine.h"

namespace dlc::emu {

class Driver;
using Work = std::function<CUresult(Driver&)>;

struct Module {
  ~Module();
  void* library = nullptr;
  int file = -1;  // open as long as the library: another of the same number would have its name, and be taken for it
  Region image;   // where it lies
  bool loaded = true;
};

struct Function {
  std::string name;
  void (*thunk)(void**) = nullptr;
  const DlcEmuParam* params = nullptr;
  std::shared_ptr<Module> module;
  uint32_t max_dynamic_shared = 0;
  std::vector<size_t> extents;  // of the next launch
};

struct Stream {
  bool blocking = true;  // waits for the default stream and is waited for by it
  std::deque<Work> queue;
  uint64_t issued = 0, done = 0;
  bool capturing = false;
  std::vector<Work> captured;
};

struct Event {
  Stream* stream = nullptr;  // null: never recorded
  uint64_t ticket = 0;       // done when so many of the stream's works are
  bool captured = false;     // recorded while its stream was being captured
  std::chrono::steady_clock::time_point time;
};

struct Graph {
  std::vector<Work> works;
};
struct GraphExec {
  std::vector<Work> works;
};

// Objects that the program holds handles of; a handle that is not one of them is refused.
template <class T>
class Handles {
 public:
  T* add(T value) {
    auto p = std::make_unique<T>(std::move(value));
    T* raw = p.get();
    objects_.emplace(raw, std::move(p));
    return raw;
  }
  T* find(const void* handle) {
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second.get();
  }
  bool remove(const void* handle) { return objects_.erase(handle) != 0; }
  template <class F>
  void each(F f) {
    for (auto& [key, value] : objects_) f(*value);
  }

 private:
  std::map<const void*, std::unique_ptr<T>> objects_;
};

class Driver {
 public:
  explicit Driver(const Options& o) : machine(o) {}
  ~Driver();

  Stream* stream(CUstream s) { return s ? streams.find(s) : &default_stream; }
  CUresult put(Stream& s, Work w);             // in its queue, or in what is being captured
  CUresult drain(Stream& s, uint64_t ticket);  // runs its work up to there
  CUresult synchronise(Stream& s);             // all of it, and of those it waits for
  CUresult synchronise_all();
  CUresult launch(const Launch& l, const Module& m);
  CUresult copy(void* to, const void* from, size_t bytes);  // either may be memory of the device
  CUresult fail(FaultKind k, std::string what, std::string text);

  bool is_device(const void* p) { return machine.memory.find(reinterpret_cast<uintptr_t>(p)) != nullptr; }
  bool is_pinned(const void* p, size_t bytes) const;
  std::string report() const;

  Machine machine;
  CUresult lost = CUDA_SUCCESS;  // what every call returns since a fault
  std::string problem;           // why the last module could not be loaded
  Stream default_stream;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Graph> graphs;
  Handles<GraphExec> execs;
  Handles<std::shared_ptr<Module>> modules;
  Handles<Function> functions;
  std::map<uintptr_t, std::unique_ptr<unsigned char[]>> pinned;
  std::map<uintptr_t, size_t> pinned_bytes;
};

// The process has one driver. `initialised` by cuInit; the driver itself lives from the first retain to the last
// release.
struct Process {
  std::mutex mutex;
  bool initialised = false;
  Options options;
  std::unique_ptr<Driver> driver;
  int retained = 0;
  std::string last_report, configured;
};
Process& process();
bool has_context();  // of the calling thread
void set_context(bool current);
bool configure(const std::string& json, Options& o);

// Runs f with the driver where the calling thread has a context and no fault stands.
template <class F>
CUresult with_driver(F f) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (!p.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!p.driver || !has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (p.driver->lost != CUDA_SUCCESS) return p.driver->lost;
  return f(*p.driver);
}

}  // namespace dlc::emu
