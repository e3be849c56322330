// Tokens of kernel text, with their places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"

namespace dlc {

enum class TokenKind : uint8_t { end, name, integer, real, string, punct };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // a string's text is unescaped
  int line = 1;
  int column = 1;
  bool touches_previous = false;  // no space before it
};

// Names may hold dots (`i.0`); `#` starts a comment that runs to the end of the line. The last token is `end`.
// `line` is the number of the text's first line in the file.
Result<std::vector<Token>> lex(std::string_view text, const std::string& file, int line = 1);

}  // namespace dlc
