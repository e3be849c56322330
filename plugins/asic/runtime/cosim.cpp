#include "plugins/asic/runtime/cosim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dlc/hw/simulator.h"

namespace dlc::asic {

namespace {

struct Word {
  std::string memory;
  uint64_t address = 0;
  std::vector<std::byte> bytes;
  uint64_t cycle = 0;
  friend bool operator==(const Word& a, const Word& b) {
    return a.memory == b.memory && a.address == b.address && a.bytes == b.bytes;
  }
  bool before(const Word& o) const { return std::tie(memory, address) < std::tie(o.memory, o.address); }
};

class Recorder : public PortObserver {
 public:
  explicit Recorder(size_t queues) : writes(queues) {}
  void on_write(const PortWrite& w) override {
    writes[static_cast<size_t>(w.queue)].push_back(
        {std::string(w.memory), w.address, {w.data.begin(), w.data.end()}, w.cycle});
  }
  void on_retire(const PortRetire&) override {}
  std::vector<std::vector<Word>> writes;
};

// The words of one instruction of the simulator.
void append(const HwDescription& hw, const SimWrite& w, const std::vector<uint64_t>& bases, std::vector<Word>& out) {
  const HwState& state = hw.state_of(w.space);
  const bool external = state.kind == HwState::Kind::external;
  const int64_t size = external ? state.align : state.elem.bytes();
  for (int64_t at = 0; at < std::ssize(w.bytes); at += size) {
    Word word{state.name, static_cast<uint64_t>((w.begin + at) / size), {}, 0};
    if (external) word.address = bases[static_cast<size_t>(w.space)] + static_cast<uint64_t>(w.begin + at);
    word.bytes.assign(w.bytes.begin() + at, w.bytes.begin() + std::min<int64_t>(at + size, std::ssize(w.bytes)));
    out.push_back(std::move(word));
  }
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string s;
  for (const std::byte b : bytes) s += fmt::format("{:02x}", static_cast<unsigned>(b));
  return s;
}

// Memory of the simulator, as the driver lays it out for the RTL.
class Reference {
 public:
  Reference(const Loaded& loaded, const std::vector<uint64_t>& bases) : loaded_(loaded), bases_(bases) {}

  Result<std::vector<std::vector<std::pair<int64_t, std::vector<Word>>>>> run(std::span<const Tensor> inputs) {
    const HwDescription& hw = *loaded_.hw;
    DLC_TRY(Simulator sim, Simulator::make(hw, {.record_writes = true}));
    std::vector<std::vector<std::byte>> memory(hw.spaces.size());
    uint64_t end = 0;
    segment_bases(hw, loaded_.image, loaded_.words.size() * 4, &end);
    for (size_t s = hw.spaces.size(); s-- > 0;) {
      if (hw.spaces[s].segment < 0) continue;
      memory[s].resize(end - bases_[s]);
      end = bases_[s];
    }
    for (size_t s = 0; s < hw.spaces.size(); ++s) {
      if (hw.spaces[s].segment < 0) continue;
      const std::string& name = hw.spaces[s].name;
      if (name.ends_with(".weights")) std::ranges::copy(loaded_.image.weights, memory[s].begin());
      if (name.ends_with(".code") && !loaded_.words.empty())
        std::memcpy(memory[s].data(), loaded_.words.data(), loaded_.words.size() * 4);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const AcceleratorIo& io = loaded_.image.inputs[i];
      std::ranges::copy(pack_io(io, inputs[i]), memory[static_cast<size_t>(io.segment)].begin() + io.offset);
    }
    for (size_t s = 0; s < hw.spaces.size(); ++s)
      if (hw.spaces[s].segment >= 0) DLC_CHECK(sim.bind(static_cast<int>(s), memory[s], true));
    DLC_TRY(const SimResult result, sim.run(loaded_.image.program));
    if (result.fault)
      return fail({}, "the functional simulator reports " + result.fault->cause + ": " + result.fault->detail);
    std::vector<std::vector<std::pair<int64_t, std::vector<Word>>>> out(hw.queues.size());
    for (size_t q = 0; q < out.size(); ++q)
      for (const SimWrite& w : sim.writes()[q]) {
        if (out[q].empty() || out[q].back().first != w.instruction) out[q].push_back({w.instruction, {}});
        append(hw, w, bases_, out[q].back().second);
      }
    for (const AcceleratorIo& io : loaded_.image.outputs) {
      const auto bytes = std::span(memory[static_cast<size_t>(io.segment)])
                             .subspan(static_cast<size_t>(io.offset), static_cast<size_t>(io.bytes));
      DLC_TRY(Tensor t, unpack_io(io, bytes));
      outputs.push_back(std::move(t));
    }
    return out;
  }

