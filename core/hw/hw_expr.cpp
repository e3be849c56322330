#include "core/hw/hw_expr.h"

#include <cctype>
#include <charconv>

#include "dlc/base/checked.h"

namespace dlc {

namespace {

bool name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

constexpr int kMaxNesting = 200;

// Recursive descent. A value carries whether it is a condition, so that `a + (b < c)` is refused.
class Parser {
 public:
  Parser(std::string_view text, const HwNames& names, const Loc& where) : text_(text), names_(names), where_(where) {
    next();
  }

  Result<Expr> run(bool want_condition) {
    DLC_TRY(const Value v, choice());
    if (!token_.empty()) return error("unexpected '" + std::string(token_) + "'");
    if (v.condition != want_condition)
      return fail(where_, want_condition ? "a condition is wanted here, not a number: " + std::string(text_)
                                         : "a number is wanted here, not a condition: " + std::string(text_));
    if (!v.expr.valid()) return fail(where_, "overflow or division by zero in '" + std::string(text_) + "'");
    return v.expr;
  }

 private:
  struct Value {
    Expr expr;
    bool condition = false;
    std::string_view name;  // the bare name this is, for enumerators
  };

  void next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    const size_t begin = at_;
    if (at_ == text_.size()) {
      token_ = {};
      return;
    }
    if (std::isalnum(static_cast<unsigned char>(text_[at_])) || name_start(text_[at_])) {
      while (at_ < text_.size() && name_char(text_[at_])) ++at_;
    } else {
      static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", "<=", ">=", "<<"};
      ++at_;
      for (const auto two : kTwo)
        if (text_.substr(begin, 2) == two) at_ = begin + 2;
    }
    token_ = text_.substr(begin, at_ - begin);
    token_at_ = begin;
  }
  bool accept(std::string_view t) {
    if (token_ != t) return false;
    next();
    return true;
  }
  std::unexpected<Error> error(const std::string& message) const {
    Loc loc = where_;
    loc.column += static_cast<int>(token_.empty() ? text_.size() : token_at_);
    return fail(loc, message + " in '" + std::string(text_) + "'");
  }

