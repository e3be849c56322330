// A stream as files that a hardware team's own test bench reads with $readmemh: what goes into the machine, and what
// every queue must write.
//
//   vectors.svh        how many and how wide: localparams
//   memory.hex         external memory before the run: words of the bus
//   registers.hex      what to write to which register, in this order; the last one starts the program
//   writes_<q>.hex     {instruction, memory, address, data} of every word that queue q writes
//   results.hex        {address, data} of what lies in external memory afterwards
//   program.txt        the instructions
//
// The words of one instruction may come in any order; those of a queue's instructions come in the order of the program.
// simulators/asic/bench/vectors_tb.sv is a test bench that reads them.
#pragma once

#include <string>

#include "tools/dlc/streams.h"

namespace dlc::cli {

struct VectorCounts {
  int64_t memory_words = 0, registers = 0, results = 0;
  std::vector<int64_t> writes;  // of each queue
};

Result<VectorCounts> write_vectors(const Stream& s, std::span<const Tensor> inputs, const std::string& folder);

// What each partition with a stream is given while the model runs on `device`, in the order of `streams`.
Result<std::vector<std::vector<Tensor>>> inputs_of_streams(const CompiledModel& model, std::span<const Stream> streams,
                                                           PluginRegistry& plugins, const std::string& device,
                                                           std::span<const Tensor> inputs);

void add_export_vectors(CLI::App& app, Context& cx);

}  // namespace dlc::cli
