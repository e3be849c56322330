// Golden cycles: how long each network takes on each configuration, in a file that is checked in.
//
//   # network  configuration  cycles
//   fashion_int8 asic.yaml,R=8 43457
//
// Fewer cycles than listed are a difference as more are: who changes them changes the list.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "dlc/base/diag.h"

namespace dlc::cli {

struct CycleList {
  std::map<std::pair<std::string, std::string>, int64_t> cycles;  // of (network, configuration)

  static Result<CycleList> read(const std::string& file);
  std::string text() const;
  // Empty where the list says so too; otherwise what it says.
  std::string differs(const std::string& network, const std::string& configuration, int64_t measured) const;
};

}  // namespace dlc::cli
