// The interpreter as a backend: its executable is the program's text.
#include "core/program/runner.h"
#include "dlc/plugin/compiled.h"

namespace dlc {

namespace {

class InterpreterExecutable : public Executable {
 public:
  explicit InterpreterExecutable(Program p) : program_(std::move(p)), runner_(program_) {}
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override { return runner_.run(inputs); }
  Result<std::vector<Tensor>> run_in_place(std::span<const Tensor> inputs,
                                           std::span<const StateMemory> states) override {
    return runner_.run_in_place(inputs, states);
  }

 private:
  Program program_;
  ProgramRunner runner_;
};

class InterpreterDevice : public Device {
 public:
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> executable,
                                           std::vector<std::pair<std::string, Tensor>> weights) override {
    const std::string_view text(reinterpret_cast<const char*>(executable.data()), executable.size());
    DLC_TRY(Program p, parse_program(text, "program"));
    p.weights = std::move(weights);
    return std::make_unique<InterpreterExecutable>(std::move(p));
  }
};

class Interpreter : public Backend {
 public:
  std::string name() const override { return "interp"; }
  bool takes_states() const override { return true; }
  Result<> emit(const EmitRequest& request, EmitResult& result) override {
    result.put("executable", print(request.program));
    return {};
  }
  std::vector<DeviceListing> list() override { return {{"interp:", true, ""}}; }
  Result<std::unique_ptr<Device>> open(const std::string& uri) override {
    if (uri != "interp:") return fail({}, "device " + uri + " takes no options", "--device interp:");
    return std::make_unique<InterpreterDevice>();
  }
};

}  // namespace

Backend& interpreter_backend() {
  static Interpreter backend;
  return backend;
}

}  // namespace dlc
