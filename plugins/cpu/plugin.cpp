// The cpu backend: programs to machine code through LLVM.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "dlc/hw/load.h"
#include "dlc/plugin/backend.h"
#include "plugins/cpu/aot.h"
#include "plugins/cpu/codegen/contraction.h"
#include "plugins/cpu/container.h"
#include "plugins/cpu/runtime.h"

namespace dlc::cpu {

namespace {

using nlohmann::ordered_json;

constexpr int kMostThreads = 1024;

Result<HwDescription> description(const EmitRequest& r) {
  HwOverrides overrides;
  if (!r.hardware_params.empty()) {
    DLC_TRY(HwArgument arg, parse_hw_argument("hw," + r.hardware_params));
    overrides = std::move(arg.params);
  }
  return parse_hw(r.hardware, r.hardware_file, overrides);
}

// What the plan says of every kernel: which loops became the register tile, or why none did.
Result<ordered_json> report(const Program& p, const Target& target) {
  ordered_json kernels = ordered_json::array();
  for (const Kernel& k : p.kernels) {
    DLC_TRY(const Plan plan, plan_contractions(k, target));
    kernels.push_back({{"name", k.name}, {"nodes", k.locations}, {"notes", plan.notes}});
  }
  return kernels;
}

std::string option(const EmitRequest& r, const char* key) {
  const auto options = nlohmann::json::parse(r.options, nullptr, false);
  if (!options.is_object() || !options.contains(key) || !options[key].is_string()) return {};
  return options[key].get<std::string>();
}

Result<std::string> assembly(const Program& p, const Target& target) {
  std::vector<Plan> plans;
  std::vector<Unit> units;
  for (const Kernel& k : p.kernels) {
    DLC_TRY(Plan plan, plan_contractions(k, target));
    plans.push_back(std::move(plan));
  }
  for (const Plan& plan : plans) units.push_back(plan.unit());
  DLC_TRY(const CompiledKernels code, compile(units, target, {.opt_level = 1, .keep_assembly = true}));
  return code.assembly();
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> executable,
                                           std::vector<std::pair<std::string, Tensor>> weights) override {
    DLC_TRY(Unpacked u, unpack(executable));
    DLC_TRY(const Target target, target_of(u.level));
    u.program.weights = std::move(weights);
    return make_executable(std::move(u.program), target, threads_);
  }

 private:
  int threads_;
};

class CpuBackend : public Backend {
 public:
  std::string name() const override { return "cpu"; }

  Result<> emit(const EmitRequest& r, EmitResult& result) override {
    DLC_TRY(const HwDescription hw, description(r));
    const Level level = level_of(hw);
    DLC_TRY(const ordered_json kernels, report(r.program, cross_target_of(level)));
    const Target target = cross_target_of(level);
    if (option(r, "listing") == "asm") {
      DLC_TRY(const std::string text, assembly(r.program, target));
      result.put("listing", text);
    }
    const std::string format = option(r, "format");
    if (format == "o" || format == "a" || format == "so") {
      DLC_TRY(Library library, make_library(r.program, target, option(r, "name"), format));
      result.put("library", std::move(library.bytes));
      result.put("header", library.header);
      if (!library.weights.empty()) result.put("weights", std::move(library.weights));
    }
    result.put("executable", pack(level, r.program));
    result.put("report.json", ordered_json{{"level", level.name}, {"kernels", kernels}}.dump());
    return {};
  }

  std::vector<DeviceListing> list() override { return {{"cpu:", true, ""}}; }

  Result<std::unique_ptr<Device>> open(const std::string& uri) override {
    constexpr std::string_view kThreads = "cpu:?threads=";
    int threads = 0;
    if (uri.starts_with(kThreads)) {
      const auto [end, error] = std::from_chars(uri.data() + kThreads.size(), uri.data() + uri.size(), threads);
      if (error != std::errc() || end != uri.data() + uri.size() || threads < 1 || threads > kMostThreads)
        return fail({}, fmt::format("device {}: threads are 1 to {}", uri, kMostThreads), "--device cpu:?threads=1");
    } else if (uri != "cpu:") {
      return fail({}, fmt::format("device {} is not known: the plugin has cpu:", uri), "--device cpu:");
    }
    return std::make_unique<CpuDevice>(threads);
  }
};

}  // namespace

}  // namespace dlc::cpu

DLC_PLUGIN(dlc::cpu::CpuBackend)
