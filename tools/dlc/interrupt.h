// SIGINT, SIGTERM and SIGHUP while another program runs: it is in a group of its own, which the terminal does not
// reach.
//
//   const Interruptible guard;          // the first signal stops the program that runs (StoppedBySignal) and is told
//   while (interrupted() == 0) ...      // no further one is started
//
// main ends the process by that signal once the command has cleaned up. A second signal ends it at once.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>

namespace dlc::cli {

class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  std::array<struct sigaction, 3> before_{};
};

// The signal that came while one lived; 0: none.
int interrupted();

// While one lives, a signal kills this child: its whole group, if it has one.
class StoppedBySignal {
 public:
  explicit StoppedBySignal(pid_t process);  // negative: the group
  ~StoppedBySignal();
  StoppedBySignal(const StoppedBySignal&) = delete;
  StoppedBySignal& operator=(const StoppedBySignal&) = delete;
};

}  // namespace dlc::cli
