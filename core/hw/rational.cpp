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

class Formula {
 public:
  Formula(std::string_view text, int64_t i, const Loc& where) : text_(text), i_(i), where_(where) {}

  Result<Rational> run() {
    DLC_TRY(const Rational r, sum());
    if (peek() != '\0') return error();
    return r;
  }

 private:
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
  Result<Rational> checked(std::optional<Rational> r) const {
    if (!r) return fail(where_, "overflow or division by zero in '" + std::string(text_) + "'");
    return *r;
  }

  Result<Rational> sum() {
    DLC_TRY(Rational a, product());
    while (peek() == '+' || peek() == '-') {
      const bool minus = text_[at_++] == '-';
      DLC_TRY(Rational b, product());
      if (minus) b.num = -b.num;
      DLC_TRY(a, checked(a + b));
    }
    return a;
  }
  Result<Rational> product() {
    DLC_TRY(Rational a, power());
    while (peek() == '*' || peek() == '/') {
      const bool divide = text_[at_++] == '/';
      DLC_TRY(const Rational b, power());
      DLC_TRY(a, checked(divide ? a / b : a * b));
    }
    return a;
  }
  Result<Rational> power() {
    DLC_TRY(const Rational a, primary());
    if (!accept("**")) return a;
    if (++depth_ > kDeepest) return error();
    DLC_TRY(const Rational n, power());
    --depth_;
    if (n.den != 1 || n.num < 0 || n.num > 120) return error();
    std::optional<Rational> r = Rational{1, 1};
    for (int k = 0; k < static_cast<int>(n.num) && r; ++k) r = *r * a;
    return checked(r);
  }
  Result<Rational> primary() {
    if (++depth_ > kDeepest) return error();
    Result<Rational> r = operand();
    --depth_;
    return r;
  }
  Result<Rational> operand() {
    const char c = peek();
    if (c == '-') {
      ++at_;
      DLC_TRY(Rational a, primary());
      a.num = -a.num;
      return a;
    }
    const bool floor = accept("floor");
    if (peek() == '(') {
      ++at_;
      DLC_TRY(Rational a, sum());
      if (!accept(")")) return error();
      if (floor) {
        const Wide q = a.num / a.den;
        a = {q - ((a.num % a.den != 0 && a.num < 0) ? 1 : 0), 1};
      }
      return a;
    }
    if (floor) return error();
    if (accept("i")) return Rational{i_, 1};
    if (!std::isdigit(static_cast<unsigned char>(c))) return error();
    Wide v = 0;
    for (int digits = 0; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
      if (++digits > 18) return error();
      v = v * 10 + (text_[at_] - '0');
    }
    return Rational{v, 1};
  }

  static constexpr int kDeepest = 64;
  std::string_view text_;
  int64_t i_;
  const Loc& where_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<int64_t> evaluate_formula(std::string_view text, int64_t i, const Loc& where) {
  DLC_TRY(const Rational r, Formula(text, i, where).run());
  if (r.den != 1) return fail(where, "the formula gives a fraction at i = " + std::to_string(i), "use floor()");
  if (r.num > INT64_MAX || r.num < INT64_MIN)
    return fail(where, "the formula does not fit 64 bits at i = " + std::to_string(i));
  return static_cast<int64_t>(r.num);
}

}  // namespace dlc
