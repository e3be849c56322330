// A program as machine code: linked once, run many times.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dlc/plugin/backend.h"
#include "plugins/cpu/container.h"

namespace dlc::cpu {

// `weights`: the program's constants by name; their owner keeps them as long as the executable lives. `threads`: 0 is
// all of the machine's; more than it has are not used.
//
// The executable has one arena. run() and counters() may be called from several threads: one waits until the other is
// done, so that each run has the results that it would have alone; who wants two runs at once loads it twice.
// counters() are those of the run that ended last.
Result<std::unique_ptr<Executable>> make_executable(Unpacked code, std::vector<std::pair<std::string, Tensor>> weights,
                                                    int threads);

}  // namespace dlc::cpu
