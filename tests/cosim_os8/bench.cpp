#include "tests/cosim_os8/bench.h"

#include <cstdlib>

#include "core/map/sync.h"

namespace dlc::asic {

namespace {
constexpr int64_t kArena = 1 << 16, kWeights = 1 << 16;
constexpr int64_t kStart = 2;  // cycles that the write of CTRL takes
}  // namespace

const TestMachine& os8() {
  static const TestMachine m = [] {
    setenv("DLC_RTL_PATH", (std::string(DLC_BINARY_DIR) + "/lib/dlc/rtl").c_str(), 0);
    return make_machine("", {}, "os8.yaml");
  }();
  return m;
}

Bench::Bench(RtlOptions options) : options_(options), weights_(kWeights) {}

void Bench::data(size_t word, const std::vector<Lanes>& words) {
  for (size_t w = 0; w < words.size(); ++w)
    for (size_t l = 0; l < 8; ++l) weights_[(word + w) * 8 + l] = static_cast<std::byte>(words[w][l]);
}

std::vector<Instruction> Bench::assemble(const std::string& text) const { return need(dlc::assemble(*os8().hw, text)); }

std::vector<Instruction> Bench::synchronised(std::vector<Instruction> program) const {
  const Footprints footprints = need(Footprints::make(*os8().hw));
  need(map::synchronise(*os8().hw, footprints, program));
  return program;
}

std::shared_ptr<Loaded> Bench::loaded(const std::vector<Instruction>& program) const {
  auto out = std::make_shared<Loaded>();
  out->hw = os8().hw;
  out->image.program = program;
  out->image.tiles.assign(program.size(), 0);
  out->image.weights = weights_;
  out->image.arena_bytes = kArena;
  out->words = need(encode_program(*os8().hw, program));
  return out;
}

CosimReport Bench::run(const std::string& text) { return run(synchronised(assemble(text))); }

CosimReport Bench::run(const std::vector<Instruction>& program) {
  last_ = loaded(program);
  DeviceUri uri = need(parse_device_uri("asic:rtl"));
  uri.options = options_;
  driver_ = std::make_unique<Driver>(need(Driver::make(last_, need(open_port(uri, *last_)))));
  CosimReport report = need(cosimulate(*last_, *driver_, {}));
  INFO(to_json(report));
  REQUIRE(report.bit_exact);
  return report;
}

std::string Bench::stops(const std::vector<Instruction>& program,
                         const std::vector<std::pair<size_t, uint32_t>>& words) {
  auto changed = loaded(program);
  for (const auto& [at, value] : words) changed->words[at] = value;
  DeviceUri uri = need(parse_device_uri("asic:rtl"));
  uri.options = options_;
  driver_ = std::make_unique<Driver>(need(Driver::make(changed, need(open_port(uri, *changed)))));
  last_ = std::move(changed);
  const auto first = driver_->run({});
  if (first) return "";
  // The next run resets the machine and meets the same end.
  const auto again = driver_->run({});
  REQUIRE_FALSE(again);
  CHECK(again.error().message() == first.error().message());
  return std::string(first.error().message());
}

void Bench::pass_time() {
  const HwDescription& hw = *os8().hw;
  const auto status = static_cast<uint32_t>(hw.csr[static_cast<size_t>(hw.find_csr("STAT"))].at);
  for (int i = 0; i < 1000; ++i) need(driver_->port().rd32(status));
}

std::vector<InstructionTime> Bench::times(const std::vector<Instruction>& program) {
  struct Retires final : PortObserver {
    std::vector<InstructionTime> at;
    int64_t begin = 0;
    void on_write(const PortWrite&) override {}
    void on_retire(const PortRetire& r) override {
      at[r.index] = {static_cast<int64_t>(r.start) - begin, static_cast<int64_t>(r.cycle) - begin};
    }
  } retires;
  retires.at.resize(program.size());
  last_ = loaded(program);
  DeviceUri uri = need(parse_device_uri("asic:rtl"));
  uri.options = options_;
  driver_ = std::make_unique<Driver>(need(Driver::make(last_, need(open_port(uri, *last_)))));
  retires.begin = static_cast<int64_t>(driver_->port().now()) + kStart;
  need(driver_->run({}, &retires));
  return retires.at;
}

std::vector<Lanes> Bench::arena(size_t word, size_t count) {
  const HwDescription& hw = *os8().hw;
  std::vector<std::byte> bytes(count * 8);
  const uint64_t base = driver_->bases()[static_cast<size_t>(hw.find_space("dram.arena"))];
  need(driver_->port().mem_rd(base + word * 8, bytes));
  std::vector<Lanes> out(count);
  for (size_t i = 0; i < bytes.size(); ++i) out[i / 8][i % 8] = static_cast<int8_t>(bytes[i]);
  return out;
}

}  // namespace dlc::asic
