// What core says of a statement before code is emitted, under the names that code generation uses.
#pragma once

#include "dlc/lower/lowered.h"

namespace dlc::cpu {

using lower::Access;
using lower::bytes_of;
using lower::Check;
using lower::Lowered;
using lower::Rep;
using lower::VarSet;

}  // namespace dlc::cpu
