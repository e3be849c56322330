// dlc quantize.
#pragma once

#include "tools/dlc/cli.h"

namespace dlc::cli {

void add_quantize(CLI::App& app, Context& cx);

}  // namespace dlc::cli
