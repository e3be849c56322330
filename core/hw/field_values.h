// Expressions over the fields of an instruction, evaluated for one instruction.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "dlc/hw/isa.h"

namespace dlc {

std::optional<int64_t> evaluate_fields(const Expr& e, const HwInsn& insn, std::span<const int64_t> fields);

}  // namespace dlc
