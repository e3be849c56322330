// .dlct files: tests of passes as text. The format is described in tests/ir/README.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/load.h"

namespace dlc {

struct DlctCase {
  std::string name;
  std::vector<std::string> passes;
  std::string input;
  std::string expected;
  bool expects_error = false;
  int input_line = 0;  // of the first line of the input in its file
};

struct DlctFile {
  std::string preamble;  // comments before the first case
  std::vector<DlctCase> cases;
};

struct DlctOutcome {
  std::string text;  // what the passes leave, or the diagnostics
  bool is_error = false;
};

Result<DlctFile> parse_dlct(std::string_view text, const std::string& file = {});
std::string print(const DlctFile& f);
// Parses the input, verifies it, runs the passes, prints.
DlctOutcome run_case(const DlctCase& c, const HwLoadOptions& search = {});

}  // namespace dlc
