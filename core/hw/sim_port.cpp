#include "dlc/hw/sim_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "core/hw/reader.h"
#include "dlc/hw/simulator.h"

namespace dlc {

namespace {

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

// The hint where a device needs `name`: which of those that there are may be meant.
template <class T>
std::string instead_of(std::string_view name, const std::vector<T>& all) {
  const std::string near = nearest(name, names_of(all));
  return near.empty() ? "" : fmt::format("call '{}' so?", near);
}

class SimPort : public DlcPort {
 public:
  SimPort(const HwDescription& hw, Simulator sim, std::unique_ptr<std::byte, Free> memory, uint64_t bytes)
      : hw_(hw), sim_(std::move(sim)), memory_(std::move(memory)), bytes_(bytes) {}

  // The registers by name; an error names the first that is missing.
  Result<> find_registers() {
    for (const char* name : {"ID", "CTRL", "STAT", "COUNT", "ERR", "EPC", "IRQ_EN"})
      if (hw_.find_csr(name) < 0)
        return fail(hw_.place("csr"), fmt::format("'csr' has no register '{}', which a device needs", name),
                    instead_of(name, hw_.csr));
    const std::pair<const char*, std::vector<const char*>> flags[] = {{"CTRL", {"start", "reset"}},
                                                                      {"STAT", {"busy", "done", "err"}},
                                                                      {"ERR", {"cause", "queue"}},
                                                                      {"IRQ_EN", {"done", "err"}}};
    for (const auto& [name, bits] : flags)
      for (const char* bit : bits)
        if (reg(name).find(bit) == nullptr)
          return fail(reg(name).loc, fmt::format("register '{}' has no bit '{}', which a device needs", name, bit),
                      instead_of(bit, reg(name).flags));
    for (size_t i = 0; i < hw_.state.size(); ++i)
      if (hw_.state[i].kind == HwState::Kind::external) external_ = static_cast<int>(i);
    if (external_ < 0 || segment("code") < 0)
      return fail(hw_.place("state"), "there is no external memory with a segment 'code'");
    const std::string& base = external().base;
    if (base.empty()) return fail(external().loc, "the external memory has no 'base', which a device needs");
    return {};
  }

  Result<uint32_t> rd32(uint32_t offset) override {
    if (offset == at("ID")) return static_cast<uint32_t>(hw_.arch_hash);
    if (offset == at("ID") + 4) return static_cast<uint32_t>(hw_.arch_hash >> 32);
    const auto it = registers_.find(offset);
    if (it != registers_.end()) return it->second;
    DLC_CHECK(check_offset(offset));
    return 0;
  }

  Result<> wr32(uint32_t offset, uint32_t value) override {
    DLC_CHECK(check_offset(offset));
    if (offset == at("CTRL")) {
      if (value & mask("CTRL", "reset")) stop();
      if ((value & mask("CTRL", "start")) && !(registers_[at("STAT")] & mask("STAT", "err"))) return start();
      return {};
    }
    if (offset == at("STAT")) {
      registers_[offset] &= ~(value & clearable("STAT"));
      return {};
    }
    const bool read_only = offset == at("ID") || offset == at("ID") + 4 || offset == at("ERR");
    if (!read_only) registers_[offset] = value;
    return {};
  }

  Result<> mem_rd(uint64_t address, std::span<std::byte> data) override {
    DLC_CHECK(check_range(address, data.size()));
    std::memcpy(data.data(), memory_.get() + address, data.size());
    return {};
  }
  Result<> mem_wr(uint64_t address, std::span<const std::byte> data) override {
    DLC_CHECK(check_range(address, data.size()));
    std::memcpy(memory_.get() + address, data.data(), data.size());
    return {};
  }
  Result<> wait_irq(uint64_t) override {
    const uint32_t status = registers_[at("STAT")], enabled = registers_[at("IRQ_EN")];
    const bool done = (status & mask("STAT", "done")) && (enabled & mask("IRQ_EN", "done"));
    const bool err = (status & mask("STAT", "err")) && (enabled & mask("IRQ_EN", "err"));
    if (done || err) return {};
    return fail({}, "no interrupt comes: nothing was started, or IRQ_EN does not enable it");
  }
  uint64_t now() const override { return 0; }
  Result<> reset() override {
    registers_.clear();
    sim_.reset();
    return {};
  }
  uint64_t memory_bytes() const override { return bytes_; }
  void observe(PortObserver* observer) override {
    observer_ = observer;
    sim_.record_writes(observer != nullptr);
  }

 private:
  const HwCsr& reg(std::string_view name) const { return hw_.csr[static_cast<size_t>(hw_.find_csr(name))]; }
  uint32_t at(std::string_view name) const { return static_cast<uint32_t>(reg(name).at); }
  uint32_t mask(std::string_view name, std::string_view bit) const { return reg(name).find(bit)->mask(); }
  uint32_t clearable(std::string_view name) const {
    uint32_t m = 0;
    for (const HwCsrBits& b : reg(name).flags)
      if (b.access == "w1c") m |= b.mask();
    return m;
  }
  const HwState& external() const { return hw_.state[static_cast<size_t>(external_)]; }
  int segment(std::string_view name) const {
    for (size_t i = 0; i < external().segments.size(); ++i)
      if (external().segments[i].name == name) return static_cast<int>(i);
    return -1;
  }
  uint64_t base(size_t segment) {
    const HwCsr& seg = reg(external().base);
    const auto offset = static_cast<uint32_t>(seg.at + static_cast<int64_t>(segment) * seg.bits / 8);
    return registers_[offset] | (seg.bits == 64 ? uint64_t{registers_[offset + 4]} << 32 : 0);
  }
  Result<> check_offset(uint32_t offset) const {
    for (const HwCsr& r : hw_.csr)
      if (offset >= r.at && offset < r.at + r.count * r.bits / 8 && offset % 4 == 0) return {};
    return fail({}, fmt::format("there is no register at 0x{:x}", offset));
  }
  Result<> check_range(uint64_t address, uint64_t n) const {
    if (address <= bytes_ && n <= bytes_ - address) return {};
    return fail({}, fmt::format("memory access of {} bytes at 0x{:x}; the device has 0x{:x}", n, address, bytes_));
  }
  void stop() {
    registers_[at("STAT")] = 0;
    registers_[at("ERR")] = 0;
    sim_.reset();
  }

