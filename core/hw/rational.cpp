#include "core/hw/rational.h"

#include <cctype>
#include <optional>
#include <string>

namespace dlc {

namespace {

__extension__ typedef __int128 Wide;

struct Rational {
  Wide num = 0, den = 1;  // den > 0, reduced
};

Wide gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  while (b != 0) {
    const Wide r = a % b;
    a = b;
    b = r;
  }
  return a;
}

std::optional<Wide> mul(Wide a, Wide b) {
  Wide r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional<Wide>(r);
}

std::optional<Rational> reduced(std::optional<Wide> num, std::optional<Wide> den) {
  if (!num || !den || *den == 0) return std::nullopt;
  const Wide g = gcd(*num, *den < 0 ? -*den : *den);
  Rational r{*num / g, *den / g};
  if (r.den < 0) r = {-r.num, -r.den};
  return r;
}

std::optional<Rational> operator+(const Rational& a, const Rational& b) {
  const auto x = mul(a.num, b.den), y = mul(b.num, a.den);
  Wide s;
  if (!x || !y || __builtin_add_overflow(*x, *y, &s)) return std::nullopt;
  return reduced(s, mul(a.den, b.den));
}
std::optional<Rational> operator*(const Rational& a, const Rational& b) {
  return reduced(mul(a.num, b.num), mul(a.den, b.den));
}
std::optional<Rational> operator/(const Rational& a, const Rational& b) {
  return reduced(mul(a.num, b.den), mul(a.den, b.num));
}

// The code of a text; grammar: sum of products of powers of operands.
class FormulaParser {
 public:
  FormulaParser(std::string_view text, const Loc& where) : text_(text), where_(where) {}

  Result<std::vector<Formula::Step>> run() {
    DLC_CHECK(sum());
    if (peek() != '\0') return error();
    return std::move(code_);
  }

 private:
  using Kind = Formula::Step::Kind;

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(std::string_view t) {
    peek();
    if (text_.substr(at_, t.size()) != t) return false;
    at_ += t.size();
    return true;
  }
  std::unexpected<Error> error() {
    Loc loc = where_;
    loc.column += static_cast<int>(at_);
    constexpr size_t kShown = 100;  // of a text that may be long
    const std::string shown = std::string(text_.substr(0, kShown)) + (text_.size() > kShown ? " ..." : "");
    return fail(loc, "cannot read the formula '" + shown + "'", "integers, i, + - * / **, floor() and parentheses");
  }
  void emit(Kind kind, int64_t number = 0) { code_.push_back({kind, number}); }

  Result<> sum() {
    DLC_CHECK(product());
    while (peek() == '+' || peek() == '-') {
      const bool minus = text_[at_++] == '-';
      DLC_CHECK(product());
      emit(minus ? Kind::sub : Kind::add);
    }
    return {};
  }
  Result<> product() {
    DLC_CHECK(power());
    while (peek() == '*' || peek() == '/') {
      const bool divide = text_[at_++] == '/';
      DLC_CHECK(power());
      emit(divide ? Kind::div : Kind::mul);
    }
    return {};
  }
  Result<> power() {
    DLC_CHECK(primary());
    if (!accept("**")) return {};
    if (++depth_ > kMaxDepth) return error();
    DLC_CHECK(power());
    --depth_;
    emit(Kind::power);
    return {};
  }
  Result<> primary() {
    if (++depth_ > kMaxDepth) return error();
    auto r = operand();
    --depth_;
    return r;
  }
  Result<> operand() {
    const char c = peek();
    if (c == '-') {
      ++at_;
      DLC_CHECK(primary());
      emit(Kind::negate);
      return {};
    }
    const bool floor = accept("floor");
    if (peek() == '(') {
      ++at_;
      DLC_CHECK(sum());
      if (!accept(")")) return error();
      if (floor) emit(Kind::floor);
      return {};
    }
    if (floor) return error();
    if (accept("i")) {
      emit(Kind::index);
      return {};
    }
    if (!std::isdigit(static_cast<unsigned char>(c))) return error();
    int64_t v = 0;
    for (int digits = 0; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
      if (++digits > 18) return error();
      v = v * 10 + (text_[at_] - '0');
    }
    emit(Kind::number, v);
    return {};
  }

  static constexpr int kMaxDepth = 64;
  std::string_view text_;
  const Loc& where_;
  std::vector<Formula::Step> code_;
  size_t at_ = 0;
  int depth_ = 0;
};

Rational floor_of(const Rational& a) { return {a.num / a.den - ((a.num % a.den != 0 && a.num < 0) ? 1 : 0), 1}; }

std::optional<Rational> power_of(const Rational& a, const Rational& n) {
  if (n.den != 1 || n.num < 0 || n.num > 120) return std::nullopt;
  std::optional<Rational> r = Rational{1, 1};
  for (int k = 0; k < static_cast<int>(n.num) && r; ++k) r = *r * a;
  return r;
}

std::optional<Rational> apply(Formula::Step::Kind kind, const Rational& a, Rational b) {
  using Kind = Formula::Step::Kind;
  switch (kind) {
    case Kind::sub:
      b.num = -b.num;
      return a + b;
    case Kind::mul:
      return a * b;
    case Kind::div:
      return a / b;
    case Kind::power:
      return power_of(a, b);
    default:
      return a + b;
  }
}

}  // namespace

Result<Formula> Formula::parse(std::string_view text, const Loc& where) {
  if (text.size() > kMaxLength)
    return fail(where, "a formula of " + std::to_string(text.size()) + " characters; the limit is " +
                           std::to_string(kMaxLength));
  Formula f;
  f.text_ = text;
  f.where_ = where;
  DLC_TRY(f.code_, FormulaParser(text, where).run());
  return f;
}

Result<int64_t> Formula::at(int64_t i) const {
  std::vector<Rational> stack;
  for (const Step& s : code_) {
    switch (s.kind) {
      case Step::Kind::number:
        stack.push_back({s.number, 1});
        continue;
      case Step::Kind::index:
        stack.push_back({i, 1});
        continue;
      case Step::Kind::negate:
        stack.back().num = -stack.back().num;
        continue;
      case Step::Kind::floor:
        stack.back() = floor_of(stack.back());
        continue;
      default:
        break;
    }
    const Rational b = stack.back();
    stack.pop_back();
    const auto r = apply(s.kind, stack.back(), b);
    if (!r)
      return fail(where_, "overflow, division by zero or a power beyond 0 .. 120 in '" + text_ +
                              "' at i = " + std::to_string(i));
    stack.back() = *r;
  }
  const Rational r = stack.back();
  if (r.den != 1) return fail(where_, "the formula gives a fraction at i = " + std::to_string(i), "use floor()");
  if (r.num > INT64_MAX || r.num < INT64_MIN)
    return fail(where_, "the formula does not fit 64 bits at i = " + std::to_string(i));
  return static_cast<int64_t>(r.num);
}

}  // namespace dlc
