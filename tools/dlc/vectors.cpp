#include "tools/dlc/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "dlc/io/file.h"
#include "plugins/asic/runtime/devices.h"
#include "plugins/asic/runtime/reference.h"

namespace dlc::cli {

namespace {

// The functional simulator, with what device logic does to it written down: so the stimulus is the driver's own.
class Log : public DlcPort {
 public:
  explicit Log(std::unique_ptr<DlcPort> port) : port_(std::move(port)) {}

  Result<uint32_t> rd32(uint32_t offset) override { return port_->rd32(offset); }
  Result<> wr32(uint32_t offset, uint32_t value) override {
    if (!has_run_) registers.emplace_back(offset, value);
    return port_->wr32(offset, value);
  }
  Result<> mem_rd(uint64_t address, std::span<std::byte> data) override {
    DLC_CHECK(port_->mem_rd(address, data));
    after[address].assign(data.begin(), data.end());
    return {};
  }
  Result<> mem_wr(uint64_t address, std::span<const std::byte> data) override {
    before[address].assign(data.begin(), data.end());
    return port_->mem_wr(address, data);
  }
  Result<> wait_irq(uint64_t most) override {
    has_run_ = true;
    return port_->wait_irq(most);
  }
  uint64_t now() const override { return port_->now(); }
  Result<> reset() override { return port_->reset(); }
  uint64_t memory_bytes() const override { return port_->memory_bytes(); }

  std::vector<std::pair<uint32_t, uint32_t>> registers;
  std::map<uint64_t, std::vector<std::byte>> before, after;  // by address

