// Device URIs, and a device that comes back from a fault.
#include "tests/unit/asic/support.h"

using namespace dlc;
using namespace dlc::asic;

namespace {

class Order : public PortObserver {
 public:
  void on_write(const PortWrite&) override {}
  void on_retire(const PortRetire& r) override { retired.push_back(r.index); }
  std::vector<uint32_t> retired;
};

struct Compiled {
  std::shared_ptr<const Loaded> loaded;
  std::vector<Tensor> inputs;
};

Compiled two_layers() {
  const auto& m = machine(8);
  LayerBuilder b(m, 3);
  const ValueId x = b.input({1, 9, 6, 6});
  const Graph g = b.finish({b.conv(b.conv(x, 9, 3, 1, 1), 9, 3, 1, 1)});
  const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
  return {std::make_shared<const Loaded>(need(read_container(need(write_container(*m.hw, m.text, image))))),
          b.inputs()};
}

Driver open(const Compiled& c, const std::string& uri) {
  return need(Driver::make(c.loaded, need(open_port(need(parse_device_uri(uri)), *c.loaded))));
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool equal = a.size() == b.size();
  for (size_t i = 0; equal && i < a.size(); ++i)
    for (int64_t e = 0; e < a[i].elements(); ++e) equal &= a[i].get_int(e) == b[i].get_int(e);
  return equal;
}

// A machine whose watchdog stopped it: its registers say which instruction each queue is at.
class Stuck : public DlcPort {
 public:
  Stuck(const HwDescription& hw, std::unique_ptr<DlcPort> real) : hw_(hw), real_(std::move(real)) {}
  Result<uint32_t> rd32(uint32_t offset) override {
    const auto at = [&](const char* csr) { return hw_.csr[static_cast<size_t>(hw_.find_csr(csr))].at; };
    if (offset == at("ERR"))
      return static_cast<uint32_t>(*hw_.fault_code("watchdog")) | static_cast<uint32_t>(hw_.queues.size()) << 8;
    constexpr uint32_t kEpc[] = {4, 9, 2, 7, 12};
    const int64_t q = (static_cast<int64_t>(offset) - at("EPC")) / 4;
    return q >= 0 && q < 5 ? kEpc[q] : real_->rd32(offset);
  }
  Result<> wr32(uint32_t offset, uint32_t value) override { return real_->wr32(offset, value); }
  Result<> mem_rd(uint64_t address, std::span<std::byte> data) override { return real_->mem_rd(address, data); }
  Result<> mem_wr(uint64_t address, std::span<const std::byte> data) override { return real_->mem_wr(address, data); }
  Result<> wait_irq(uint64_t max_cycles) override { return real_->wait_irq(max_cycles); }
  uint64_t now() const override { return real_->now(); }
  Result<> reset() override { return real_->reset(); }
  uint64_t memory_bytes() const override { return real_->memory_bytes(); }

 private:
  const HwDescription& hw_;
  std::unique_ptr<DlcPort> real_;
};

}  // namespace

TEST_CASE("a deadlock is told with the queue and the instruction that all wait for") {
  const Compiled c = two_layers();
  const HwDescription& hw = *c.loaded->hw;
  auto port = need(open_port(need(parse_device_uri("asic:func")), *c.loaded));
  Driver d = need(Driver::make(c.loaded, std::make_unique<Stuck>(hw, std::move(port))));
  size_t code = 0;
  while (!hw.spaces[code].name.ends_with(".code")) ++code;
  need(d.port().mem_wr(d.bases()[code], std::vector<std::byte>(64, std::byte{0xff})));
  const auto failed = d.run(c.inputs);
  REQUIRE_FALSE(failed.has_value());
  const auto& oldest = c.loaded->image.program[2];
  const std::string queue = hw.queues[static_cast<size_t>(hw.isa.insns[static_cast<size_t>(oldest.insn)].queue)].name;
  CHECK(failed.error().message().starts_with("the device reports watchdog in queue " + queue +
                                             ", instruction 2, layer "));
  CHECK(failed.error().message().ends_with(disassemble(hw, oldest)));
}

TEST_CASE("every seed of asic:func is honoured") {
  const Compiled c = two_layers();
  std::vector<std::vector<uint32_t>> orders;
  for (const char* uri : {"asic:func", "asic:func?seed=0", "asic:func?seed=1", "asic:func?seed=2"}) {
    Driver d = open(c, uri);
    Order order;
    need(d.run(c.inputs, &order));
    orders.push_back(order.retired);
  }
  CHECK(orders[0] == orders[1]);
  CHECK(orders[0] != orders[2]);
  CHECK(orders[0] != orders[3]);
  CHECK(orders[2] != orders[3]);
}

TEST_CASE("the watchdog waits longer than the program may take, and no shorter than a slow memory") {
  const Compiled c = two_layers();
  const HwDescription& hw = *c.loaded->hw;
  const auto at = static_cast<uint32_t>(hw.csr[static_cast<size_t>(hw.find_csr("WDOG"))].at);
  const auto set_to = [&](int64_t cycles) {
    auto loaded = std::make_shared<Loaded>(*c.loaded);
    for (AcceleratorLayer& l : loaded->image.layers) l.predicted_cycles = cycles;
    Driver d = open({loaded, c.inputs}, "asic:func");
    return need(d.port().rd32(at));
  };
  REQUIRE(c.loaded->image.layers.size() == 2);
  CHECK(set_to(0) == 1'000'000);
  CHECK(set_to(1000) == 1'000'000);
  CHECK(set_to(2'100'000) == 16 * 2 * 2'100'000);  // a mac of 1024 tiles on 2048 vectors
  CHECK(set_to(INT64_MAX) == UINT32_MAX);
}

TEST_CASE("a number of a device URI that does not fit is refused") {
  for (const char* option : {"latency", "jitter", "backpressure", "stall"}) {
    const std::string uri = "asic:rtl?" + std::string(option) + "=";
    INFO(uri);
    CHECK(parse_device_uri(uri + "50").has_value());
    for (const char* value : {"4294967296", "18446744073709551616", "-1", ""})
      CHECK_FALSE(parse_device_uri(uri + value).has_value());
  }
}

TEST_CASE("a run after a fault begins anew") {
  const Compiled c = two_layers();
  Driver d = open(c, "asic:func");
  const auto want = need(d.run(c.inputs));
  size_t code = 0;
  while (!c.loaded->hw->spaces[code].name.ends_with(".code")) ++code;
  const std::vector<std::byte> damage(64, std::byte{0xff});
  need(d.port().mem_wr(d.bases()[code], damage));
  const auto failed = d.run(c.inputs);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().message().find("the device reports") != std::string::npos);
  CHECK(d.stopped());
  CHECK(same(need(d.run(c.inputs)), want));
  CHECK_FALSE(d.stopped());
  // An error of this side is none of the device's.
  CHECK_FALSE(d.run({}).has_value());
  CHECK_FALSE(d.stopped());
  CHECK(same(need(d.run(c.inputs)), want));
}
