// The cuda backend: programs to CUDA C++ text, and that to what NVIDIA's GPUs and the emulator load.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "dlc/hw/gpu.h"
#include "dlc/plugin/backend.h"
#include "plugins/cuda/compile/compile.h"
#include "plugins/cuda/container.h"
#include "plugins/cuda/runtime/executable.h"

namespace dlc::cuda {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kEmulated = "emu";  // the target that only the emulator runs: no image is made for it

Result<HwGpu> description(const EmitRequest& r) {
  HwOverrides overrides;
  if (!r.hardware_params.empty()) {
    DLC_TRY(HwArgument arg, parse_hw_argument("hw," + r.hardware_params));
    overrides = std::move(arg.params);
  }
  return parse_hw_gpu(r.hardware, r.hardware_file, overrides);
}

std::string option(const EmitRequest& r, const char* key) {
  const auto options = nlohmann::json::parse(r.options, nullptr, false);
  if (!options.is_object() || !options.contains(key) || !options[key].is_string()) return {};
  return options[key].get<std::string>();
}

// "sm_90a" is 90, "compute_80" is 80.
int capability_of(std::string_view target) {
  const size_t digits = target.find_first_of("0123456789");
  int value = 0;
  if (digits != std::string_view::npos) std::from_chars(target.data() + digits, target.data() + target.size(), value);
  return value;
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> executable,
                                           std::vector<std::pair<std::string, Tensor>> weights) override {
    DLC_TRY(Unpacked u, unpack(executable));
    DLC_TRY(const Bytes image, image_of(u));
    return make_executable(gpu_, std::move(u), image, std::move(weights));
  }

 private:
  // The emulator's is compiled now; a GPU's is the cubin of its own capability, one of the same generation that is not
  // newer, or PTX.
  Result<Bytes> image_of(const Unpacked& u) const {
    if (gpu_->choice().is_emulator) return compile_for_host(u.module.text, {.checks = gpu_->choice().checks});
    const int mine = gpu_->compute_capability();
    const Image* best = nullptr;
    std::string have;
    const auto rank = [&](const Image& i) {
      const int c = capability_of(i.target);
      if (i.target.starts_with("compute_")) return c <= mine ? 1 : 0;
      const bool is_own = i.target.ends_with("a");  // with what no other capability has
      return c == mine ? 3 : !is_own && c / 10 == mine / 10 && c < mine ? 2 : 0;
    };
    for (const Image& i : u.images) {
      have += (have.empty() ? "" : ", ") + i.target;
      if (rank(i) > (best == nullptr ? 0 : rank(*best))) best = &i;
    }
    if (best != nullptr) return best->bytes;
    return fail({},
                fmt::format("the model was compiled for {}, and {} is sm_{}", have.empty() ? u.target : have,
                            gpu_->name(), mine),
                "compile it with the description of this machine, or run it on --device cuda:emu");
  }

  std::shared_ptr<Gpu> gpu_;
};

class CudaBackend : public Backend {
 public:
  std::string name() const override { return "cuda"; }

  // It takes every call; what the machine is must be right.
  Result<std::vector<Refusal>> match(const EmitRequest& r) override {
    DLC_CHECK(description(r));
    return std::vector<Refusal>{};
  }

  Result<> emit(const EmitRequest& r, EmitResult& result) override {
    DLC_TRY(const HwGpu gpu, description(r));
    const std::string listing = option(r, "listing");
    std::vector<const Kernel*> kernels;
    for (const Kernel& k : r.program.kernels) kernels.push_back(&k);
    DLC_TRY(const Module module, generate(kernels));
    if (listing == "cuda") {
      result.put("listing", module.text);
      result.put("executable", pack(r.program, gpu.arch, module, {}));
      return {};
    }
    std::vector<Image> images;
    ordered_json facts = ordered_json::array(), warnings = ordered_json::array();
    if (gpu.arch != kEmulated) {
      DLC_TRY(DeviceCode code, compile_for_device(module.text, gpu.arch));
      images.push_back({gpu.arch, std::move(code.bytes)});
      for (const KernelFacts& k : code.kernels)
        facts.push_back({{"function", k.name},
                         {"registers", k.registers},
                         {"spill_bytes", k.spill_bytes},
                         {"shared_bytes", k.shared_bytes}});
      for (const std::string& w : code.warnings) warnings.push_back(w);
      if (!gpu.fallback.empty()) {
        DLC_TRY(DeviceCode fallback, compile_for_device(module.text, gpu.fallback));
        images.push_back({gpu.fallback, std::move(fallback.bytes)});
      }
    }
    result.put("executable", pack(r.program, gpu.arch, module, images));
    result.put(
        "report.json",
        ordered_json{
            {"target", gpu.arch}, {"kernels", kernels_json(r.program)}, {"functions", facts}, {"warnings", warnings}}
            .dump());
    return {};
  }

  std::vector<DeviceListing> list() override {
    std::vector<DeviceListing> all;
    const auto add = [&](const char* uri) {
      DeviceListing d{uri, true, ""};
      const auto choice = parse_uri(uri);
      const auto gpu = choice ? Gpu::open(*choice) : Result<std::shared_ptr<Gpu>>(std::unexpected(choice.error()));
      if (!gpu) {
        d.available = false;
        d.why = std::string(gpu.error().message());
      }
      all.push_back(std::move(d));
    };
    add("cuda:0");
    add("cuda:emu");
    return all;
  }

  Result<std::unique_ptr<Device>> open(const std::string& uri) override {
    DLC_TRY(const DeviceChoice choice, parse_uri(uri));
    DLC_TRY(std::shared_ptr<Gpu> gpu, Gpu::open(choice));
    return std::make_unique<CudaDevice>(std::move(gpu));
  }

 private:
  static ordered_json kernels_json(const Program& p) {
    ordered_json kernels = ordered_json::array();
    for (const Kernel& k : p.kernels) kernels.push_back({{"name", k.name}, {"nodes", k.locations}});
    return kernels;
  }
};

}  // namespace

}  // namespace dlc::cuda

DLC_PLUGIN(dlc::cuda::CudaBackend)
