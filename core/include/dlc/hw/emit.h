// What is derived from a description for others to read: constants for SystemVerilog, C and C++, and a manual page.
//
// The names are the same in every language. For an instruction ld with a field sp: LD_SP_L (lowest bit), LD_SP_W
// (width), LD_SP_P (what is added to the stored value), LD_SP_U (unit, when not 1); LD_TO_E_IN for enumerators;
// LD_USED, the mask of bits that a field claims. OP_LD, Q_LD, FAULT_OOB, CSR_CTRL, CSR_CTRL_START_B, CNT_CYCLES, WORD,
// ARCH_HASH and every param. Of memories: PAR_WORDS, of a view mul of par PAR_MUL_AT and PAR_MUL_STEP (first word,
// words between two; when not 1), of `timing` DRAM_READ_LATENCY, DRAM_BURST_MAX, DRAM_BOUNDARY. Of `cost`: ISSUE_AHEAD,
// ISSUE_LOOK, ISSUE_IN_FLIGHT, and LD_OPEN for an instruction that goes over the bus.
#pragma once

#include <string>
#include <string_view>

#include "dlc/hw/description.h"

namespace dlc {

// `package`: the package's name; empty: of `rtl.package` without its suffix, or the description's name with _cfg.
std::string emit_systemverilog(const HwDescription& hw, std::string_view package = {});
// C99 macros with the package's name in capitals as prefix, and structs for the arguments of each instruction.
std::string emit_c_header(const HwDescription& hw, std::string_view package = {});
// C++ constants in a namespace of the package's name.
std::string emit_cpp_header(const HwDescription& hw, std::string_view package = {});
// The manual in Markdown: memories, instructions with their bit tables and meaning, registers, faults.
std::string emit_manual(const HwDescription& hw);

}  // namespace dlc
