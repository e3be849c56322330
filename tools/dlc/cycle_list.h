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

// A name as one word of a line: white space, '#', '%' and control characters as %20, and so on, so that no two names
// are one word.
std::string word_of(const std::string& name);

struct CycleList {
  std::map<std::pair<std::string, std::string>, int64_t> cycles;  // of (network, configuration)

  static Result<CycleList> read(const std::string& file);
  // Renews one line of a file, which may not be there yet. Commands that do so at once wait for each other.
  static Result<> renew(const std::string& file, const std::pair<std::string, std::string>& key, int64_t measured);
  std::string text() const;
  // Empty where the list says so too; otherwise what it says.
  std::string differs(const std::string& network, const std::string& configuration, int64_t measured) const;
};

}  // namespace dlc::cli
