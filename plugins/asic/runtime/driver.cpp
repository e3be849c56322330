#include "plugins/asic/runtime/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

namespace dlc::asic {

namespace {

constexpr uint64_t kMostCycles = 2'000'000'000;
constexpr uint64_t kPatience = 16;          // so many times slower than the description a device may be
constexpr uint64_t kLeastWait = 1'000'000;  // a short program waits for the memory alone
constexpr int kResetReads = 10'000;         // the bus finishes what is open, which takes some time

// Cycles without a retired instruction after which the machine is stuck; one instruction may take all of the program's.
uint32_t watchdog(const AcceleratorImage& image, double slowness) {
  constexpr uint64_t kMost = UINT32_MAX;
  uint64_t cycles = 0;
  for (const AcceleratorLayer& l : image.layers)
    cycles = std::min(cycles + static_cast<uint64_t>(std::max<int64_t>(l.predicted_cycles, 0)), kMost);
  const auto wait = static_cast<double>(std::max(kPatience * cycles, kLeastWait)) * slowness;
  return static_cast<uint32_t>(std::min(wait, static_cast<double>(kMost)));
}

// The times of every instruction, passed on to whoever else wants them.
class Recorder : public PortObserver {
 public:
  Recorder(size_t instructions, PortObserver* next) : times(instructions), next_(next) {}
  void on_write(const PortWrite& w) override {
    if (next_) next_->on_write(w);
  }
  void on_retire(const PortRetire& r) override {
    if (r.index < times.size()) times[r.index] = {static_cast<int64_t>(r.start), static_cast<int64_t>(r.cycle)};
    if (next_) next_->on_retire(r);
  }
  std::vector<InstructionTime> times;

