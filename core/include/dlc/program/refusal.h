// Why a backend does not take a call of a program. A fact: what follows from it (the host, or an error) is decided by
// who asked.
#pragma once

#include <string>

namespace dlc {

struct Refusal {
  int call = -1;
  std::string rule;   // what decided: "no instruction", "does not fit", or a rule of the backend's own
  std::string why;    // with what came nearest and the first condition that failed
  int yaml_line = 0;  // of the hardware description: where that condition stands; 0: nowhere
  std::string next;   // the next step for the user; may be empty
  // The machine does calls like this one, but not of this size: the model does not fit it.
  bool too_large = false;
};

}  // namespace dlc
