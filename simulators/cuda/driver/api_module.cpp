// Modules, functions, launches.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "simulators/cuda/block.h"
#include "simulators/cuda/driver/driver.h"

using namespace dlc::emu;

namespace {

// A module is a shared object of this machine (plugins/cuda/device/dlc_emu.h); its header says how long it is.
CUresult load(const void* image, Module& m, std::string& problem) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_X86_64)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (header.e_type != ET_DYN) return CUDA_ERROR_INVALID_IMAGE;
  const size_t bytes = header.e_shoff + size_t{header.e_shentsize} * header.e_shnum;
  const int file = memfd_create("dlc-emu-module", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = write(file, static_cast<const char*>(image) + done, bytes - done);
    if (n <= 0) {
      close(file);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    done += static_cast<size_t>(n);
  }
  m.library = dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW | RTLD_LOCAL);
  m.file = file;
  if (!m.library) {
    problem = dlerror();
    return CUDA_ERROR_INVALID_IMAGE;
  }
  auto* api = static_cast<const DlcEmuApi**>(dlsym(m.library, "dlc_emu"));
  const auto* version = static_cast<const uint32_t*>(dlsym(m.library, "dlc_emu_version"));
  if (!api || !version || *version != kDlcEmuVersion) {
    problem = fmt::format("the module is not one for version {} of the emulator", kDlcEmuVersion);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  *api = emulator_api();

  Dl_info info;
  dladdr(static_cast<const void*>(api), &info);
  m.image.begin = reinterpret_cast<uintptr_t>(info.dli_fbase);
  struct Search {
    uintptr_t base, end;
  } search{m.image.begin, m.image.begin};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        if (object->dlpi_addr != s.base) return 0;
        for (int i = 0; i < object->dlpi_phnum; ++i)
          if (object->dlpi_phdr[i].p_type == PT_LOAD)
            s.end = std::max<uintptr_t>(s.end, s.base + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz);
        return 1;
      },
      &search);
  m.image.end = search.end;
  return CUDA_SUCCESS;
}

}  // namespace

DLC_CUDA_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    auto m = std::make_shared<Module>();
    if (const CUresult r = load(image, *m, d.problem)) return r;
    *module = reinterpret_cast<CUmodule>(d.modules.add(std::move(m)));
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, void*, void*) {
  return cuModuleLoadData(module, image);
}

DLC_CUDA_API CUresult cuModuleUnload(CUmodule module) {
  return with_driver([&](Driver& d) {
    auto* m = d.modules.find(module);
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult r = d.synchronise_all();
    (*m)->loaded = false;
    d.modules.remove(module);
    return r;
  });
}

DLC_CUDA_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    auto* m = d.modules.find(module);
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    void* const library = (*m)->library;
    Function f;
    f.name = name;
    f.thunk = reinterpret_cast<void (*)(void**)>(dlsym(library, fmt::format("dlc_emu_thunk_{}", name).c_str()));
    auto* params =
        reinterpret_cast<const DlcEmuParam* (*)()>(dlsym(library, fmt::format("dlc_emu_params_{}", name).c_str()));
    if (!f.thunk || !params) return CUDA_ERROR_NOT_FOUND;
    f.params = params();
    f.module = *m;
    f.max_dynamic_shared = d.machine.options.default_shared;
    *function = reinterpret_cast<CUfunction>(d.functions.add(std::move(f)));
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  return with_driver([&](Driver& d) {
    Function* f = d.functions.find(function);
    if (!f || !f->module->loaded) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == kFunctionCarveout) return CUDA_SUCCESS;
    if (attribute != kFunctionMaxDynamicShared || value < 0 ||
        static_cast<uint32_t>(value) > d.machine.options.shared_per_block)
      return CUDA_ERROR_INVALID_VALUE;
    f->max_dynamic_shared = static_cast<uint32_t>(value);
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    const Function* f = d.functions.find(function);
    if (!f || !f->module->loaded) return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
      case kFunctionMaxThreads:
        *value = static_cast<int>(d.machine.options.threads_per_block);
        return CUDA_SUCCESS;
      case kFunctionMaxDynamicShared:
        *value = static_cast<int>(f->max_dynamic_shared);
        return CUDA_SUCCESS;
      case kFunctionSharedBytes:  // the host's code says nothing of these
      case kFunctionLocalBytes:
      case kFunctionRegisters:
        *value = 0;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

// How many bytes each parameter of the function's next launch points to (0: a scalar). What lies outside is then out of
// bounds although it is allocated; without this call all that is allocated may be touched.
DLC_CUDA_API CUresult dlc_emu_extents(CUfunction function, unsigned count, const size_t* bytes) {
  if (!bytes && count > 0) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& d) {
    Function* f = d.functions.find(function);
    if (!f || !f->module->loaded) return CUDA_ERROR_INVALID_HANDLE;
    unsigned params = 0;
    while (f->params[params].bytes) ++params;
    if (count != params) return CUDA_ERROR_INVALID_VALUE;
    f->extents.assign(bytes, bytes + count);
    return CUDA_SUCCESS;
  });
}

DLC_CUDA_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                     CUstream stream, void** params, void** extra) {
  return with_driver([&](Driver& d) {
    Function* f = d.functions.find(function);
    Stream* s = d.stream(stream);
    if (!f || !f->module->loaded || !s) return CUDA_ERROR_INVALID_HANDLE;
    const std::vector<size_t> extents = std::exchange(f->extents, {});
    const auto most = d.machine.options.threads_per_block;
    const uint64_t threads = uint64_t{block_x} * block_y * block_z;
    if (threads == 0 || threads > most || block_x > 1024 || block_y > 1024 || block_z > 64)
      return CUDA_ERROR_INVALID_VALUE;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_x > 0x7fffffffu || grid_y > 65535 || grid_z > 65535)
      return CUDA_ERROR_INVALID_VALUE;
    if (shared > f->max_dynamic_shared || extra || (f->params[0].bytes && !params)) return CUDA_ERROR_INVALID_VALUE;
    auto l = std::make_shared<Launch>();
    l->kernel = f->name;
    l->thunk = f->thunk;
    l->grid = {grid_x, grid_y, grid_z};
    l->block = {block_x, block_y, block_z};
    l->shared = shared;
    l->constants = f->module->image;
    for (size_t i = 0; f->params[i].bytes; ++i) {
      const DlcEmuParam& p = f->params[i];
      const auto* value = static_cast<const unsigned char*>(params[i]);
      l->params.emplace_back(value, value + p.bytes);
      if (extents.empty() || !p.pointer || extents[i] == 0) continue;
      uintptr_t at;
      std::memcpy(&at, value, sizeof at);
      l->regions.push_back(
          {at, at + extents[i], p.writable, fmt::format("parameter {} of {} bytes", i + 1, extents[i])});
    }
    return d.put(*s, [l, module = f->module](Driver& then) { return then.launch(*l, *module); });
  });
}
