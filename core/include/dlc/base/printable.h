// Text from models and files, for a terminal: it obeys control characters, so they become \x1b and the like.
#pragma once

#include <string>
#include <string_view>

namespace dlc {

// New lines and tabs stay, unless the text is one line.
std::string printable(std::string_view text, bool is_one_line = false);

}  // namespace dlc
