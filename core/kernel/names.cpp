#include "dlc/kernel/names.h"

#include <algorithm>
#include <array>
#include <climits>

namespace dlc {

namespace {

struct BinaryInfo {
  std::string_view token;
  int precedence;
};
// In the order of BinaryOp.
constexpr std::array<BinaryInfo, 19> kBinary{{{"+", 8},
                                              {"-", 8},
                                              {"*", 9},
                                              {"/", 9},
                                              {"//", 9},
                                              {"%", 9},
                                              {"<<", 7},
                                              {">>", 7},
                                              {"&", 6},
                                              {"|", 4},
                                              {"^", 5},
                                              {"==", 3},
                                              {"!=", 3},
                                              {"<", 3},
                                              {"<=", 3},
                                              {">", 3},
                                              {">=", 3},
                                              {"and", 2},
                                              {"or", 1}}};
static_assert(static_cast<size_t>(BinaryOp::logical_or) + 1 == kBinary.size());

struct FnInfo {
  std::string_view name;
  Arity arity;
};
// In the order of Fn.
constexpr std::array<FnInfo, 30> kFns{
    {{"exp", {1, 1}},       {"log", {1, 1}},   {"sin", {1, 1}},   {"cos", {1, 1}},    {"tan", {1, 1}},
     {"asin", {1, 1}},      {"acos", {1, 1}},  {"atan", {1, 1}},  {"sinh", {1, 1}},   {"cosh", {1, 1}},
     {"tanh", {1, 1}},      {"asinh", {1, 1}}, {"acosh", {1, 1}}, {"atanh", {1, 1}},  {"erf", {1, 1}},
     {"sqrt", {1, 1}},      {"rsqrt", {1, 1}}, {"pow", {2, 2}},   {"abs", {1, 1}},    {"sign", {1, 1}},
     {"floor", {1, 1}},     {"ceil", {1, 1}},  {"round", {1, 1}}, {"trunc", {1, 1}},  {"min", {1, INT_MAX}},
     {"max", {1, INT_MAX}}, {"fmod", {2, 2}},  {"tdiv", {2, 2}},  {"is_nan", {1, 1}}, {"is_inf", {1, 1}}}};
static_assert(static_cast<size_t>(Fn::is_inf) + 1 == kFns.size());

constexpr std::array<std::string_view, 8> kReduces{"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};
static_assert(static_cast<size_t>(ReduceOp::argmin) + 1 == kReduces.size());

constexpr std::array<std::string_view, 5> kRoles{"in", "const", "out", "temp", "state"};
static_assert(static_cast<size_t>(Role::state) + 1 == kRoles.size());

constexpr std::array<std::string_view, 26> kKeywords{
    "if", "then", "else",   "and",    "or",      "not",  "undef", "true",    "false", "inf", "nan",    "for",    "seq",
    "by", "loc",  "assume", "inputs", "outputs", "view", "at",    "strides", "cast",  "sat", "select", "kernel", "let"};

template <class Table, class Name>
std::optional<size_t> index_of(const Table& table, std::string_view wanted, Name name) {
  for (size_t i = 0; i < table.size(); ++i)
    if (name(table[i]) == wanted) return i;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(UnaryOp op) { return op == UnaryOp::neg ? "-" : op == UnaryOp::logical_not ? "not" : "~"; }
std::string_view to_string(BinaryOp op) { return kBinary[static_cast<size_t>(op)].token; }
std::string_view to_string(Fn fn) { return kFns[static_cast<size_t>(fn)].name; }
std::string_view to_string(ReduceOp op) { return kReduces[static_cast<size_t>(op)]; }
std::string_view to_string(Role role) { return kRoles[static_cast<size_t>(role)]; }

std::optional<Fn> find_fn(std::string_view name) {
  const auto i = index_of(kFns, name, [](const FnInfo& f) { return f.name; });
  return i ? std::optional(static_cast<Fn>(*i)) : std::nullopt;
}
std::optional<ReduceOp> find_reduce(std::string_view name) {
  const auto i = index_of(kReduces, name, [](std::string_view s) { return s; });
  return i ? std::optional(static_cast<ReduceOp>(*i)) : std::nullopt;
}
std::optional<BinaryOp> find_binary(std::string_view token) {
  const auto i = index_of(kBinary, token, [](const BinaryInfo& b) { return b.token; });
  return i ? std::optional(static_cast<BinaryOp>(*i)) : std::nullopt;
}

Arity arity(Fn fn) { return kFns[static_cast<size_t>(fn)].arity; }
int precedence(BinaryOp op) { return kBinary[static_cast<size_t>(op)].precedence; }

bool is_reserved_word(std::string_view name) {
  return std::ranges::find(kKeywords, name) != kKeywords.end() || std::ranges::find(kRoles, name) != kRoles.end() ||
         find_fn(name) || find_reduce(name) || parse_dtype(name);
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  return std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace dlc
