// What `dlc hw check` asks of a description beyond reading it: what compiling for the machine, running its programs or
// building its RTL would find wanting later.
#pragma once

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"

namespace dlc {

// Every problem, each at its line. The plugin that compiles for the machine is not asked here.
Result<> check_machine(const HwDescription& hw);

// Whether the list `rtl.files` is there: a copy of a description is a machine too, of which no RTL can be built.
bool has_rtl(const HwDescription& hw);

// The numbers of each instruction (trip counts, cycles, transfers) on the corners of its fields and on seeded random
// values where its `require` holds: there they are defined and not negative.
Result<> check_numbers(const HwDescription& hw, uint64_t seed, int samples);

// The folder that `rtl.files` is relative to: the one above the description's.
std::string rtl_root(const HwDescription& hw);

}  // namespace dlc
