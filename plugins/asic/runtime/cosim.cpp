#include "plugins/asic/runtime/cosim.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plugins/asic/runtime/reference.h"

namespace dlc::asic {

namespace {

class Recorder : public PortObserver {
 public:
  explicit Recorder(size_t queues) : writes(queues) {}
  void on_write(const PortWrite& w) override {
    writes[static_cast<size_t>(w.queue)].push_back(
        {std::string(w.memory), w.address, {w.data.begin(), w.data.end()}, w.cycle});
  }
  void on_retire(const PortRetire&) override {}
  std::vector<std::vector<WrittenWord>> writes;
};

std::string hex(const std::vector<std::byte>& bytes) {
  std::string s;
  for (const std::byte b : bytes) s += fmt::format("{:02x}", static_cast<unsigned>(b));
  return s;
}

}  // namespace

Result<CosimReport> cosimulate(const Loaded& loaded, Driver& rtl, std::span<const Tensor> inputs) {
  const HwDescription& hw = *loaded.hw;
  CosimReport report;
  Recorder recorder(hw.queues.size());
  DLC_TRY(ReferenceRun reference, run_reference(loaded, inputs));
  auto& want = reference.writes;
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
  const auto differ = [&](size_t q, int64_t instruction, const WrittenWord* got, const WrittenWord* expected) {
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
    const WrittenWord* where = expected ? expected : got;
    d.memory = where->memory;
    d.address = where->address;
    d.cycle = got ? got->cycle : report.end;
    d.rtl = got ? hex(got->bytes) : "none";
    d.simulator = expected ? hex(expected->bytes) : "none";
    report.first = std::move(d);
  };
  for (size_t q = 0; q < want.size(); ++q) {
    size_t at = 0;
    std::vector<WrittenWord>& got = recorder.writes[q];
    const auto order = [](const WrittenWord& a, const WrittenWord& b) { return a.before(b); };
    bool same = true;
    for (auto& [instruction, words] : want[q]) {
      const size_t n = std::min(words.size(), got.size() - at);
      std::ranges::stable_sort(words, order);
      std::stable_sort(got.begin() + static_cast<std::ptrdiff_t>(at), got.begin() + static_cast<std::ptrdiff_t>(at + n),
                       order);
      for (size_t i = 0; i < words.size() && same; ++i) {
        const WrittenWord* have = i < n ? &got[at + i] : nullptr;
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

std::string to_json(const CosimReport& r, bool with_times) {
  nlohmann::ordered_json out = nlohmann::ordered_json::parse(to_json(r.counts, with_times));
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
