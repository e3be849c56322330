// Numbers with units: "256 KiB", "1.83GHz", "48 B/cy", "110ns", "3%". A wrong or missing unit is an error.
#pragma once

#include <string>
#include <string_view>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"

namespace dlc {

Result<int64_t> parse_integer(std::string_view text, const Loc& where);   // 12, -3, 0x1f
Result<int64_t> parse_bytes(std::string_view text, const Loc& where);     // a bare number is bytes
Result<double> parse_frequency(std::string_view text, const Loc& where);  // in Hz
Result<HwTime> parse_time(std::string_view text, const Loc& where);       // a bare number is cycles
Result<HwRate> parse_rate(std::string_view text, const Loc& where);       // per cycle or per second
Result<double> parse_fraction(std::string_view text, const Loc& where);   // "3%" is 0.03

}  // namespace dlc
