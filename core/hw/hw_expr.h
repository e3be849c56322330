// Expressions and conditions in hardware descriptions, as Expr: + - * // % **, comparisons, and or not, min, max,
// if c then a else b. A condition is an Expr that is >= 0 where it holds.
//
// Beside `==` and `!=` of a field, the field's enumerators may be named: the resolver of names says what they are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "dlc/base/diag.h"
#include "dlc/expr/expr.h"

namespace dlc {

struct HwNames {
  // The value of a name, or nullopt when it is unknown.
  std::function<std::optional<Expr>(std::string_view name)> value;
  // The number of enumerator `name` of field `field`, or nullopt. May be empty.
  std::function<std::optional<int64_t>(std::string_view field, std::string_view name)> enumerator;
  std::function<std::string(std::string_view name)> suggest;  // the nearest known name or ""; may be empty
};

Result<Expr> parse_hw_expr(std::string_view text, const HwNames& names, const Loc& where);
Result<Expr> parse_hw_condition(std::string_view text, const HwNames& names, const Loc& where);

// Words of a text in a form where enumerators after `field ==` and `field !=` are replaced by their numbers; the rest
// keeps its place as far as the number is not longer than the name.
std::string replace_enumerators(
    std::string_view text,
    const std::function<std::optional<int64_t>(std::string_view field, std::string_view name)>& enumerator);

// True when `name` occurs as a whole word in text.
bool mentions_word(std::string_view text, std::string_view name);

}  // namespace dlc
