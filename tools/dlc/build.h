// Compiling a model that was read already; tools/dlc/model.h reads it first.
#pragma once

#include "dlc/plugin/model_file.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

// As build(); the large results of plugins go to `results`.
Result<Built> build(const ModelOptions& o, ResultStore& results, Context& cx);
Result<Built> build_source(Source source, Hardware hardware, const ModelOptions& o, Context& cx);
// `hw`: its recipes are applied; null for none.
Result<Graph> optimised_source(Source source, const HwDescription* hw, const ModelOptions& o, Context& cx);

}  // namespace dlc::cli
