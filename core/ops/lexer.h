// Text of the op language to tokens. `#` starts a comment. An operator followed by `...` is one fold token, so that the
// parser never looks further than one token ahead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/ast.h"

namespace dlc::detail {

struct Token {
  enum class Kind : uint8_t { name, integer, real, string, punct, fold, end };
  Kind kind = Kind::end;
  std::string text;  // the operator alone for a fold
  int64_t integer = 0;
  double real = 0;
  Pos pos;
};

Result<std::vector<Token>> tokenize(std::string_view text, const std::string& file, Pos start = {1, 1});

}  // namespace dlc::detail
