// Checks at definition: every name a record or def uses is declared, once, so that a typo is found where it is written
// and not where the op is first used.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ops/symbols.h"

namespace dlc::detail {

Result<> check(const RecordAst& r, const DefTable& defs);
Result<> check(const DefAst& d, const DefTable& defs);
// None of these defs calls itself, by way of others or not.
Result<> check_cycles(const std::vector<std::string>& names, const DefTable& defs);

// Every let below s, by name.
void collect_lets(const Statement& s, std::map<std::string, const Statement*, std::less<>>& lets);

bool is_builtin_function(std::string_view name);
std::vector<std::string> builtin_functions();

}  // namespace dlc::detail
