#include "plugins/asic/runtime/reference.h"

#include <algorithm>
#include <cstring>

#include "dlc/hw/simulator.h"
#include "plugins/asic/runtime/driver.h"

namespace dlc::asic {

namespace {

// The words of one instruction of the simulator.
void append(const HwDescription& hw, const SimWrite& w, const std::vector<uint64_t>& bases,
            std::vector<WrittenWord>& out) {
  const HwState& state = hw.state_of(w.space);
  const bool external = state.kind == HwState::Kind::external;
  const int64_t size = external ? state.align : state.elem.bytes();
  for (int64_t at = 0; at < std::ssize(w.bytes); at += size) {
    WrittenWord word{state.name, static_cast<uint64_t>((w.begin + at) / size), {}, 0};
    if (external) word.address = bases[static_cast<size_t>(w.space)] + static_cast<uint64_t>(w.begin + at);
    word.bytes.assign(w.bytes.begin() + at, w.bytes.begin() + std::min<int64_t>(at + size, std::ssize(w.bytes)));
    out.push_back(std::move(word));
  }
}

}  // namespace

Result<ReferenceRun> run_reference(const Loaded& loaded, std::span<const Tensor> inputs) {
  const HwDescription& hw = *loaded.hw;
  DLC_CHECK(check_inputs(loaded.image, inputs));
  DLC_TRY(Simulator sim, Simulator::make(hw, {.record_writes = true}));
  uint64_t end = 0;
  const std::vector<uint64_t> bases = segment_bases(hw, loaded.image, loaded.words.size() * 4, &end);
  std::vector<std::vector<std::byte>> memory(hw.spaces.size());
  for (size_t s = hw.spaces.size(); s-- > 0;) {
    if (hw.spaces[s].segment < 0) continue;
    memory[s].resize(end - bases[s]);
    end = bases[s];
  }
  for (size_t s = 0; s < hw.spaces.size(); ++s) {
    if (hw.spaces[s].segment < 0) continue;
    const std::string& name = hw.spaces[s].name;
    if (name.ends_with(".weights")) std::ranges::copy(loaded.image.weights, memory[s].begin());
    if (name.ends_with(".code") && !loaded.words.empty())
      std::memcpy(memory[s].data(), loaded.words.data(), loaded.words.size() * 4);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const AcceleratorIo& io = loaded.image.inputs[i];
    std::ranges::copy(pack_io(io, inputs[i]), memory[static_cast<size_t>(io.segment)].begin() + io.offset);
  }
  for (size_t s = 0; s < hw.spaces.size(); ++s)
    if (hw.spaces[s].segment >= 0) DLC_CHECK(sim.bind(static_cast<int>(s), memory[s], true));
  DLC_TRY(const SimResult result, sim.run(loaded.image.program));
  if (result.fault)
    return fail({}, "the functional simulator reports " + result.fault->cause + ": " + result.fault->detail);
  ReferenceRun run;
  run.writes.resize(hw.queues.size());
  for (size_t q = 0; q < run.writes.size(); ++q)
    for (const SimWrite& w : sim.writes()[q]) {
      auto& of_queue = run.writes[q];
      if (of_queue.empty() || of_queue.back().instruction != w.instruction) of_queue.push_back({w.instruction, {}});
      append(hw, w, bases, of_queue.back().words);
    }
  for (const AcceleratorIo& io : loaded.image.outputs) {
    const auto bytes = std::span(memory[static_cast<size_t>(io.segment)])
                           .subspan(static_cast<size_t>(io.offset), static_cast<size_t>(io.bytes));
    DLC_TRY(Tensor t, unpack_io(io, bytes));
    run.outputs.push_back(std::move(t));
  }
  return run;
}

}  // namespace dlc::asic