 private:
  std::unique_ptr<DlcPort> port_;
  bool has_run_ = false;
};

// As $readmemh reads a number: the highest byte first, `width` bytes.
void put_number(std::string& out, std::span<const std::byte> bytes, size_t width) {
  for (size_t i = width; i-- > 0;)
    out += fmt::format("{:02x}", i < bytes.size() ? static_cast<unsigned>(bytes[i]) : 0U);
}

// Words of the bus from the chunks of memory; calls f(index of the word, its bytes).
template <class F>
void each_word(const std::map<uint64_t, std::vector<std::byte>>& chunks, size_t word, const F& f) {
  for (const auto& [address, bytes] : chunks)
    for (size_t at = 0; at < bytes.size(); at += word)
      f(address / word + at / word, std::span(bytes).subspan(at, std::min(word, bytes.size() - at)));
}

std::string upper(std::string text) {
  for (char& c : text) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

Result<VectorCounts> write_vectors(const Stream& s, std::span<const Tensor> inputs, const std::string& folder) {
  const HwDescription& hw = s.hw();
  DLC_TRY(asic::DeviceUri uri, asic::parse_device_uri("asic:func"));
  DLC_TRY(auto port, asic::open_port(uri, s.loaded));
  auto owned = std::make_unique<Log>(std::move(port));
  const Log& log = *owned;
  DLC_TRY(auto driver, asic::Driver::make(std::make_shared<const asic::Loaded>(s.loaded), std::move(owned)));
  DLC_CHECK(driver.run(inputs));
  DLC_TRY(const asic::ReferenceRun reference, asic::run_reference(s.loaded, inputs));

  size_t bus = 1, widest = 1;
  for (const HwState& state : hw.state) {
    if (state.kind == HwState::Kind::external) bus = static_cast<size_t>(state.align);
    if (state.kind == HwState::Kind::memory || state.kind == HwState::Kind::table)
      widest = std::max(widest, static_cast<size_t>(state.elem.bytes()));
  }
  widest = std::max(widest, bus);
  uint64_t end = 0;
  segment_bases(hw, s.image(), s.loaded.words.size() * 4, &end);

  VectorCounts counts;
  counts.memory_words = static_cast<int64_t>(end / bus);
  std::string memory, registers, results;
  uint64_t next = 0;
  each_word(log.before, bus, [&](uint64_t index, std::span<const std::byte> bytes) {
    if (index != next) memory += fmt::format("@{:x}\n", index);
    put_number(memory, bytes, bus);
    memory += '\n';
    next = index + 1;
  });
  for (const auto& [offset, value] : log.registers) registers += fmt::format("{:08x}_{:08x}\n", offset, value);
  counts.registers = std::ssize(log.registers);
  each_word(log.after, bus, [&](uint64_t index, std::span<const std::byte> bytes) {
    results += fmt::format("{:010x}_", index * bus);
    put_number(results, bytes, bus);
    results += '\n';
    ++counts.results;
  });

  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail({folder, 0, 0, {}}, "cannot make the folder: " + error.message());
  const auto write = [&](const std::string& name, const std::string& text) {
    return write_file(folder + "/" + name, text);
  };
  std::string constants = fmt::format(
      "// Vectors for {} ({}); do not edit.\nlocalparam int MEMORY_WORDS = {};\nlocalparam int REGISTERS = {};\n"
      "localparam int RESULTS = {};\nlocalparam int DATA_BITS = {};\n",
      hw.name, hash_text(hw.arch_hash), counts.memory_words, counts.registers, counts.results, widest * 8);
  for (size_t m = 0; m < hw.state.size(); ++m)
    constants += fmt::format("localparam int MEMORY_{} = {};\n", upper(hw.state[m].name), m);
  for (size_t q = 0; q < reference.writes.size(); ++q) {
    std::string text;
    int64_t n = 0;
    for (const asic::InstructionWrites& i : reference.writes[q])
      for (const asic::WrittenWord& w : i.words) {
        text += fmt::format("{:08x}_{:02x}_{:010x}_", i.instruction, hw.find_state(w.memory), w.address);
        put_number(text, w.bytes, widest);
        text += '\n';
        ++n;
      }
    counts.writes.push_back(n);
    constants += fmt::format("localparam int WRITES_{} = {};\n", upper(hw.queues[q].name), n);
    DLC_CHECK(write("writes_" + hw.queues[q].name + ".hex", text));
  }
  DLC_CHECK(write("memory.hex", memory));
  DLC_CHECK(write("registers.hex", registers));
  DLC_CHECK(write("results.hex", results));
  DLC_CHECK(write("program.txt", disassemble(hw, s.image().program)));
  DLC_CHECK(write("vectors.svh", constants));
  return counts;
}

Result<std::vector<std::vector<Tensor>>> inputs_of_streams(const CompiledModel& model, std::span<const Stream> streams,
                                                           PluginRegistry& plugins, const std::string& device,
                                                           std::span<const Tensor> inputs) {
  // The model once more, with the values that streams are given as its outputs.
  CompiledModel probe = model;
  probe.outputs.clear();
  probe.states.clear();
  for (const Stream& s : streams) {
    const CompiledPartition& p = model.partitions[s.partition];
    DLC_TRY(const Program program, parse_program(p.program, "program"));
    size_t i = 0;
    for (const ProgramBuffer& b : program.buffers) {
      if (b.kind != BufferKind::input || i == p.inputs.size()) continue;
      const std::string& name = p.inputs[i++];
      if (std::ranges::count(model.inputs, name, &Port::name) == 0 &&
          std::ranges::count(probe.outputs, name, &Port::name) == 0)
        probe.outputs.push_back({name, value_type(b)});
    }
  }
  DLC_TRY(Session session, Session::open(probe, plugins, {.device = device}));
  DLC_TRY(const std::vector<Tensor> values, session.run(inputs));
  std::vector<std::vector<Tensor>> out;
  for (const Stream& s : streams) {
    std::vector<Tensor>& given = out.emplace_back();
    for (const std::string& name : model.partitions[s.partition].inputs) {
      const auto port = std::ranges::find(model.inputs, name, &Port::name);
      given.push_back(port != model.inputs.end()
                          ? inputs[static_cast<size_t>(port - model.inputs.begin())]
                          : values[static_cast<size_t>(std::ranges::find(probe.outputs, name, &Port::name) -
                                                       probe.outputs.begin())]);
    }
  }
  return out;
}

}  // namespace dlc::cli
