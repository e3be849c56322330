#include "dlc/hw/sim_port.h"

#include <cstring>

#include "dlc/hw/encode.h"
#include "mini.h"

using namespace dlc;

namespace {

HwDescription asic() {
  auto hw = load_hw("asic,R=8", {{std::string(DLC_SOURCE_DIR) + "/hwdesc"}});
  if (!hw) FAIL(to_string(hw.error()));
  return std::move(*hw);
}

uint32_t at(const HwDescription& hw, const char* name) {
  return static_cast<uint32_t>(hw.csr[static_cast<size_t>(hw.find_csr(name))].at);
}

struct Log : PortObserver {
  void on_write(const PortWrite& w) override {
    text += std::to_string(w.queue) + " " + std::string(w.memory) + " " + std::to_string(w.address) + " " +
            std::to_string(w.data.size()) + "\n";
  }
  void on_retire(const PortRetire& r) override { text += "retire " + std::to_string(r.index) + "\n"; }
  std::string text;
};

// Puts the program at 0x1000, the weights at 0x2000 and io0 at 0x3000, and starts it.
Result<> run(const HwDescription& hw, DlcPort& port, const std::string& text) {
  DLC_TRY(const auto program, assemble(hw, text));
  DLC_TRY(const auto words, encode_program(hw, program));
  DLC_CHECK(port.mem_wr(0x1000, std::as_bytes(std::span(words))));
  const uint32_t bases[] = {0x1000, 0x2000, 0x4000, 0x3000};
  for (uint32_t s = 0; s < 4; ++s) DLC_CHECK(port.wr32(at(hw, "SEG") + 8 * s, bases[s]));
  DLC_CHECK(port.wr32(at(hw, "COUNT"), static_cast<uint32_t>(program.size())));
  DLC_CHECK(port.wr32(at(hw, "IRQ_EN"), 3));
  DLC_CHECK(port.wr32(at(hw, "CTRL"), 1));
  return port.wait_irq(1000);
}

}  // namespace

TEST_CASE("sim port: a program runs through registers and memory") {
  const HwDescription hw = asic();
  REQUIRE_OK(const auto port, open_sim_port(hw, {.memory_bytes = 0x8000}));
  REQUIRE_OK(const uint32_t id, port->rd32(at(hw, "ID")));
  CHECK(id == static_cast<uint32_t>(hw.arch_hash));
  std::vector<std::byte> weights(16);
  for (size_t i = 0; i < 16; ++i) weights[i] = static_cast<std::byte>(i + 1);
  REQUIRE(port->mem_wr(0x2000, weights).has_value());
  Log log;
  port->observe(&log);
  const auto r =
      run(hw, *port,
          "ld to=out seg=weights sp=3 nx=2 y1=1 x1=2 sig=0x1\n st seg=io0 off=4080 sp=3 nx=2 wai=0x1\n end irq=1");
  if (!r) FAIL(to_string(r.error()));
  std::vector<std::byte> out(16);
  REQUIRE(port->mem_rd(0x3000 + 4080, out).has_value());
  CHECK(out == weights);
  CHECK(log.text == "0 out 3 8\n0 out 4 8\nretire 0\n3 dram 16368 8\n3 dram 16376 8\nretire 1\nretire 2\n");
  REQUIRE_OK(const uint32_t status, port->rd32(at(hw, "STAT")));
  CHECK(status == 2);
  REQUIRE(port->wr32(at(hw, "STAT"), 2).has_value());
  REQUIRE_ERROR(port->wait_irq(1), "no interrupt comes");
}

TEST_CASE("sim port: faults are in the registers until reset") {
  const HwDescription hw = asic();
  REQUIRE_OK(const auto port, open_sim_port(hw, {.memory_bytes = 0x8000}));
  REQUIRE_ERROR(run(hw, *port, "mac n_ow=1\n end"), "instruction 0 (mac) reads in at word 0, which was never written");
  REQUIRE(port->reset().has_value());
  REQUIRE(run(hw, *port, "end\n ld to=par seg=weights sp=1020 nx=9 y1=1 x1=9").has_value());
  REQUIRE_OK(const uint32_t err, port->rd32(at(hw, "ERR")));
  CHECK(err == 2);  // oob, queue ld
  REQUIRE_OK(const uint32_t epc, port->rd32(at(hw, "EPC")));
  CHECK(epc == 1);
  REQUIRE(port->wr32(at(hw, "CTRL"), 1).has_value());  // ignored
  REQUIRE(port->wr32(at(hw, "CTRL"), 2).has_value());
  REQUIRE_OK(const uint32_t status, port->rd32(at(hw, "STAT")));
  CHECK(status == 0);
  REQUIRE(run(hw, *port, "end").has_value());
}

TEST_CASE("sim port: what is not there is refused") {
  const HwDescription hw = asic();
  REQUIRE_OK(const auto port, open_sim_port(hw, {.memory_bytes = 0x8000}));
  std::vector<std::byte> some(16);
  REQUIRE_ERROR(port->mem_wr(0x7ff8, some), "memory access of 16 bytes at 0x7ff8; the device has 0x8000");
  REQUIRE_ERROR(port->rd32(0xff0), "there is no register at 0xff0");
  REQUIRE_ERROR(open_sim_port(mini()), "'csr' has no register 'STAT', which a device needs");
}
