// Generated kernels on the host, one thread after the other: what the text computes, without a machine beside it.
// Kernels whose threads work together need the emulator; here they are launched with one thread to a block.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "dlc/interp/interp.h"
#include "dlc_test/catch.h"
#include "plugins/cuda/codegen/codegen.h"
#include "plugins/cuda/compile/compile.h"
#include "plugins/cuda/device/dlc_emu.h"

namespace dlc::test {

class Serial {
 public:
  explicit Serial(const cuda::Module& m) : module_(m) {
    auto so = cuda::compile_for_host(m.text, {.checks = false});
    if (!so) FAIL(to_string(so.error()) << "\n" << m.text);
    const int fd = memfd_create("kernels", MFD_CLOEXEC);
    REQUIRE(write(fd, so->data(), so->size()) == static_cast<ssize_t>(so->size()));
    library_ = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) FAIL(dlerror());
    close(fd);
    api_.place = &place_;
    api_.atomic_set_if_zero = [](uint32_t* p, uint32_t v, int) {
      if (*p == 0) *p = v;
    };
    api_.block_barrier = [](int) {};
    *static_cast<const DlcEmuApi**>(dlsym(library_, "dlc_emu")) = &api_;
  }
  Serial(const Serial&) = delete;
  Serial& operator=(const Serial&) = delete;
  ~Serial() { dlclose(library_); }

  // The statement that stored an undefined value, or 0.
  unsigned run(size_t kernel, const std::vector<void*>& tensors, Bindings dims = {}) {
    unsigned status = 0;
    run(module_.kernels[kernel].steps, tensors, dims, status);
    return status;
  }

 private:
  void run(const std::vector<cuda::Step>& steps, const std::vector<void*>& tensors, Bindings& dims, unsigned& status) {
    for (const cuda::Step& s : steps) {
      if (status != 0) return;
      if (s.variable.empty()) {
        launch(s.launch, tensors, dims, status);
        continue;
      }
      const int64_t n = evaluate(s.extent, dims).value();
      for (int64_t i = 0; i < n; ++i) {
        dims[s.variable] = s.backwards ? n - 1 - i : i;
        run(s.body, tensors, dims, status);
      }
      dims.erase(s.variable);
    }
  }

  void launch(const cuda::Launch& l, const std::vector<void*>& tensors, const Bindings& dims, unsigned& status) {
    const int64_t points = evaluate(l.points, dims).value();
    if (points == 0) return;
    REQUIRE_FALSE(l.block_per_point);
    std::vector<void*> pointers, params;
    std::vector<long long> symbols;
    for (const int t : l.tensors) pointers.push_back(tensors[static_cast<size_t>(t)]);
    for (const std::string& s : l.symbols) symbols.push_back(dims.at(s));
    unsigned* status_pointer = &status;
    for (void*& p : pointers) params.push_back(&p);
    for (long long& s : symbols) params.push_back(&s);
    if (l.has_status) params.push_back(&status_pointer);
    const auto thunk = reinterpret_cast<void (*)(void**)>(dlsym(library_, ("dlc_emu_thunk_" + l.function).c_str()));
    REQUIRE(thunk != nullptr);
    const auto threads = static_cast<unsigned>(l.threads);
    const auto blocks = static_cast<unsigned>((points + l.threads - 1) / l.threads);
    place_.block_dim = {threads, 1, 1};
    place_.grid_dim = {blocks, 1, 1};
    for (unsigned b = 0; b < blocks; ++b)
      for (unsigned t = 0; t < threads; ++t) {
        place_.block = {b, 0, 0};
        place_.thread = {t, 0, 0};
        thunk(params.data());
      }
  }

  const cuda::Module& module_;
  void* library_ = nullptr;
  DlcEmuPlace place_{};
  DlcEmuApi api_{};
};

}  // namespace dlc::test
