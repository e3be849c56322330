// The cpu backend: programs to machine code through LLVM.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "dlc/hw/load.h"
#include "dlc/plugin/backend.h"
#include "plugins/cpu/aot.h"
#include "plugins/cpu/container.h"
#include "plugins/cpu/prepare.h"
#include "plugins/cpu/runtime.h"

namespace dlc::cpu {

namespace {

using nlohmann::ordered_json;

constexpr int kMostThreads = 1024;
constexpr size_t kMostInside = size_t{64} << 20;  // bytes of weights beyond which a library has them in a file

Result<HwDescription> description(const EmitRequest& r) {
  HwOverrides overrides;
  if (!r.hardware_params.empty()) {
    DLC_TRY(HwArgument arg, parse_hw_argument("hw," + r.hardware_params));
    overrides = std::move(arg.params);
  }
  return parse_hw(r.hardware, r.hardware_file, overrides);
}

std::string option(const EmitRequest& r, const char* key) {
  const auto options = nlohmann::json::parse(r.options, nullptr, false);
  if (!options.is_object() || !options.contains(key) || !options[key].is_string()) return {};
  return options[key].get<std::string>();
}

// Milliseconds of the steps of one compilation.
class Steps {
 public:
  void done(const char* name) {
    const auto now = std::chrono::steady_clock::now();
    steps_.push_back({{"name", name}, {"ms", std::chrono::duration<double, std::milli>(now - last_).count()}});
    last_ = now;
  }
  const ordered_json& json() const { return steps_; }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  ordered_json steps_ = ordered_json::array();
};

// What became of every kernel: which loops are the register tile, or why none are.
ordered_json kernels_json(const Prepared& p) {
  ordered_json kernels = ordered_json::array();
  for (size_t i = 0; i < p.program.kernels.size(); ++i) {
    const Kernel& k = p.program.kernels[i];
    kernels.push_back({{"name", k.name}, {"nodes", k.locations}, {"notes", p.notes[i]}});
  }
  return kernels;
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> executable,
                                           std::vector<std::pair<std::string, Tensor>> weights) override {
    DLC_TRY(Unpacked u, unpack(executable));
    return make_executable(std::move(u), std::move(weights), threads_);
  }

 private:
  int threads_;
};

// The program that was compiled, and those of its constants that are made here, one at a time in one piece of memory:
// new memory for each would cost more than packing does. The host has the others.
Result<> put_program(const Prepared& prepared, const Program& given, EmitResult& result) {
  std::vector<std::byte> memory;
  result.put("program", print(prepared.program));
  for (const int c : prepared.constants()) {
    const ProgramBuffer& b = prepared.program.buffers[static_cast<size_t>(c)];
    const Tensor* old = prepared.is_packed(c) ? nullptr : given.weight(b.name);
    const Tensor* now = prepared.program.weight(b.name);
    if (old != nullptr && now != nullptr && old->bytes() == now->bytes() && type_of(*old) == b.type) continue;
    DLC_TRY(const auto bytes, prepared.constant(c, memory));
    result.put("constant/" + b.name, bytes);
    if (!result.forwarded) return {};  // the host does not take them, and says so
  }
  return {};
}

class CpuBackend : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  bool takes_states() const override { return true; }

  // It takes every call; what the machine is must be right.
  Result<std::vector<Refusal>> match(const EmitRequest& r) override {
    DLC_TRY(const HwDescription hw, description(r));
    DLC_CHECK(Target::of(hw));  // no op is refused, but the description may be
    return std::vector<Refusal>{};
  }

  Result<> emit(const EmitRequest& r, EmitResult& result) override {
    DLC_TRY(const HwDescription hw, description(r));
    DLC_TRY(const Target target, Target::of(hw));
    const std::string listing = option(r, "listing"), format = option(r, "format");
    const Options options{.keep_assembly = listing == "asm", .keep_llvm = listing == "llvm"};
    Steps steps;
    DLC_TRY(const Prepared prepared, prepare(r.program, target));
    steps.done("prepare");
    ObjectFile object;
    if (format == "o" || format == "a" || format == "so") {
      // Weights first, as below.
      const PutWeights put = [&](uint64_t offset, std::span<const std::byte> bytes) -> Result<> {
        result.put_at("weights", offset, bytes);
        if (!result.forwarded) return fail({}, "the weights are not taken");  // the host says why
        return {};
      };
      DLC_TRY(const Weights weights, make_weights(prepared, kMostInside, put));
      steps.done("constants");
      DLC_TRY(Library library, make_library(prepared, weights, target, option(r, "name"), format, options));
      steps.done("library");
      result.put("library", std::move(library.bytes));
      result.put("header", library.header);
      object = std::move(library.object);
    } else {
      // Constants first: while the code is made, the disk takes them.
      if (listing.empty()) DLC_CHECK(put_program(prepared, r.program, result));
      steps.done("constants");
      DLC_TRY(object, compile_to_object(prepared.units(), target, options));
      steps.done("code");
      result.put("executable", pack(prepared.program, object, target));
    }
    if (listing == "asm") result.put("listing", object.assembly);
    if (listing == "llvm") result.put("listing", object.llvm);
    result.put("timing.json", steps.json().dump());
    result.put("report.json", ordered_json{{"features", target.features},
                                           {"vector_bytes", target.vector_bytes},
                                           {"blocked_buffers", prepared.blocked_buffers},
                                           {"views", prepared.aliases.views},
                                           {"in_place", prepared.aliases.in_place},
                                           {"refused", prepared.aliases.refused},
                                           {"states_in_place", prepared.states_in_place},
                                           {"kernels", kernels_json(prepared)}}
                                  .dump());
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
