// Text of an Expr and back.
#include <fmt/format.h>

#include <charconv>

#include "core/expr/node.h"

namespace dlc {
namespace {

using detail::Product;

// ---- printing ----
// A quotient or remainder stands in parentheses wherever it is not a whole term, so no reader needs to know how * // %
// and - associate.

void print_sum(const Expr& e, std::string& out);

void print_operand(const Expr& e, std::string& out) {
  const detail::AtomNode* a = detail::single_atom(e);
  const auto c = e.constant();
  const bool plain = (a && a->kind != AtomKind::floor_div && a->kind != AtomKind::mod) || (c && *c >= 0);
  if (!plain) out += '(';
  print_sum(e, out);
  if (!plain) out += ')';
}

void print_atom(Atom a, std::string& out) {
  const auto args = a.args();
  switch (a.kind()) {
    case AtomKind::symbol:
      out += a.name();
      return;
    case AtomKind::floor_div:
    case AtomKind::mod:
      print_operand(args[0], out);
      out += a.kind() == AtomKind::floor_div ? " // " : " % ";
      print_operand(args[1], out);
      return;
    case AtomKind::min:
    case AtomKind::max:
    case AtomKind::select:
      out += a.kind() == AtomKind::min ? "min(" : a.kind() == AtomKind::max ? "max(" : "select(";
      for (size_t i = 0; i < args.size(); ++i) {
        if (i) out += ", ";
        print_sum(args[i], out);
      }
      out += ')';
      return;
  }
}

void print_product(const Product& p, bool first, std::string& out) {
  // -2^63 has no positive counterpart, so its sign stays with the number.
  const bool subtract = p.coefficient < 0 && p.coefficient != INT64_MIN;
  if (first) {
    if (subtract) out += '-';
  } else {
    out += subtract ? " - " : " + ";
  }
  const int64_t c = subtract ? -p.coefficient : p.coefficient;
  const auto& factors = p.monomial->factors;
  if (factors.empty() || c != 1) out += fmt::format("{}", c);
  if (!factors.empty() && c != 1) out += '*';
  const bool alone = factors.size() == 1 && c == 1 && !(first && subtract);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (i) out += '*';
    const bool binary = factors[i].kind() == AtomKind::floor_div || factors[i].kind() == AtomKind::mod;
    if (binary && !alone) out += '(';
    print_atom(factors[i], out);
    if (binary && !alone) out += ')';
  }
}

void print_sum(const Expr& e, std::string& out) {
  const auto& terms = detail::products(e);
  if (terms.empty()) out += '0';
  for (size_t i = 0; i < terms.size(); ++i) print_product(terms[i], i == 0, out);
}

// ---- parsing ----

class Parser {
 public:
  Parser(std::string_view text, const Loc& where) : text_(text), where_(where) {}

  Result<Expr> parse() {
    DLC_TRY(const Expr e, sum());
    skip_space();
    if (at_ < text_.size()) return error(at_, fmt::format("unexpected '{}' after the expression", text_[at_]));
    return e;
  }

 private:
  static constexpr int kMaxNesting = 200;  // at least 2 * kMaxDepth, so that every Expr's text can be read