  Result<Value> choice() {
    if (++depth_ > kMaxNesting) return error("nested too deeply");
    Result<Value> v = accept("if") ? conditional() : disjunction();
    --depth_;
    return v;
  }
  Result<Value> conditional() {
    DLC_TRY(const Value c, choice());
    if (!c.condition) return error("'if' wants a condition");
    if (!accept("then")) return error("'then' is missing");
    DLC_TRY(const Value a, choice());
    if (!accept("else")) return error("'else' is missing");
    DLC_TRY(const Value b, choice());
    if (a.condition != b.condition) return error("'then' and 'else' are of different kinds");
    return Value{select_nonneg(c.expr, a.expr, b.expr), a.condition, {}};
  }
  Result<Value> disjunction() {
    DLC_TRY(Value a, conjunction());
    while (token_ == "or") {
      next();
      DLC_TRY(const Value b, conjunction());
      if (!a.condition || !b.condition) return error("'or' joins conditions");
      a = {max(a.expr, b.expr), true, {}};
    }
    return a;
  }
  Result<Value> conjunction() {
    DLC_TRY(Value a, negation());
    while (token_ == "and") {
      next();
      DLC_TRY(const Value b, negation());
      if (!a.condition || !b.condition) return error("'and' joins conditions");
      a = {min(a.expr, b.expr), true, {}};
    }
    return a;
  }
  Result<Value> negation() {
    if (!accept("not")) return comparison();
    if (++depth_ > kMaxNesting) return error("nested too deeply");
    DLC_TRY(const Value a, negation());
    --depth_;
    if (!a.condition) return error("'not' wants a condition");
    return Value{-a.expr - 1, true, {}};
  }
  Result<Value> comparison() {
    DLC_TRY(const Value a, sum());
    const std::string_view op = token_;
    if (op != "<" && op != "<=" && op != ">" && op != ">=" && op != "==" && op != "!=") return a;
    next();
    Value b;
    const bool equality = op == "==" || op == "!=";
    const auto code = equality && names_.enumerator && !a.name.empty() && !token_.empty() && name_start(token_[0])
                          ? names_.enumerator(a.name, token_)
                          : std::nullopt;
    if (code) {
      b.expr = Expr(*code);
      next();
    } else {
      DLC_TRY(b, sum());
    }
    if (a.condition || b.condition) return error("a comparison joins numbers");
    const Expr d = b.expr - a.expr;  // b - a
    if (op == "<=") return Value{d, true, {}};
    if (op == "<") return Value{d - 1, true, {}};
    if (op == ">=") return Value{-d, true, {}};
    if (op == ">") return Value{-d - 1, true, {}};
    if (op == "==") return Value{min(d, -d), true, {}};
    return Value{max(d - 1, -d - 1), true, {}};
  }
  Result<Value> sum() {
    DLC_TRY(Value a, product());
    while (token_ == "+" || token_ == "-") {
      const bool plus = token_ == "+";
      next();
      DLC_TRY(const Value b, product());
      if (a.condition || b.condition) return error("arithmetic on a condition");
      a = {plus ? a.expr + b.expr : a.expr - b.expr, false, {}};
    }
    return a;
  }
  Result<Value> product() {
    DLC_TRY(Value a, unary());
    while (token_ == "*" || token_ == "//" || token_ == "%") {
      const char op = token_[0];
      next();
      DLC_TRY(const Value b, unary());
      if (a.condition || b.condition) return error("arithmetic on a condition");
      a = {op == '*' ? a.expr * b.expr : op == '/' ? floor_div(a.expr, b.expr) : mod(a.expr, b.expr), false, {}};
    }
    return a;
  }
  Result<Value> unary() {
    if (++depth_ > kMaxNesting) return error("nested too deeply");
    if (accept("-")) {
      DLC_TRY(const Value a, unary());
      --depth_;
      if (a.condition) return error("arithmetic on a condition");
      return Value{-a.expr, false, {}};
    }
    Result<Value> v = power();
    --depth_;
    return v;
  }
  Result<Value> power() {
    DLC_TRY(const Value a, primary());
    if (token_ != "**" && token_ != "<<") return a;
    const bool shift = token_ == "<<";
    next();
    DLC_TRY(const Value b, unary());
    const auto x = shift ? std::optional<int64_t>(2) : a.expr.constant();
    const auto n = b.expr.constant();
    if (a.condition || !x || !n || *n < 0 || *n > 62)
      return error("'**' and '<<' want constants, the exponent in 0 .. 62");
    int64_t r = 1;
    for (int64_t i = 0; i < *n; ++i) {
      const auto m = checked_mul(r, *x);
      if (!m) return error("overflow");
      r = *m;
    }
    return Value{shift ? a.expr * Expr(r) : Expr(r), false, {}};
  }
  Result<Value> primary() {
    if (token_.empty()) return error("an operand is missing");
    if (accept("(")) {
      DLC_TRY(Value v, choice());
      if (!accept(")")) return error("')' is missing");
      v.name = {};
      return v;
    }
    const std::string_view t = token_;
    if (std::isdigit(static_cast<unsigned char>(t[0]))) {
      const bool hex = t.starts_with("0x");
      const auto digits = hex ? t.substr(2) : t;
      int64_t v = 0;
      const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), v, hex ? 16 : 10);
      if (ec != std::errc() || end != digits.data() + digits.size())
        return error("bad number '" + std::string(t) + "'");
      next();
      return Value{Expr(v), false, {}};
    }
    if (!name_start(t[0])) return error("unexpected '" + std::string(t) + "'");
    if (t == "min" || t == "max") return extremum(t == "min");
    const auto v = names_.value(t);
    if (!v) {
      const std::string near = names_.suggest ? names_.suggest(t) : "";
      return error("unknown name '" + std::string(t) + "'" + (near.empty() ? "" : " (did you mean '" + near + "'?)"));
    }
    next();
    return Value{*v, false, t};
  }
  Result<Value> extremum(bool minimum) {
    next();
    if (!accept("(")) return error("'(' is missing");
    std::optional<Expr> e;
    do {
      DLC_TRY(const Value v, choice());
      if (v.condition) return error("arithmetic on a condition");
      e = !e ? v.expr : minimum ? min(*e, v.expr) : max(*e, v.expr);
    } while (accept(","));
    if (!accept(")")) return error("')' is missing");
    return Value{*e, false, {}};
  }

  std::string_view text_;
  const HwNames& names_;
  const Loc& where_;
  size_t at_ = 0, token_at_ = 0;
  std::string_view token_;
  int depth_ = 0;
};

}  // namespace

Result<Expr> parse_hw_expr(std::string_view text, const HwNames& names, const Loc& where) {
  return Parser(text, names, where).run(false);
}

Result<Expr> parse_hw_condition(std::string_view text, const HwNames& names, const Loc& where) {
  return Parser(text, names, where).run(true);
}

std::string replace_enumerators(
    std::string_view text,
    const std::function<std::optional<int64_t>(std::string_view, std::string_view)>& enumerator) {
  std::string out;
  std::string_view field;  // the last name, while only blanks follow it
  bool compared = false;   // ... or `==` or `!=` after it
  for (size_t i = 0; i < text.size();) {
    if (name_start(text[i])) {
      size_t end = i;
      while (end < text.size() && name_char(text[end])) ++end;
      const std::string_view word = text.substr(i, end - i);
      const auto code = compared ? enumerator(field, word) : std::nullopt;
      std::string replacement = code ? std::to_string(*code) : std::string(word);
      if (replacement.size() < word.size()) replacement.resize(word.size(), ' ');
      out += replacement;
      field = code ? std::string_view() : word;
      compared = false;
      i = end;
    } else if (!field.empty() && (text.substr(i, 2) == "==" || text.substr(i, 2) == "!=")) {
      out += text.substr(i, 2);
      compared = true;
      i += 2;
    } else {
      if (text[i] != ' ') {
        field = {};
        compared = false;
      }
      out += text[i++];
    }
  }
  return out;
}

bool mentions_word(std::string_view text, std::string_view name) {
  for (size_t i = text.find(name); i != std::string_view::npos; i = text.find(name, i + 1)) {
    const bool begins = i == 0 || !name_char(text[i - 1]);
    const size_t end = i + name.size();
    if (begins && (end == text.size() || !name_char(text[end]))) return true;
  }
  return false;
}

}  // namespace dlc
