// Recursive descent over one token of look-ahead. Errors carry file, line and column; nesting is bounded.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/ast.h"

namespace dlc::detail {

struct ParsedFile {
  std::vector<RecordAst> records;
  std::vector<DefAst> defs;
};

Result<ParsedFile> parse_ops(std::string_view text, const std::string& file);
// Statements up to the end of the text; `start` is where the text begins in its file.
Result<std::vector<Statement>> parse_statements(std::string_view text, const std::string& file, Pos start = {1, 1});

}  // namespace dlc::detail
