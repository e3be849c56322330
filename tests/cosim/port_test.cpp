// The port itself: what it refuses, waveforms, and the functional simulator behind the same interface.
#include <filesystem>
#include <fstream>

#include "dlc/hw/sim_port.h"
#include "dlc_test/skip.h"
#include "tests/cosim/bench.h"

namespace dlc::cosim {
namespace {

const char* const kProgram = R"(ld to=out seg=arena off=0 nx=60 y1=1 x1=60 sig=1
                                vec a=out n_ow=60 s_ow=1 ma=3 sh=2 lo=-128 hi=127 d_base=100 d_ow=1 wai=1 sig=2
                                st seg=io0 off=0 sp=100 nx=60 wai=2
                                end)";

std::string library(const std::string& name) { return std::string(DLC_BINARY_DIR) + "/lib/dlc/rtl/" + name; }

// Device logic in its smallest form, over any port.
std::vector<std::byte> run_on(DlcPort& port, const HwDescription& hw, std::span<const uint32_t> words) {
  const auto csr = [&](const char* name, int64_t index = 0) {
    const HwCsr& r = hw.csr[static_cast<size_t>(hw.find_csr(name))];
    return static_cast<uint32_t>(r.at + index * r.bits / 8);
  };
  const auto write = [&](uint32_t at, uint32_t value) { REQUIRE(port.wr32(at, value).has_value()); };
  std::vector<std::byte> data(0x10000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256);
  REQUIRE(port.mem_wr(0, std::as_bytes(words)).has_value());
  REQUIRE(port.mem_wr(0x10000, data).has_value());
  for (int64_t s = 0; s < 8; ++s) write(csr("SEG", s), static_cast<uint32_t>(s * 0x8000));
  write(csr("COUNT"), static_cast<uint32_t>(words.size() / static_cast<size_t>(hw.isa.words32())));
  write(csr("IRQ_EN"), 3);
  write(csr("CTRL"), 1);
  REQUIRE(port.wait_irq(100000).has_value());
  REQUIRE(*port.rd32(csr("STAT")) == 2);
  std::vector<std::byte> memory(0x40000);
  REQUIRE(port.mem_rd(0, memory).has_value());
  return memory;
}

}  // namespace

TEST_CASE("one program through both ports") {
  const HwDescription& hw = description(8);
  const auto program = assemble(hw, kProgram);
  REQUIRE(program.has_value());
  const auto words = encode_program(hw, *program);
  auto rtl = RtlPort::open(library("nx16_8x8.so"), {.memory_bytes = 0x40000});
  auto sim = open_sim_port(hw, {.memory_bytes = 0x40000});
  REQUIRE(rtl.has_value());
  REQUIRE(sim.has_value());
  CHECK((*rtl)->arch_hash() == hw.arch_hash);
  CHECK(run_on(**rtl, hw, *words) == run_on(**sim, hw, *words));
}

TEST_CASE("two devices at once, closed in the order they were opened") {
  const HwDescription& hw = description(8);
  const auto words = encode_program(hw, *assemble(hw, kProgram));
  auto first = RtlPort::open(library("nx16_8x8.so"), {.seed = 1, .memory_bytes = 0x40000});
  auto second = RtlPort::open(library("nx16_8x8.so"), {.seed = 2, .memory_bytes = 0x40000});
  REQUIRE((first.has_value() && second.has_value()));
  const auto memory = run_on(**first, hw, *words);
  CHECK(run_on(**second, hw, *words) == memory);
  first->reset();
  second->reset();
}

TEST_CASE("the model of a description is found by its hash") {
  for (int size : {8, 16}) {
    const HwDescription& hw = description(size);
    auto rtl = RtlPort::open(library(hash_text(hw.arch_hash) + ".so"), {.memory_bytes = 4096});
    REQUIRE(rtl.has_value());
    CHECK((*rtl)->arch_hash() == hw.arch_hash);
  }
}

TEST_CASE("a library that is not there, or not a model") {
  const auto missing = RtlPort::open(library("nothing.so"), {});
  REQUIRE(!missing.has_value());
  CHECK(missing.error().message().find("cannot load the RTL model") != std::string_view::npos);
  const std::string text = std::string(DLC_BINARY_DIR) + "/not_a_model.so";
  std::ofstream(text) << "text";
  CHECK(!RtlPort::open(text, {}).has_value());
  // One that was cut short would end the process if it were mapped.
  std::filesystem::copy_file(library("nx16_8x8.so"), text, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(text, std::filesystem::file_size(text) / 2);
  const auto cut = RtlPort::open(text, {});
  REQUIRE(!cut.has_value());
  CHECK(cut.error().message() == "cannot load the RTL model: is no whole shared library");
  std::filesystem::remove(text);
}

TEST_CASE("memory outside the device, and an interrupt that does not come") {
  auto rtl = RtlPort::open(library("nx16_8x8.so"), {.memory_bytes = 4096});
  REQUIRE(rtl.has_value());
  const auto silent = (*rtl)->wait_irq(100);
  REQUIRE(!silent.has_value());
  CHECK(silent.error().message() == "no interrupt within 100 cycles");
  std::vector<std::byte> data(16);
  CHECK((*rtl)->mem_rd(4080, data).has_value());
  CHECK(!(*rtl)->mem_rd(4081, data).has_value());
}

TEST_CASE("a model without waveforms") {
  Bench plain(8);
  CHECK(!plain.port().trace(std::string(DLC_BINARY_DIR) + "/none.fst", 0, 100).has_value());
}

TEST_CASE("the waveform of a window", "[.traced]") {
  const std::string path = std::string(DLC_BINARY_DIR) + "/window.fst";
  std::filesystem::remove(path);
  if (!std::filesystem::exists(library("nx16_8x8_trace.so")))
    DLC_SKIP("nx16_8x8_trace.so is not built (target dlc_nx16_8x8_trace)");
  auto rtl = RtlPort::open(library("nx16_8x8_trace.so"), {.memory_bytes = 0x40000});
  REQUIRE(rtl.has_value());
  REQUIRE((*rtl)->trace(path, 20, 120).has_value());
  const auto words = encode_program(description(8), *assemble(description(8), kProgram));
  run_on(**rtl, description(8), *words);
  CHECK(std::filesystem::file_size(path) > 100);
  std::filesystem::remove(path);
}

}  // namespace dlc::cosim
