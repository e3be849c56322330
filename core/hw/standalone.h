// A description in one piece, for what must mean the same without the files it was made from.
#pragma once

#include <string>
#include <string_view>

#include "dlc/base/diag.h"

namespace dlc {

// The text with the file that its `like:` names merged in, of the same arch_hash; one that names none is itself.
Result<std::string> standalone_hw(std::string_view text, const std::string& file);
// An error if the text names another file.
Result<> check_standalone(std::string_view text, const std::string& file);

}  // namespace dlc
