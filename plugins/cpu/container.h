// What the cpu plugin's "executable" holds: the program's text and what its code may use.
//
//   dlc.cpu 1 {"features":["avx2","fma"],"level":"v3"}
//   dlc.program 1
//   ...
//
// Machine code is made when it is loaded, so that a file serves every machine that has the features.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"
#include "dlc/program/program.h"
#include "plugins/cpu/codegen/codegen.h"

namespace dlc::cpu {

// Which code: by the features of the description. "host" is all that this machine has.
struct Level {
  std::string name;                   // baseline, v3, v4, host
  std::vector<std::string> features;  // that the code needs, as native_features() names them
};
Level level_of(const HwDescription& hw);
// The target of a level on this machine; fails when a feature is missing here.
Result<Target> target_of(const Level& level);
// The same without looking at this machine: for object files.
Target cross_target_of(const Level& level);

std::string pack(const Level& level, const Program& program);
struct Unpacked {
  Level level;
  Program program;
};
Result<Unpacked> unpack(std::span<const std::byte> executable);

}  // namespace dlc::cpu
