// What `dlc ... --json` prints.
#pragma once

#include <nlohmann/json.hpp>

#include "tests/error/run.h"

namespace dlc::test {

inline nlohmann::json json_of(const Folder& f, const std::string& arguments) {
  const Outcome o = must_succeed(f, arguments + " --json");
  const auto j = nlohmann::json::parse(o.out, nullptr, false);
  INFO(o.out);
  REQUIRE(j.is_object());
  return j;
}

}  // namespace dlc::test
