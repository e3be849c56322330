// Defs evaluated through the op language: one text, parsed and run as every kernel is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dlc/hw/description.h"

namespace dlc {

// An expression over arguments that are arrays: the value at each sample. Types are those of `args`.
Result<std::vector<int64_t>> evaluate_text(const HwDescription& hw, const std::string& text,
                                           std::span<const HwDefArg> args,
                                           std::span<const std::vector<int64_t>> samples, const Loc& where);

Result<int64_t> evaluate_def(const HwDescription& hw, const HwDef& d, std::span<const int64_t> args);
// The text of d, which is none of hw.defs yet, parses and has only known names. Places are in the text of the defs that
// it needs, in which its own line is the last.
Result<> check_def(const HwDescription& hw, const HwDef& d, const Loc& where);

// "def f(a: s32, b: u6) -> s64 = "
std::string def_head(const HwDef& d);
// Names and numbers of a text.
std::vector<std::string_view> words_of(std::string_view text);
// "f(a, b)"
std::string call_text(const HwDef& d);

}  // namespace dlc
