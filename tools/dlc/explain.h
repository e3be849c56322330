// Where every node of a model runs, which rule decided, and why not elsewhere: what `dlc explain` prints and an
// artifact keeps.
#pragma once

#include "tools/dlc/model.h"

namespace dlc::cli {

// {"nodes": [...], "in_float": [...], "problems": [...]}; docs/cli.md has the keys.
Result<Json> explanation(const Built& b);
// The same as text; `description`: the file that the lines are of.
std::string explanation_text(const Json& explanation, const std::string& description);

}  // namespace dlc::cli
