// The spellings of operators, functions and reductions: one table, used by every parser and printer.
//
//   to_string(Fn::rsqrt)   // "rsqrt"
//   find_fn("rsqrt")       // Fn::rsqrt
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dlc/kernel/kernel.h"

namespace dlc {

std::string_view to_string(UnaryOp op);   // "-", "not", "~"
std::string_view to_string(BinaryOp op);  // "+", "//", "and", ...
std::string_view to_string(Fn fn);
std::string_view to_string(ReduceOp op);
std::string_view to_string(Role role);  // the keyword of a declaration: in, const, out, temp, state
std::optional<Fn> find_fn(std::string_view name);
std::optional<ReduceOp> find_reduce(std::string_view name);
std::optional<BinaryOp> find_binary(std::string_view token);

// How many arguments fn takes: {1, 1}, {2, 2}, or {1, INT_MAX} for min and max.
struct Arity {
  int least;
  int most;
};
Arity arity(Fn fn);

// How tightly a binary operator binds, 1 (or) to 9 (* / // %). Comparisons do not chain, all others associate to the
// left. Unary operators bind tighter; `if` and `?:` bind loosest.
int precedence(BinaryOp op);
inline constexpr int kComparisonPrecedence = 3;
inline constexpr int kAddPrecedence = 8;
inline constexpr int kMulPrecedence = 9;
inline constexpr int kUnaryPrecedence = 10;

// True for names a tensor cannot have bare in kernel text (keywords, functions, reductions, types); they are quoted.
bool is_reserved_word(std::string_view name);
bool is_identifier(std::string_view name);  // a letter or _, then letters, digits, _ and .

// What is wrong with the types of v's own operands ("& needs integers, has f32"), or "" when nothing is.
std::string type_error(const ValNode& v);

// True when evaluating v can give an undefined value: it reads, divides by something that may be 0, shifts, or says so.
bool may_be_undefined(const Val& v);

}  // namespace dlc