  std::vector<Tensor> outputs;

 private:
  const Loaded& loaded_;
  const std::vector<uint64_t>& bases_;
};

}  // namespace

Result<CosimReport> cosimulate(const Loaded& loaded, Driver& rtl, std::span<const Tensor> inputs) {
  const HwDescription& hw = *loaded.hw;
  DLC_CHECK(check_inputs(loaded.image, inputs));
  CosimReport report;
  Recorder recorder(hw.queues.size());
  Reference reference(loaded, rtl.bases());
  DLC_TRY(auto want, reference.run(inputs));
  if (auto outputs = rtl.run(inputs, &recorder)) {
    report.outputs = std::move(*outputs);
  } else if (!rtl.stopped()) {  // no word about the RTL
    return std::unexpected(std::move(outputs).error());
  } else {  // what it wrote until then may say why
    report.stopped = std::string(outputs.error().message());
    report.outputs = std::move(reference.outputs);
  }
  report.counts = rtl.counts();
  report.end = rtl.port().now();
  const auto differ = [&](size_t q, int64_t instruction, const Word* got, const Word* expected) {
    if (report.first && report.first->instruction <= instruction) return;
    Difference d;
    d.instruction = instruction;
    d.queue = hw.queues[q].name;
    if (instruction >= 0 && instruction < std::ssize(loaded.image.program)) {
      d.text = disassemble(hw, loaded.image.program[static_cast<size_t>(instruction)]);
      d.tile = loaded.image.tiles[static_cast<size_t>(instruction)];
    }
    const int layer = loaded.image.layer_of(instruction);
    if (layer >= 0) d.layer = loaded.image.layers[static_cast<size_t>(layer)].name;
    const Word* where = expected ? expected : got;
    d.memory = where->memory;
    d.address = where->address;
    d.cycle = got ? got->cycle : report.end;
    d.rtl = got ? hex(got->bytes) : "none";
    d.simulator = expected ? hex(expected->bytes) : "none";
    report.first = std::move(d);
  };
  for (size_t q = 0; q < want.size(); ++q) {
    size_t at = 0;
    std::vector<Word>& got = recorder.writes[q];
    const auto order = [](const Word& a, const Word& b) { return a.before(b); };
    bool same = true;
    for (auto& [instruction, words] : want[q]) {
      const size_t n = std::min(words.size(), got.size() - at);
      std::ranges::stable_sort(words, order);
      std::stable_sort(got.begin() + static_cast<std::ptrdiff_t>(at), got.begin() + static_cast<std::ptrdiff_t>(at + n),
                       order);
      for (size_t i = 0; i < words.size() && same; ++i) {
        const Word* have = i < n ? &got[at + i] : nullptr;
        if (have && *have == words[i]) continue;
        same = false;
        if (have || report.stopped.empty()) differ(q, instruction, have, &words[i]);
      }
      if (!same) break;
      at += n;
      report.writes += static_cast<int64_t>(n);
    }
    if (same && at < got.size()) differ(q, std::ssize(loaded.image.program) - 1, &got[at], nullptr);
  }
  report.bit_exact = !report.first && report.stopped.empty();
  return report;
}

std::string to_json(const CosimReport& r) {
  nlohmann::ordered_json out = nlohmann::ordered_json::parse(to_json(r.counts));
  out["bit_exact"] = r.bit_exact;
  out["writes"] = r.writes;
  if (r.first)
    out["first_difference"] = {{"instruction", r.first->instruction},
                               {"queue", r.first->queue},
                               {"text", r.first->text},
                               {"layer", r.first->layer},
                               {"tile", r.first->tile},
                               {"memory", r.first->memory},
                               {"address", r.first->address},
                               {"cycle", r.first->cycle},
                               {"rtl", r.first->rtl},
                               {"simulator", r.first->simulator}};
  if (!r.stopped.empty()) out["stopped"] = r.stopped;
  return out.dump();
}

}  // namespace dlc::asic
