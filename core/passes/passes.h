// Every pass of the graph level. What each does, with a small before and after, is at the top of its file.
#pragma once

#include "dlc/passes/pass.h"

namespace dlc {

Result<> batch_norm_fold(Graph& g, PassContext& context);
Result<> canonicalise(Graph& g, PassContext& context);
Result<> control(Graph& g, PassContext& context);
Result<> conv_phases(Graph& g, PassContext& context);
Result<> cse(Graph& g, PassContext& context);
Result<> dce(Graph& g, PassContext& context);
Result<> fold(Graph& g, PassContext& context);
Result<> fold_quantized(Graph& g, PassContext& context);

}  // namespace dlc
