// The instruction streams of a compiled model: those of its partitions that a queue machine runs, with the times of
// every instruction, predicted from the description and, where a device with a clock has run them, measured.
//
//   DLC_TRY(std::vector<Stream> streams, streams_of(model));
//   DLC_CHECK(take_times(streams, result));            // of a run on a device with ?times=1
//   streams[0].times()[97].retire                     // cycles from the start of the partition
//
// Partitions run one after the other. Their streams are looked at as one run, without what the host does between them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dlc/plugin/compiled.h"
#include "plugins/asic/runtime/container.h"
#include "tools/dlc/json.h"

namespace dlc::cli {

struct Stream {
  size_t partition = 0;  // of the model
  asic::Loaded loaded;
  std::vector<InstructionTime> predicted, measured;  // of every instruction; measured: or empty
  int64_t predicted_cycles = 0, measured_cycles = 0;

  bool is_measured() const { return !measured.empty(); }
  const std::vector<InstructionTime>& times() const { return is_measured() ? measured : predicted; }
  int64_t cycles() const { return is_measured() ? measured_cycles : predicted_cycles; }

  const HwDescription& hw() const { return *loaded.hw; }
  const AcceleratorImage& image() const { return loaded.image; }
  int queue_of(size_t instruction) const;
  // The name of an instruction's layer; empty: it has none.
  std::string layer(size_t instruction) const;
};

// Empty where the model has none.
Result<std::vector<Stream>> streams_of(const CompiledModel& model);
// An error of `what` ("a timeline") where the model has none.
Result<std::vector<Stream>> need_streams(const CompiledModel& model, const std::string& file, const std::string& what);

// A device's URI with one more option: "times=1".
std::string with_option(const std::string& uri, const std::string& option);
// The URI that makes a device count the times of instructions.
inline std::string with_times(const std::string& uri) { return with_option(uri, "times=1"); }
// Takes them from the counters of the last run, out of which they are removed: they are as long as the program.
Result<> take_times(std::vector<Stream>& streams, Json& result);

}  // namespace dlc::cli
