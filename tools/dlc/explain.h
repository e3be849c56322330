// Where every node of a model runs, which rule decided, and why not elsewhere: what `dlc explain` prints and an
// artifact keeps.
#pragma once

#include "tools/dlc/model.h"

namespace dlc::cli {

// {"description": the file that lines are of, "nodes": [...], "in_float": [...], "problems": [...]}; docs/cli.md has
// the keys.
Result<Json> explanation(const Built& b);
// The same as text.
std::string explanation_text(const Json& explanation);

}  // namespace dlc::cli
