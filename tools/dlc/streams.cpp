#include "tools/dlc/streams.h"

#include <fmt/format.h>

#include <algorithm>

#include "dlc/hw/timing.h"

namespace dlc::cli {

int Stream::queue_of(size_t instruction) const {
  return hw().isa.insns[static_cast<size_t>(image().program[instruction].insn)].queue;
}

std::string Stream::layer(size_t instruction) const {
  const int l = image().layer_of(static_cast<int64_t>(instruction));
  return l < 0 ? "" : image().layers[static_cast<size_t>(l)].name;
}

Result<std::vector<Stream>> streams_of(const CompiledModel& model) {
  std::vector<Stream> streams;
  for (size_t p = 0; p < model.partitions.size(); ++p) {
    if (!asic::is_container(model.partitions[p].executable)) continue;
    Stream s;
    s.partition = p;
    DLC_TRY(s.loaded, asic::read_container(model.partitions[p].executable));
    s.predicted = predict_times(s.hw(), s.image().program);
    for (const InstructionTime& t : s.predicted) s.predicted_cycles = std::max(s.predicted_cycles, t.retire);
    streams.push_back(std::move(s));
  }
  return streams;
}

Result<std::vector<Stream>> need_streams(const CompiledModel& model, const std::string& file, const std::string& what) {
  DLC_TRY(auto streams, streams_of(model));
  if (streams.empty())
    return fail({file, 0, 0, {}},
                fmt::format("{} is of instruction streams, and no part of this model is one (it is for {})", what,
                            model.hardware_name),
                "compile it for a machine with queues: --hw=asic.yaml; dlc explain says why a node is on the host");
  return streams;
}

std::string with_option(const std::string& uri, const std::string& option) {
  return uri + (uri.find('?') == std::string::npos ? "?" : "&") + option;
}

Result<> take_times(std::vector<Stream>& streams, Json& result) {
  for (Stream& s : streams) {
    Json& partition = result["partitions"][s.partition];
    Json& counters = partition["counters"];
    if (!counters.contains("times")) continue;  // a device without a clock, or one that stopped
    const Json times = std::move(counters["times"]);
    counters.erase("times");
    if (!times.is_array() || times.size() != s.image().program.size())
      return fail({}, fmt::format("{} does not give the times of {} instructions",
                                  field<std::string>(partition, "device"), s.image().program.size()));
    for (const Json& t : times) {
      if (!t.is_array() || t.size() != 2 || !t[0].is_number_integer() || !t[1].is_number_integer())
        return fail({}, field<std::string>(partition, "device") + " gives times that are no pairs of cycles");
      s.measured.push_back({t[0].get<int64_t>(), t[1].get<int64_t>()});
    }
    s.measured_cycles = field<int64_t>(counters, "cycles");
  }
  return {};
}

}  // namespace dlc::cli
