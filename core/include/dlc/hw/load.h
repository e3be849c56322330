// Reading hardware descriptions.
//
//   DLC_TRY(HwDescription hw, load_hw("asic.yaml,R=8,C=8", {.search = {"hwdesc"}}));
//
// Every fault of the text is reported with file, line and column, as many at once as make sense.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"

namespace dlc {

using HwOverrides = std::map<std::string, int64_t, std::less<>>;

// What `--hw=` was given: "asic.yaml,R=8,C=8" or "native,max=v3".
struct HwArgument {
  std::string name;  // a path, a name in a search folder, or "native"
  HwOverrides params;
  std::string max;  // native only: highest x86-64 level to use
};
Result<HwArgument> parse_hw_argument(std::string_view text);

struct HwLoadOptions {
  std::vector<std::string> search = {"hwdesc"};  // folders tried after the path itself, with and without ".yaml"
};

Result<HwDescription> load_hw(std::string_view argument, const HwLoadOptions& options = {});
// From text; `file` is used in messages, and `like:` is looked for beside it.
Result<HwDescription> parse_hw(std::string_view text, const std::string& file, const HwOverrides& overrides = {});

// The YAML of the machine this runs on: CPUID facts and cache sizes. `max` is "", "v1", "v2", "v3" or "v4".
Result<std::string> native_yaml(std::string_view max = {});
// Features the machine this runs on has (avx2, avx512f, amx_int8, ...), sorted.
std::vector<std::string> native_features();

// Tries every law of every def on `samples` seeded random arguments and the corners of their types.
Result<> check_laws(const HwDescription& hw, uint64_t seed, int samples);

}  // namespace dlc