  std::unexpected<Error> error(size_t at, std::string message, std::string hint = {}) const {
    Loc loc = where_;
    loc.column = (loc.column > 0 ? loc.column : 1) + static_cast<int>(at);
    return fail(std::move(loc), std::move(message), std::move(hint));
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Result<> expect(std::string_view token) {
    if (accept(token)) return {};
    if (at_ == text_.size()) return error(at_, fmt::format("expected '{}' at the end of the expression", token));
    return error(at_, fmt::format("expected '{}' before '{}'", token, text_[at_]));
  }

  // The result of the operator that starts at `at`.
  Result<Expr> checked(const Expr& e, size_t at) const {
    if (e.valid()) return e;
    return error(at, "the expression is too large, or its value does not fit in 64 bits");
  }

  // The terms are added together at the end: a long sum is read in one pass.
  Result<Expr> sum() {
    const size_t start = at_;
    detail::Sum terms;
    DLC_TRY(const Expr first, product());
    terms.add(first);
    while (true) {
      const bool add = accept("+");
      if (!add && !accept("-")) return checked(terms.finish(), start);
      DLC_TRY(const Expr next, product());
      terms.add(next, add ? 1 : -1);
    }
  }

  Result<Expr> product() {
    DLC_TRY(Expr e, factor());
    while (true) {
      skip_space();
      const size_t at = at_;
      if (accept("*")) {
        DLC_TRY(const Expr r, factor());
        DLC_TRY(e, checked(e * r, at));
        continue;
      }
      const bool division = accept("//");
      if (!division && !accept("%")) {
        if (at_ < text_.size() && text_[at_] == '/') {
          return error(at_, "'/' is not an integer operator", "write '//' for division that rounds down");
        }
        return e;
      }
      DLC_TRY(const Expr r, factor());
      if (r.is(0)) return error(at, "division by zero");
      DLC_TRY(e, checked(division ? floor_div(e, r) : mod(e, r), at));
    }
  }

  Result<Expr> factor() {
    skip_space();
    const size_t at = at_;
    if (++nesting_ > kMaxNesting) {
      return error(at, fmt::format("the expression nests more than {} levels", kMaxNesting));
    }
    Result<Expr> e = accept("-") ? negated(at) : primary();
    --nesting_;
    return e;
  }

  Result<Expr> negated(size_t at) {
    skip_space();
    if (at_ < text_.size() && is_digit(text_[at_])) return number(true);
    DLC_TRY(const Expr e, factor());
    return checked(-e, at);
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  Result<Expr> number(bool negative) {
    const size_t start = at_;
    uint64_t magnitude = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), magnitude);
    at_ = static_cast<size_t>(end - text_.data());
    if (code != std::errc() || magnitude > (uint64_t{1} << 63) - (negative ? 0 : 1)) {
      return error(start, "the number does not fit in 64 bits");
    }
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
      return error(start, "expected an integer or a name; a name starts with a letter");
    }
    return Expr(static_cast<int64_t>(negative ? 0 - magnitude : magnitude));
  }

  Result<Expr> primary() {
    if (at_ == text_.size()) return error(at_, "expected a value at the end of the expression");
    if (accept("(")) {
      DLC_TRY(const Expr e, sum());
      DLC_CHECK(expect(")"));
      return e;
    }
    if (is_digit(text_[at_])) return number(false);
    if (!is_letter(text_[at_])) return error(at_, fmt::format("expected a value before '{}'", text_[at_]));
    const size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (accept("(")) return call(name, start);
    return Expr::symbol(name);
  }

  Result<Expr> call(std::string_view name, size_t start) {
    const size_t arity = name == "select" ? 3 : name == "min" || name == "max" ? 2 : 0;
    if (arity == 0) {
      return error(start, fmt::format("unknown function '{}'", name), "the functions are min, max and select");
    }
    std::vector<Expr> args;
    do {
      DLC_TRY(Expr e, sum());
      args.push_back(e);
    } while (accept(","));
    DLC_CHECK(expect(")"));
    if (args.size() != arity) {
      return error(start, fmt::format("{} takes {} arguments, not {}", name, arity, args.size()));
    }
    if (name == "min") return checked(min(args[0], args[1]), start);
    if (name == "max") return checked(max(args[0], args[1]), start);
    return checked(select_nonneg(args[0], args[1], args[2]), start);
  }

  std::string_view text_;
  const Loc& where_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

std::string to_string(const Expr& e) {
  if (!e.valid()) return "<invalid>";
  std::string out;
  print_sum(e, out);
  return out;
}

Result<Expr> parse_expr(std::string_view text, const Loc& where) { return Parser(text, where).parse(); }

}  // namespace dlc
