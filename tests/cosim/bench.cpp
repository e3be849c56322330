#include "tests/cosim/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <stdexcept>

#include "dlc/hw/load.h"
#include "dlc_test/need.h"

namespace dlc::cosim {
namespace {

constexpr uint64_t kDram = 1 << 20;  // compared as a whole after each run
constexpr uint64_t kCode = 0;        // of each segment: 64 KiB of program, then 128 KiB each
constexpr uint64_t kFirst = 0x10000, kStep = 0x20000;

using dlc_test::need;

struct Recorder final : PortObserver {
  Outcome& out;
  explicit Recorder(Outcome& o) : out(o) {}
  void on_write(const PortWrite& w) override {
    const auto* bytes = reinterpret_cast<const uint8_t*>(w.data.data());
    out.writes[static_cast<size_t>(w.queue)].push_back(
        {std::string(w.memory), w.address, std::vector<uint8_t>(bytes, bytes + w.data.size())});
  }
  void on_retire(const PortRetire& r) override { out.retired[static_cast<size_t>(r.queue)].push_back(r.index); }
};

// Of the models.
std::string folder() {
  const char* elsewhere = std::getenv("DLC_RTL_DIR");  // tests/mutants
  return elsewhere != nullptr ? elsewhere : std::string(DLC_BINARY_DIR) + "/lib/dlc/rtl";
}

}  // namespace

const HwDescription& description(const std::string& params) {
  static std::map<std::string, HwDescription> cache;
  auto at = cache.find(params);
  if (at == cache.end())
    at = cache.emplace(params, need(load_hw(std::string(DLC_SOURCE_DIR) + "/hwdesc/asic.yaml," + params))).first;
  return at->second;
}

const HwDescription& description(int size) { return description(fmt::format("R={}", size)); }

Bench::Bench(int size, RtlOptions options)
    : Bench(fmt::format("R={}", size), fmt::format("{}/nx16_{}x{}.so", folder(), size, size), options) {}

Bench::Bench(const std::string& params, const std::string& model, RtlOptions options)
    : hw_(description(params)), golden_(hw_) {
  options.memory_bytes = kDram;
  port_ = need(RtlPort::open(model, options));
  golden_.dram.resize(kDram);
  golden_.segments.push_back(kCode);
  for (int i = 0; i < 7; ++i) golden_.segments.push_back(kFirst + kStep * static_cast<uint64_t>(i));
  configure();
}

void Bench::configure() {
  for (size_t i = 0; i < golden_.segments.size(); ++i)
    write_csr("SEG", static_cast<uint32_t>(golden_.segments[i]), static_cast<int64_t>(i));
  write_csr("IRQ_EN", flag("IRQ_EN", "done").mask() | flag("IRQ_EN", "err").mask());
  write_csr("WDOG", 20000);
}

uint64_t Bench::segment(std::string_view name) const {
  const HwInsn& ld = hw_.isa.insns[static_cast<size_t>(hw_.isa.find("ld"))];
  return golden_.segments[static_cast<size_t>(ld.fields[static_cast<size_t>(ld.field("seg"))].find(name)->value)];
}

void Bench::write_dram(uint64_t address, const void* data, size_t bytes) {
  std::copy_n(static_cast<const uint8_t*>(data), bytes, golden_.dram.begin() + static_cast<int64_t>(address));
  need(port_->mem_wr(address, std::as_bytes(std::span(static_cast<const uint8_t*>(data), bytes))));
}

void Bench::fill_dram(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> noise(kDram / 8);
  for (uint64_t& word : noise) word = random();
  write_dram(0, noise.data(), kDram);
}

const HwCsrBits& Bench::flag(std::string_view name, std::string_view bit) const {
  const HwCsrBits* b = hw_.csr[static_cast<size_t>(hw_.find_csr(name))].find(bit);
  REQUIRE(b != nullptr);
  return *b;
}

uint32_t Bench::offset(std::string_view name, int64_t index) const {
  const HwCsr& r = hw_.csr[static_cast<size_t>(hw_.find_csr(name))];
  return static_cast<uint32_t>(r.at + index * r.bits / 8);
}
uint32_t Bench::read_csr(std::string_view name, int64_t index) { return need(port_->rd32(offset(name, index))); }
void Bench::write_csr(std::string_view name, uint32_t value, int64_t index) {
  need(port_->wr32(offset(name, index), value));
}

std::vector<Instruction> Bench::assemble(const std::string& text) const { return need(dlc::assemble(hw_, text)); }

void Bench::start(const std::vector<uint32_t>& words) {
  write_dram(kCode, words.data(), words.size() * 4);
  write_csr("COUNT", static_cast<uint32_t>(words.size() / static_cast<size_t>(hw_.isa.words32())));
  write_csr("CTRL", flag("CTRL", "start").mask());
}

void Bench::soft_reset() {
  write_csr("CTRL", flag("CTRL", "reset").mask());
  for (int i = 0; i < 10000 && flag("STAT", "busy").of(read_csr("STAT")) != 0; ++i) {
  }
  REQUIRE(read_csr("STAT") == 0);
}

Outcome Bench::run_rtl(const std::vector<uint32_t>& words, uint64_t max_cycles) {
  Outcome out;
  out.writes.resize(4);
  out.retired.resize(4);
  Recorder recorder(out);
  start(words);
  const uint64_t begin = port_->now();
  port_->observe(&recorder);
  need(port_->wait_irq(max_cycles));
  port_->observe(nullptr);
  out.cycles = port_->now() - begin;
  const uint32_t status = read_csr("STAT");
  out.done = flag("STAT", "done").of(status) != 0;
  if (flag("STAT", "err").of(status) != 0) {
    const uint32_t error = read_csr("ERR");
    out.cause = flag("ERR", "cause").of(error);
    out.queue = flag("ERR", "queue").of(error);
  }
  for (int64_t q = 0; q < hw_.csr[static_cast<size_t>(hw_.find_csr("EPC"))].count; ++q)
    out.epc.push_back(read_csr("EPC", q));
  write_csr("STAT", flag("STAT", "done").mask());
  return out;
}

Outcome Bench::run_rtl(const std::vector<Instruction>& program, uint64_t max_cycles) {
  return run_rtl(need(encode_program(hw_, program)), max_cycles);
}

Outcome Bench::run(const std::string& text) { return run(assemble(text)); }

Outcome Bench::run(const std::vector<Instruction>& program) {
  Outcome out = run_rtl(program);
  INFO("cause " << out.cause << " queue " << out.queue);
  REQUIRE(out.done);
  REQUIRE(out.cause == 0);
  const size_t before[] = {golden_.writes()[0].size(), golden_.writes()[1].size(), golden_.writes()[2].size(),
                           golden_.writes()[3].size()};
  golden_.run(program);
  for (size_t q = 0; q < 4; ++q) {
    const std::vector<Word> want(golden_.writes()[q].begin() + static_cast<int64_t>(before[q]),
                                 golden_.writes()[q].end());
    const std::vector<Word>& got = out.writes[q];
    size_t i = 0;
    while (i < want.size() && i < got.size() && want[i] == got[i]) ++i;
    INFO("queue " << hw_.queues[q].name << ", write " << i << ": RTL " << (i < got.size() ? to_string(got[i]) : "none")
                  << ", golden " << (i < want.size() ? to_string(want[i]) : "none"));
    REQUIRE(i == want.size());
    REQUIRE(i == got.size());
  }
  std::vector<uint8_t> memory(kDram);
  need(port_->mem_rd(0, std::as_writable_bytes(std::span(memory))));
  REQUIRE(memory == golden_.dram);
  return out;
}

}  // namespace dlc::cosim
