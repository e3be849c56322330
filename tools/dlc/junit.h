// The result of `dlc cosim` as JUnit XML, which CI servers read: a test of each layer, of the program's end, and of
// what else was asked for.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/dlc/streams.h"

namespace dlc::cli {

struct JunitSuite {
  std::string name;
  std::vector<std::pair<std::string, std::string>> properties;  // seed, hashes, cycles
  double seconds = 0;
  struct Case {
    std::string group, name;
    std::string failure, detail;  // failure: empty where it passed
    std::string skipped;          // why it says nothing
    std::string error;            // why it could not be tried
  };
  std::vector<Case> cases;
};

// A case of each layer: right as far as the first difference, wrong at it, skipped behind it; and one of the end.
std::vector<JunitSuite::Case> cosim_cases(std::span<const Stream> streams, const Json& result);
std::string junit_xml(const JunitSuite& suite);

}  // namespace dlc::cli
