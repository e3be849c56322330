// A failing sample as text: a .dlct file of two cases. The first is a graph without nodes whose outputs are the
// tensors; the second is the graph with the passes that were run.
#pragma once

#include <string>

#include "tests/fuzz/check.h"

namespace dlc::fuzz {

std::string case_text(const Sample& s, const Way& w, const std::string& comment);

struct Case {
  Sample sample;
  Way way;
};
Result<Case> parse_case(std::string_view text, const std::string& file);

}  // namespace dlc::fuzz