  // A segment reaches to the next higher base: the machine knows no sizes.
  Result<> bind_segments() {
    const size_t n = external().segments.size();
    for (size_t i = 0; i < n; ++i) {
      uint64_t end = bytes_;
      for (size_t k = 0; k < n; ++k)
        if (base(k) > base(i)) end = std::min(end, base(k));
      const uint64_t begin = std::min(base(i), bytes_);
      const uint64_t size =
          std::min<uint64_t>(end - begin, static_cast<uint64_t>(external().words * external().word_bytes()));
      const int space = hw_.find_space(external().name + "." + external().segments[i].name);
      DLC_CHECK(sim_.bind(space, {memory_.get() + begin, size}, true));
    }
    return {};
  }

  Result<> start() {
    DLC_CHECK(bind_segments());
    const size_t words = static_cast<size_t>(registers_[at("COUNT")]) * static_cast<size_t>(hw_.isa.words32());
    const uint64_t code = base(static_cast<size_t>(segment("code")));
    DLC_CHECK(check_range(code, words * 4));
    std::vector<uint32_t> program(words);
    std::memcpy(program.data(), memory_.get() + code, words * 4);
    DLC_TRY(const SimResult r, sim_.run_words(program));
    uint32_t& status = registers_[at("STAT")];
    status &= ~mask("STAT", "done");
    for (size_t q = 0; q < r.epc.size() && static_cast<int64_t>(q) < reg("EPC").count; ++q)
      registers_[at("EPC") + 4 * static_cast<uint32_t>(q)] = static_cast<uint32_t>(r.epc[q]);
    if (r.fault) {
      status |= mask("STAT", "err");
      const auto queue =
          static_cast<uint32_t>(r.fault->queue < 0 ? static_cast<int>(hw_.queues.size()) : r.fault->queue);
      registers_[at("ERR")] =
          reg("ERR").find("cause")->put(static_cast<uint32_t>(r.fault->code)) | reg("ERR").find("queue")->put(queue);
    } else {
      status |= mask("STAT", "done");
    }
    return observer_ ? report(program, r) : Result<>{};
  }

  // For each instruction, in the order of this run: what it wrote, then that it retired.
  Result<> report(std::span<const uint32_t> program, const SimResult& r) {
    const auto n = static_cast<size_t>(hw_.isa.words32());
    std::vector<size_t> next(hw_.queues.size(), 0);  // in the queue's writes
    for (const int64_t index : r.order) {
      DLC_TRY(const Instruction i, decode(hw_, program.subspan(static_cast<size_t>(index) * n, n)));
      const int queue = hw_.isa.insns[static_cast<size_t>(i.insn)].queue;
      const auto& writes = sim_.writes()[static_cast<size_t>(queue)];
      size_t& w = next[static_cast<size_t>(queue)];
      for (; w < writes.size() && writes[w].instruction == index; ++w) report(queue, writes[w]);
      observer_->on_retire({queue, static_cast<uint32_t>(index), 0});
    }
    return {};
  }

  void report(int queue, const SimWrite& w) {
    const HwSpace& space = hw_.spaces[static_cast<size_t>(w.space)];
    const HwState& s = hw_.state_of(w.space);
    const bool outside = space.segment >= 0;
    const int64_t word = outside ? hw_.rtl.bus_bytes.value_or(16) : s.word_bytes();
    const int64_t origin = outside ? static_cast<int64_t>(base(static_cast<size_t>(space.segment))) : 0;
    for (int64_t at = w.begin, end = w.begin + static_cast<int64_t>(w.bytes.size()); at < end;) {
      const int64_t stop = std::min(end, (origin + at) / word * word + word - origin);
      const std::span<const std::byte> data(w.bytes.data() + (at - w.begin), static_cast<size_t>(stop - at));
      observer_->on_write({queue, s.name, static_cast<uint64_t>(outside ? origin + at : at / word), data, 0});
      at = stop;
    }
  }

  const HwDescription& hw_;
  Simulator sim_;
  std::unique_ptr<std::byte, Free> memory_;
  uint64_t bytes_;
  int external_ = -1;
  std::map<uint32_t, uint32_t> registers_;
  PortObserver* observer_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<DlcPort>> open_sim_port(const HwDescription& hw, const SimPortOptions& options) {
  DLC_TRY(Simulator sim, Simulator::make(hw, {options.track_undefined, false, options.seed}));
  std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(std::calloc(std::max<uint64_t>(options.memory_bytes, 1), 1)));
  if (!memory) return fail({}, fmt::format("out of memory for a device memory of {} bytes", options.memory_bytes));
  auto port = std::make_unique<SimPort>(hw, std::move(sim), std::move(memory), options.memory_bytes);
  DLC_CHECK(port->find_registers());
  return port;
}

}  // namespace dlc
