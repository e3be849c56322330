// Another program as a child of this one: what it printed, and how it ended.
//
//   DLC_TRY(const Ran ran, run_program({"python3", "-c", script}, 60));
//   if (ran.code != 0) return fail({}, ran.output);
#pragma once

#include <string>
#include <vector>

#include "dlc/base/diag.h"

namespace dlc::cli {

struct Ran {
  int code = 0;            // as a shell says it: 128 + N when signal N ended the program
  int signal = 0;          // that ended it; 0: none
  bool timed_out = false;  // it was stopped, and all that it had started
  std::string output;      // of stdout and stderr together; what exceeds a mebibyte is left out
};

// Looks for the program in $PATH, gives it no input, and waits for it for at most `seconds`; not for what it leaves in
// the background, which is stopped. Fails when a signal stops this process (interrupt.h).
Result<Ran> run_program(const std::vector<std::string>& arguments, double seconds);

}  // namespace dlc::cli
