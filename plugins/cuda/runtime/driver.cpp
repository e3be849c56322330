#include "plugins/cuda/runtime/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace dlc::cuda {

namespace {

constexpr CUresult kSuccess = 0;

// Errors after which the context is of no use.
bool is_lost(CUresult r) {
  constexpr CUresult kLost[] = {46, 214, 215, 220, 700, 701, 702, 710, 714, 715, 716, 717, 718, 719, 720};
  for (const CUresult lost : kLost)
    if (r == lost) return true;
  return false;
}

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail({}, fmt::format("{} cannot be loaded: {}", library, dlerror()));
  auto d = std::make_shared<Driver>();
  std::string missing;
  const auto find = [&](auto& function, const char* symbol, bool needed) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (function == nullptr && needed) missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
#define DLC_CUDA_FIND(name, symbol, ...) find(d->name, #symbol, true);
  DLC_CUDA_FUNCTIONS(DLC_CUDA_FIND)
#undef DLC_CUDA_FIND
  find(d->dlc_emu_report, "dlc_emu_report", false);
  find(d->dlc_emu_configure, "dlc_emu_configure", false);
  find(d->dlc_emu_extents, "dlc_emu_extents", false);
  if (!missing.empty()) return fail({}, fmt::format("{} lacks {}", library, missing), "install a newer driver");
  return d;
}

Result<> Driver::check(CUresult r, const char* what) const {
  if (r == kSuccess) return {};
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(r, &name) != kSuccess || name == nullptr) name = "an unknown error";
  if (cuGetErrorString(r, &text) != kSuccess || text == nullptr) text = "";
  const std::string said = fmt::format("{}: {}{}{}", what, name, *text != 0 ? ", " : "", text);
  if (is_emulator() && is_lost(r))
    return fail({}, fmt::format("the emulator stopped: {}\n{}", said, dlc_emu_report()),
                "this is an error of dlc: please report it with the model");
  if (is_lost(r))
    return fail({}, fmt::format("the device is lost: {}", said),
                "nothing more runs on it in this process; see `nvidia-smi` and the kernel's log, then start again");
  return fail({}, said);
}

}  // namespace dlc::cuda
