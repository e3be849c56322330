// A backend as its author would write it on the first day: every program runs, through the interpreter.
#include "dlc/plugin/backend.h"

namespace {

class Npu : public dlc::Executable {
 public:
  explicit Npu(dlc::Program p) : program_(std::move(p)) {}
  dlc::Result<std::vector<dlc::Tensor>> run(std::span<const dlc::Tensor> inputs) override {
    ++runs_;
    return dlc::run_program(program_, inputs);
  }
  std::string counters() override { return "{\"runs\": " + std::to_string(runs_) + "}"; }

 private:
  dlc::Program program_;
  int runs_ = 0;
};

class NpuDevice : public dlc::Device {
 public:
  dlc::Result<std::unique_ptr<dlc::Executable>> load(
      std::span<const std::byte> executable, std::vector<std::pair<std::string, dlc::Tensor>> weights) override {
    const std::string_view text(reinterpret_cast<const char*>(executable.data()), executable.size());
    DLC_TRY(dlc::Program p, dlc::parse_program(text));
    p.weights = std::move(weights);
    return std::make_unique<Npu>(std::move(p));
  }
};

class MyNpu : public dlc::Backend {
 public:
  std::string name() const override { return "my_npu"; }
  dlc::Result<std::vector<dlc::Refusal>> match(const dlc::EmitRequest& r) override {
    std::vector<dlc::Refusal> refused;
    for (size_t c = 0; c < r.program.calls.size(); ++c)
      for (const int b : r.program.calls[c].buffers)
        if (r.program.buffers[static_cast<size_t>(b)].type.dtype == dlc::kF64) {
          refused.push_back({.call = static_cast<int>(c), .rule = "types", .why = "the NPU has no f64"});
          break;
        }
    return refused;
  }
  dlc::Result<> emit(const dlc::EmitRequest& r, dlc::EmitResult& out) override {
    if (r.program.weights.size() > 1) throw std::runtime_error("more than one weight");
    if (r.program.calls.size() > 4)
      return dlc::fail({"my_npu.yaml", 4, 1, "conv7"}, "the NPU takes four calls", "split the model");
    out.put("executable", dlc::print(r.program));
    return {};
  }
  std::vector<dlc::DeviceListing> list() override {
    return {{"my_npu:", true, ""}, {"my_npu:1", false, "there is one"}};
  }
  dlc::Result<std::unique_ptr<dlc::Device>> open(const std::string&) override { return std::make_unique<NpuDevice>(); }
};

}  // namespace

DLC_PLUGIN(MyNpu)
