// Random integer formulas that know their value two ways: by plain integer arithmetic over the formula as written, and
// as the Expr that the operators build from it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "dlc/base/checked.h"
#include "dlc/expr/expr.h"

namespace dlc_test {

using Point = std::map<std::string, int64_t, std::less<>>;

struct Formula {
  char op = 'c';  // c constant, s symbol, + - * / % < (min) > (max) ?
  int64_t value = 0;
  std::string name;
  std::vector<std::shared_ptr<Formula>> args;
};
using FormulaPtr = std::shared_ptr<Formula>;

class Generator {
 public:
  Generator(unsigned seed, std::vector<std::string> symbols) : random_(seed), symbols_(std::move(symbols)) {}

  int64_t between(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }

  FormulaPtr formula(int depth) {
    auto f = std::make_shared<Formula>();
    if (depth == 0 || between(0, 9) == 0) {
      if (between(0, 2) == 0) {
        f->value = between(-9, 20);
      } else {
        f->op = 's';
        f->name = symbols_[static_cast<size_t>(between(0, static_cast<int64_t>(symbols_.size()) - 1))];
      }
      return f;
    }
    f->op = "+++--**//%%<>?"[between(0, 13)];
    for (int i = 0; i < (f->op == '?' ? 3 : 2); ++i) f->args.push_back(formula(depth - 1));
    // Most divisors are small positive constants, as in tiled indices.
    if ((f->op == '/' || f->op == '%') && between(0, 3) != 0) {
      f->args[1] = std::make_shared<Formula>();
      f->args[1]->value = between(0, 9) == 0 ? between(-6, -1) : between(1, 12);
    }
    return f;
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::string> symbols_;
};

// nullopt where it divides by zero; a branch that is not taken may.
inline std::optional<int64_t> value_of(const Formula& f, const Point& p) {
  if (f.op == 'c') return f.value;
  if (f.op == 's') return p.at(f.name);
  const auto a = value_of(*f.args[0], p);
  if (!a) return {};
  if (f.op == '?') return value_of(*f.args[*a >= 0 ? 1 : 2], p);
  const auto b = value_of(*f.args[1], p);
  if (!b) return {};
  switch (f.op) {
    case '+':
      return *a + *b;
    case '-':
      return *a - *b;
    case '*':
      return *a * *b;
    case '<':
      return std::min(*a, *b);
    case '>':
      return std::max(*a, *b);
    default:
      if (*b == 0) return {};
      return f.op == '/' ? dlc::floor_div(*a, *b) : dlc::floor_mod(*a, *b);
  }
}

inline dlc::Expr build(const Formula& f) {
  if (f.op == 'c') return f.value;
  if (f.op == 's') return dlc::Expr::symbol(f.name);
  const dlc::Expr a = build(*f.args[0]), b = build(*f.args[1]);
  switch (f.op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return floor_div(a, b);
    case '%':
      return mod(a, b);
    case '<':
      return min(a, b);
    case '>':
      return max(a, b);
    default:
      return select_nonneg(a, b, build(*f.args[2]));
  }
}

inline std::string text_of(const Formula& f) {
  if (f.op == 'c') return std::to_string(f.value);
  if (f.op == 's') return f.name;
  std::string s = f.op == '<' ? "min(" : f.op == '>' ? "max(" : f.op == '?' ? "select(" : "(";
  for (size_t i = 0; i < f.args.size(); ++i) {
    const std::string infix = f.op == '/' ? " // " : std::string(" ") + f.op + " ";
    if (i) s += s[0] == '(' ? infix : ", ";
    s += text_of(*f.args[i]);
  }
  return s + ")";
}

}  // namespace dlc_test
