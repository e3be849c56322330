// Compiling a model that was read already; tools/dlc/model.h reads it first.
#pragma once

#include "tools/dlc/model.h"

namespace dlc::cli {

Result<Built> build_source(Source source, Hardware hardware, const ModelOptions& o, Context& cx);
// `hw`: its recipes are applied; null for none.
Result<Graph> optimised_source(Source source, const HwDescription* hw, const ModelOptions& o, Context& cx);

}  // namespace dlc::cli
