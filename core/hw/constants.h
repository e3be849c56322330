// The constants that every emitted language has, and what their names may be.
//
// Invariant of a loaded description (check_emitted_names): the names differ, and none is a keyword of a language.
#pragma once

#include <string>
#include <vector>

#include "core/hw/reader.h"

namespace dlc {

struct HwConstant {
  std::string name;
  int bits = 0;  // 0: a plain integer
  int64_t value = 0;
  std::string hex;  // when bits > 0
  Loc loc;          // of what it is made from, where the description knows
};

std::vector<HwConstant> emitted_constants(const HwDescription& hw);
std::string package_name(const HwDescription& hw);
void check_emitted_names(ReadContext& cx);

}  // namespace dlc
