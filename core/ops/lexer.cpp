#include "core/ops/lexer.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace dlc::detail {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

// Longest first.
constexpr std::array<std::string_view, 11> kLongPuncts{
    "...", "->", "?:", "//", "==", "!=", "<=", ">=", "<<", ">>", "+="};
constexpr std::string_view kPuncts = "()[]{},;:=<>+-*/%|&^~!?";
constexpr std::array<std::string_view, 5> kFoldable{"+", "*", "?:", "and", "or"};

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file, Pos start) : text_(text), file_(file), pos_(start) {}

  Result<std::vector<Token>> run() {
    while (true) {
      skip_blank();
      if (at_ >= text_.size()) break;
      DLC_TRY(Token t, next());
      tokens_.push_back(std::move(t));
      join_fold();
    }
    tokens_.push_back({Token::Kind::end, "end of text", 0, 0, pos_});
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void advance(size_t n) {
    for (; n > 0 && at_ < text_.size(); --n, ++at_) {
      if (text_[at_] == '\n') {
        ++pos_.line;
        pos_.column = 1;
      } else {
        ++pos_.column;
      }
    }
  }

  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') advance(1);
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        advance(1);
      } else {
        return;
      }
    }
  }

  Result<Token> next() {
    const char c = peek();
    if (is_name_start(c)) return name();
    if (is_digit(c)) return number();
    if (c == '"') return string();
    for (std::string_view p : kLongPuncts)
      if (text_.substr(at_).starts_with(p)) return take(Token::Kind::punct, p.size());
    if (kPuncts.find(c) != std::string_view::npos) return take(Token::Kind::punct, 1);
    const bool printable = c > ' ' && c < 127;
    return fail(loc_of(file_, pos_), printable
                                         ? fmt::format("unexpected character '{}'", c)
                                         : fmt::format("unexpected byte 0x{:02x}", static_cast<unsigned char>(c)));
  }

  Token take(Token::Kind kind, size_t n) {
    Token t{kind, std::string(text_.substr(at_, n)), 0, 0, pos_};
    advance(n);
    return t;
  }

  // A name may hold dots before letters (par.bias); `i...` is a name and an ellipsis.
  Token name() {
    size_t n = 1;
    while (is_name(peek(n)) || (peek(n) == '.' && is_name_start(peek(n + 1)))) ++n;
    return take(Token::Kind::name, n);
  }

  Result<Token> number() {
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      size_t n = 2;
      while (std::isxdigit(static_cast<unsigned char>(peek(n)))) ++n;
      return integer(n, 2, 16);
    }
    size_t n = 0;
    while (is_digit(peek(n))) ++n;
    bool real = false;
    if (peek(n) == '.' && is_digit(peek(n + 1))) {
      real = true;
      ++n;
      while (is_digit(peek(n))) ++n;
    }
    if (peek(n) == 'e' || peek(n) == 'E') {
      size_t m = n + 1;
      if (peek(m) == '+' || peek(m) == '-') ++m;
      if (is_digit(peek(m))) {
        real = true;
        n = m;
        while (is_digit(peek(n))) ++n;
      }
    }
    if (!real) return integer(n, 0, 10);
    Token t{Token::Kind::real, std::string(text_.substr(at_, n)), 0, 0, pos_};
    const auto r = std::from_chars(t.text.data(), t.text.data() + t.text.size(), t.real);
    if (r.ec != std::errc() || !std::isfinite(t.real))
      return fail(loc_of(file_, t.pos), fmt::format("number {} is out of range", t.text));
    advance(n);
    return t;
  }

  Result<Token> integer(size_t n, size_t prefix, int base) {
    Token t{Token::Kind::integer, std::string(text_.substr(at_, n)), 0, 0, pos_};
    const char* begin = t.text.data() + prefix;
    const char* end = t.text.data() + t.text.size();
    const auto r = std::from_chars(begin, end, t.integer, base);
    if (r.ec != std::errc() || r.ptr != end)
      return fail(loc_of(file_, t.pos), fmt::format("integer {} does not fit 64 bits", t.text));
    advance(n);
    return t;
  }

  Result<Token> string() {
    const Pos start = pos_;
    size_t n = 1;
    while (peek(n) != '"') {
      if (at_ + n >= text_.size() || peek(n) == '\n')
        return fail(loc_of(file_, start), "string without its closing quote");
      ++n;
    }
    Token t = take(Token::Kind::string, n + 1);
    t.text = t.text.substr(1, n - 1);
    return t;
  }

  void join_fold() {
    if (tokens_.size() < 2 || tokens_.back().kind != Token::Kind::punct || tokens_.back().text != "...") return;
    Token& op = tokens_[tokens_.size() - 2];
    if (op.kind != Token::Kind::punct && op.kind != Token::Kind::name) return;
    for (std::string_view f : kFoldable) {
      if (op.text != f) continue;
      op.kind = Token::Kind::fold;
      tokens_.pop_back();
      return;
    }
  }

  std::string_view text_;
  const std::string& file_;
  Pos pos_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text, const std::string& file, Pos start) {
  return Lexer(text, file, start).run();
}

}  // namespace dlc::detail