 private:
  PortObserver* next_;
};

}  // namespace

Result<> check_inputs(const AcceleratorImage& image, std::span<const Tensor> inputs) {
  if (inputs.size() != image.inputs.size())
    return fail({}, fmt::format("{} inputs are given, the program has {}", inputs.size(), image.inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const AcceleratorIo& io = image.inputs[i];
    if (inputs[i].dtype() != io.dtype || inputs[i].shape() != io.shape)
      return fail({}, fmt::format("input {} is {}, it must be {}", io.name,
                                  to_string(inputs[i].dtype(), inputs[i].shape()), to_string(io.dtype, io.shape)));
  }
  return {};
}

Result<Driver> Driver::make(std::shared_ptr<const Loaded> loaded, std::unique_ptr<DlcPort> port, double slowness) {
  Driver d(std::move(loaded), std::move(port), slowness);
  DLC_CHECK(d.set_up());
  return d;
}

Result<> Driver::write(const char* csr, uint64_t value, int64_t index) {
  const int at = loaded_->hw->find_csr(csr);
  if (at < 0) return fail({}, fmt::format("{} has no register {}", loaded_->hw->name, csr));
  const HwCsr& r = loaded_->hw->csr[static_cast<size_t>(at)];
  const auto offset = static_cast<uint32_t>(r.at + index * (r.bits / 8));
  DLC_CHECK(port_->wr32(offset, static_cast<uint32_t>(value)));
  if (r.bits == 64) return port_->wr32(offset + 4, static_cast<uint32_t>(value >> 32));
  return {};
}

Result<uint32_t> Driver::read(const char* csr, int64_t index) {
  const int at = loaded_->hw->find_csr(csr);
  if (at < 0) return fail({}, fmt::format("{} has no register {}", loaded_->hw->name, csr));
  const HwCsr& r = loaded_->hw->csr[static_cast<size_t>(at)];
  return port_->rd32(static_cast<uint32_t>(r.at + index * (r.bits / 8)));
}

uint32_t Driver::bit(const char* csr, const char* flag) const {
  const int at = loaded_->hw->find_csr(csr);
  if (at < 0) return 0;
  const HwCsrBits* b = loaded_->hw->csr[static_cast<size_t>(at)].find(flag);
  return b == nullptr ? 0 : b->mask();
}

Result<> Driver::set_up() {
  const HwDescription& hw = *loaded_->hw;
  uint64_t end = 0;
  bases_ = segment_bases(hw, loaded_->image, loaded_->words.size() * 4, &end);
  if (end > port_->memory_bytes())
    return fail({}, fmt::format("the program needs {} bytes of memory, the device has {}", end, port_->memory_bytes()));
  DLC_TRY(const uint32_t low, read("ID"));
  const HwCsr& id = hw.csr[static_cast<size_t>(hw.find_csr("ID"))];
  uint64_t hash = low;
  if (id.bits == 64) {
    DLC_TRY(const uint32_t high, port_->rd32(static_cast<uint32_t>(id.at) + 4));
    hash |= uint64_t{high} << 32;
  }
  if (hash != hw.arch_hash)
    return fail({}, fmt::format("the device is {}, the executable is for {}", hash_text(hash), hash_text(hw.arch_hash)),
                "compile for this device's description");
  for (size_t s = 0; s < hw.spaces.size(); ++s) {
    if (hw.spaces[s].segment < 0) continue;
    DLC_CHECK(write(hw.state_of(static_cast<int>(s)).base.c_str(), bases_[s], hw.spaces[s].segment));
    if (hw.spaces[s].name.ends_with(".code"))
      DLC_CHECK(port_->mem_wr(bases_[s], std::as_bytes(std::span(loaded_->words))));
    if (hw.spaces[s].name.ends_with(".weights") && !loaded_->image.weights.empty())
      DLC_CHECK(port_->mem_wr(bases_[s], loaded_->image.weights));
  }
  DLC_CHECK(write("IRQ_EN", bit("IRQ_EN", "done") | bit("IRQ_EN", "err")));
  if (hw.find_csr("WDOG") >= 0) DLC_CHECK(write("WDOG", watchdog(loaded_->image, slowness_)));
  return write("COUNT", loaded_->words.size() / static_cast<size_t>(hw.isa.words32()));
}

// A program that failed may have written anywhere, so that everything is set up again.
Result<> Driver::reset() {
  DLC_CHECK(write("CTRL", bit("CTRL", "reset")));
  for (int i = 0; i < kResetReads; ++i) {
    DLC_TRY(const uint32_t status, read("STAT"));
    if ((status & (bit("STAT", "busy") | bit("STAT", "err"))) != 0) continue;
    DLC_CHECK(set_up());
    clean_ = true;
    return {};
  }
  return fail({}, "the device does not come back from its reset");
}

Result<std::string> Driver::fault(uint32_t status) {
  const HwDescription& hw = *loaded_->hw;
  if ((status & bit("STAT", "err")) == 0) {
    if ((status & bit("STAT", "done")) != 0) return {};
    return "the device stopped and is not done";
  }
  DLC_TRY(const uint32_t error, read("ERR"));
  const HwCsr& layout = hw.csr[static_cast<size_t>(hw.find_csr("ERR"))];
  const HwCsrBits *code = layout.find("cause"), *queue = layout.find("queue");
  if (code == nullptr || queue == nullptr) return fmt::format("the device reports an error, 0x{:x}", error);
  std::string cause = fmt::format("cause {}", code->of(error));
  for (const HwFault& f : hw.faults)
    if (f.code == code->of(error)) cause = f.name;
  const size_t q = queue->of(error);  // the number behind the last queue is the fetch
  const int epc = hw.find_csr("EPC");
  if (epc < 0 || static_cast<int64_t>(q) >= hw.csr[static_cast<size_t>(epc)].count)
    return "the device reports " + cause;
  DLC_TRY(uint32_t index, read("EPC", static_cast<int64_t>(q)));
  // The fetch waits when nothing retires: what all wait for is the oldest instruction.
  if (q >= hw.queues.size() && cause == "watchdog")
    for (size_t other = 0; other < hw.queues.size(); ++other) {
      DLC_TRY(const uint32_t head, read("EPC", static_cast<int64_t>(other)));
      index = std::min(index, head);
    }
  const auto& program = loaded_->image.program;
  const int layer = loaded_->image.layer_of(index);
  std::string where = q < hw.queues.size() ? " in queue " + hw.queues[q].name : " in the fetch";
  if (q >= hw.queues.size() && cause == "watchdog" && index < program.size())
    where = " in queue " +
            hw.queues[static_cast<size_t>(hw.isa.insns[static_cast<size_t>(program[index].insn)].queue)].name;
  where += fmt::format(", instruction {}{}{}", index, layer >= 0 ? ", layer " : "",
                       layer >= 0 ? loaded_->image.layers[static_cast<size_t>(layer)].name : "");
  if (index < program.size()) where += ": " + disassemble(hw, program[index]);
  return "the device reports " + cause + where;
}

Result<std::vector<Tensor>> Driver::run(std::span<const Tensor> inputs, PortObserver* observer) {
  const AcceleratorImage& image = loaded_->image;
  stopped_ = false;
  DLC_CHECK(check_inputs(image, inputs));
  if (!clean_) DLC_CHECK(reset());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const AcceleratorIo& io = image.inputs[i];
    DLC_CHECK(port_->mem_wr(bases_[static_cast<size_t>(io.segment)] + static_cast<uint64_t>(io.offset),
                            pack_io(io, inputs[i])));
  }
  Recorder recorder(image.program.size(), observer);
  port_->observe(&recorder);
  const uint64_t begin = port_->now();
  const auto t0 = std::chrono::steady_clock::now();
  clean_ = false;
  auto started = write("CTRL", bit("CTRL", "start"));
  auto done = started ? port_->wait_irq(kMostCycles) : Result<>{};
  counts_ = {};
  counts_.sim_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
  port_->observe(nullptr);
  DLC_CHECK(std::move(started));
  stopped_ = !done;
  DLC_CHECK(std::move(done));
  DLC_TRY(const uint32_t status, read("STAT"));
  DLC_TRY(std::string why, fault(status));
  stopped_ = !why.empty();
  if (stopped_) return fail({}, std::move(why));
  clean_ = true;
  DLC_CHECK(write("STAT", bit("STAT", "done")));
  counts_.timed = port_->now() != begin;
  counts_.cycles = static_cast<int64_t>(port_->now() - begin);
  const auto array = static_cast<double>(array_of(*loaded_->hw).macs_per_cycle);
  for (InstructionTime& t : recorder.times)
    t = {t.start - static_cast<int64_t>(begin), t.retire - static_cast<int64_t>(begin)};
  const auto cycles = layer_cycles(*loaded_->hw, image, recorder.times, counts_.cycles);
  int64_t macs = 0;
  for (size_t l = 0; l < image.layers.size(); ++l) {
    const AcceleratorLayer& layer = image.layers[l];
    LayerCount c{layer.name, layer.macs, layer.predicted_cycles, counts_.timed ? cycles[l] : 0, 0};
    if (c.measured_cycles > 0)
      c.mac_utilization = static_cast<double>(c.macs) / (static_cast<double>(c.measured_cycles) * array);
    counts_.layers.push_back(std::move(c));
    macs += layer.macs;
  }
  if (counts_.timed)
    counts_.mac_utilization = static_cast<double>(macs) / (static_cast<double>(counts_.cycles) * array);
  if (counts_.timed) counts_.times = std::move(recorder.times);
  std::vector<Tensor> outputs;
  for (const AcceleratorIo& io : image.outputs) {
    std::vector<std::byte> bytes(static_cast<size_t>(io.bytes));
    DLC_CHECK(port_->mem_rd(bases_[static_cast<size_t>(io.segment)] + static_cast<uint64_t>(io.offset), bytes));
    DLC_TRY(Tensor t, unpack_io(io, bytes));
    outputs.push_back(std::move(t));
  }
  return outputs;
}

std::string to_json(const RunCounts& c, bool with_times) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerCount& l : c.layers) {
    nlohmann::ordered_json j{{"name", l.name}, {"macs", l.macs}, {"predicted_cycles", l.predicted_cycles}};
    if (c.timed) {
      j["measured_cycles"] = l.measured_cycles;
      j["mac_utilization"] = l.mac_utilization;
    }
    layers.push_back(std::move(j));
  }
  nlohmann::ordered_json out;
  if (c.timed) {
    out["cycles"] = c.cycles;
    out["mac_utilization"] = c.mac_utilization;
  }
  out["sim_seconds"] = c.sim_seconds;
  out["layers"] = layers;
  if (with_times && c.timed) {
    nlohmann::ordered_json times = nlohmann::ordered_json::array();
    for (const InstructionTime& t : c.times) times.push_back({t.start, t.retire});
    out["times"] = std::move(times);
  }
  return out.dump();
}

}  // namespace dlc::asic
