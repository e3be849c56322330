// JSON that others wrote. The JSON library parses any nesting but prints and copies by recursion, so that a file could
// end the program by an overflow of the stack.
//
//   if (!is_shallow_json(text)) return fail(...);
//   const auto j = nlohmann::json::parse(text, nullptr, false);
#pragma once

#include <string_view>

namespace dlc {

// No array or object of the text is nested deeper than any of dlc's formats needs.
bool is_shallow_json(std::string_view text);

}  // namespace dlc
