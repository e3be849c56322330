// What a record can be used with, found by trying: its own generator makes uses of it (dlc/ops/generate.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dlc/hw/description.h"
#include "dlc/map/partition.h"
#include "dlc/ops/record.h"

namespace dlc::cli {

// The element types of the first operand with which there is a valid use.
std::vector<std::string> types_of(const RecordSet& set, const Record& record);

using Recipes = std::shared_ptr<const RecordSet>;

// Whether a machine with recipes runs any of some uses of the record between quantize_linear and dequantize_linear, in
// 8 bits: its first operand is an input, the others constants or inputs.
bool runs_quantised(const Record& record, const HwDescription& hw, const Recipes& recipes, const std::string& device,
                    const AskDevice& ask);

}  // namespace dlc::cli
