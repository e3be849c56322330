#include "simulators/cuda/driver/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

namespace dlc::emu {
namespace {

thread_local bool context = false;

}  // namespace

Module::~Module() {
  if (library) dlclose(library);
  if (file >= 0) close(file);
}

Driver::~Driver() = default;

Process& process() {
  static Process p;
  return p;
}

bool has_context() { return context; }
void set_context(bool current) { context = current; }

CUresult Driver::put(Stream& s, Work w) {
  if (s.capturing) {
    s.captured.push_back(std::move(w));
    return CUDA_SUCCESS;
  }
  s.queue.push_back(std::move(w));
  ++s.issued;
  return CUDA_SUCCESS;
}

CUresult Driver::drain(Stream& s, uint64_t ticket) {
  while (s.done < ticket && !s.queue.empty()) {
    const Work w = std::move(s.queue.front());
    s.queue.pop_front();
    const CUresult r = lost != CUDA_SUCCESS ? lost : w(*this);
    ++s.done;
    if (r != CUDA_SUCCESS) return lost = r;
  }
  return CUDA_SUCCESS;
}

CUresult Driver::synchronise(Stream& s) {
  if (s.capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (s.blocking && &s != &default_stream)
    if (const CUresult r = drain(default_stream, default_stream.issued)) return r;
  if (&s == &default_stream) {
    CUresult first = CUDA_SUCCESS;
    streams.each([&](Stream& other) {
      if (first == CUDA_SUCCESS && other.blocking && !other.capturing) first = drain(other, other.issued);
    });
    if (first != CUDA_SUCCESS) return first;
  }
  return drain(s, s.issued);
}

CUresult Driver::synchronise_all() {
  CUresult r = drain(default_stream, default_stream.issued);
  streams.each([&](Stream& s) {
    if (r == CUDA_SUCCESS && !s.capturing) r = drain(s, s.issued);
  });
  return r;
}

CUresult Driver::fail(FaultKind k, std::string what, std::string text) {
  Fault f;
  f.kind = k;
  f.kernel = std::move(what);
  f.text = std::move(text);
  machine.faults.push_back(std::move(f));
  return lost = CUDA_ERROR_LAUNCH_FAILED;
}

CUresult Driver::launch(const Launch& l, const Module& m) {
  if (!m.loaded) return fail(FaultKind::out_of_bounds, l.kernel, "its module was unloaded");
  for (const Region& r : l.regions)
    if (!machine.memory.holds(r.begin, r.end - r.begin))
      return fail(FaultKind::out_of_bounds, l.kernel, fmt::format("{} is not in memory that is allocated", r.name));
  return machine.run(l) ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult Driver::copy(void* to, const void* from, size_t bytes) {
  const auto source = reinterpret_cast<uintptr_t>(from), target = reinterpret_cast<uintptr_t>(to);
  if (is_device(from)) {
    if (!machine.memory.holds(source, bytes))
      return fail(FaultKind::out_of_bounds, "copy", "it reads past an allocation");
    if (machine.options.checks && !machine.memory.written(source, bytes))
      return fail(FaultKind::uninitialised, "copy", fmt::format("of {} bytes, some were never written", bytes));
  }
  if (is_device(to)) {
    if (!machine.memory.holds(target, bytes))
      return fail(FaultKind::out_of_bounds, "copy", "it writes past an allocation");
    machine.memory.set_written(target, bytes);
  }
  std::memmove(to, from, bytes);
  return CUDA_SUCCESS;
}

bool Driver::is_pinned(const void* p, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(p);
  auto it = pinned_bytes.upper_bound(at);
  if (it == pinned_bytes.begin()) return false;
  --it;
  return at + bytes <= it->first + it->second;
}

}  // namespace dlc::emu
