// The asic backend: programs of committed integers to instruction streams for a queue machine, and the devices that run
// them. All it knows of the machine comes from the hardware description (dlc/map/compile.h).
#include <fmt/format.h>

#include "dlc/map/compile.h"
#include "dlc/plugin/backend.h"
#include "plugins/asic/runtime/bundle.h"

namespace dlc::asic {

namespace {

class AsicExecutable : public Executable {
 public:
  AsicExecutable(Driver driver, bool times) : driver_(std::move(driver)), times_(times) {}
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override { return driver_.run(inputs); }
  std::string counters() override { return to_json(driver_.counts(), times_); }

 private:
  Driver driver_;
  bool times_;
};

class AsicDevice : public Device {
 public:
  explicit AsicDevice(DeviceUri uri) : uri_(std::move(uri)) {}

  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> executable,
                                           std::vector<std::pair<std::string, Tensor>>) override {
    DLC_TRY(Loaded loaded, read_container(executable));
    auto shared = std::make_shared<const Loaded>(std::move(loaded));
    if (uri_.cosim) return make_cosim(uri_, shared, executable);
    DLC_TRY(auto port, open_port(uri_, *shared));
    DLC_TRY(Driver driver, Driver::make(shared, std::move(port), slowness(uri_.options)));
    return std::make_unique<AsicExecutable>(std::move(driver), uri_.times);
  }

 private:
  DeviceUri uri_;
};

HardwareText text_of(const EmitRequest& r) { return {r.hardware, r.hardware_file, r.hardware_params}; }

class AsicBackend : public Backend {
 public:
  std::string name() const override { return "asic"; }

  Result<std::vector<Refusal>> match(const EmitRequest& r) override {
    DLC_CHECK(read_machine(r));
    return compiler_->refused(r.program);
  }

  Result<> emit(const EmitRequest& r, EmitResult& result) override {
    DLC_CHECK(read_machine(r));
    DLC_TRY(const AcceleratorImage image, compiler_->compile(r.program));
    const HwDescription& hw = *hw_;
    DLC_TRY(std::vector<std::byte> container, write_container(hw, text_of(r), image));
    result.put("executable", std::move(container));
    result.put("report.json", layer_report(hw, image));
    result.put("listing", disassemble(hw, image.program));
    return {};
  }

  std::vector<DeviceListing> list() override {
    const bool rtl = has_rtl();
    const std::string why = rtl ? "" : "there is no verilated model beside the plugin or in DLC_RTL_PATH";
    return {{"asic:func", true, ""}, {"asic:rtl", rtl, why}, {"asic:cosim", rtl, why}};
  }

  Result<std::unique_ptr<Device>> open(const std::string& uri) override {
    DLC_TRY(DeviceUri parsed, parse_device_uri(uri));
    return std::make_unique<AsicDevice>(std::move(parsed));
  }

 private:
  // What match() has found is there for emit(), as long as it is the same machine.
  Result<> read_machine(const EmitRequest& r) {
    const HardwareText text = text_of(r);
    if (compiler_ && text.text == text_.text && text.file == text_.file && text.params == text_.params) return {};
    compiler_.reset();
    DLC_TRY(HwDescription hw, read_hardware(text));
    hw_ = std::make_shared<const HwDescription>(std::move(hw));
    DLC_TRY(compiler_, AcceleratorCompiler::make(hw_));
    text_ = text;
    return {};
  }

  HardwareText text_;
  std::shared_ptr<const HwDescription> hw_;
  std::optional<AcceleratorCompiler> compiler_;
};

}  // namespace

}  // namespace dlc::asic

DLC_PLUGIN(dlc::asic::AsicBackend)
