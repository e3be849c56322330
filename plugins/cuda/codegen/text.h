// Pieces of C++ text: expressions that know their type and whether they need parentheses, and types of elements.
#pragma once

#include <map>
#include <string>

#include "dlc/lower/lowered.h"

namespace dlc::cuda {

// C++ types of values. Bools are bool; u64 is its own type, all other integers are int or long long.
enum class Type : uint8_t { boolean, s32, s64, u64, f32, f64 };

std::string_view name_of(Type t);             // "long long"
Type type_of(DType compute, lower::Rep rep);  // of a value
std::string storage_name(DType t);            // "signed char", "f16"
std::string literal(int64_t v, Type t);       // "7", "7LL"
std::string literal(double v, Type t);        // "0.5f"

struct Text {
  std::string s;
  bool is_primary = true;  // a name, a call, a subscript: no parentheses are needed

  std::string operand() const { return is_primary ? s : "(" + s + ")"; }
};

// Integer expressions over variables, each an int or a long long.
class ExprText {
 public:
  struct Variable {
    std::string name;
    bool is_long = false;
  };
  explicit ExprText(const Ranges& ranges) : ranges_(ranges) {}

  void bind(const std::string& var, Variable v) { variables_[var] = std::move(v); }
  const Variable* find(std::string_view var) const;

  // The value as an int where that holds it and all that it is computed from, otherwise as a long long.
  struct Result {
    Text text;
    bool is_long = false;
  };
  Result operator()(const Expr& e);
  std::string as_long(const Expr& e);  // an operand
  const std::string& error() const { return error_; }

 private:
  Result atom(const Atom& a, bool as_long);
  Result print(const Expr& e, bool as_long);
  bool fits_int(const Expr& e) const;  // every part of it

  const Ranges& ranges_;
  std::map<std::string, Variable, std::less<>> variables_;
  std::string error_;
};

}  // namespace dlc::cuda
