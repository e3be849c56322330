#include "lex.h"

#include <algorithm>
#include <array>

namespace dlc {

namespace {

constexpr std::array<std::string_view, 8> kTwoCharacters{"//", "<<", ">>", "<=", ">=", "==", "!=", "?:"};
constexpr std::string_view kOneCharacter = "+-*/%<>&|^~=()[]{},:@";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file, int line) : text_(text), file_(file), line_(line) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (true) {
      const bool skipped = skip_space();
      Token t;
      t.line = line_;
      t.column = static_cast<int>(at_ - line_start_) + 1;
      t.touches_previous = !skipped && !tokens.empty();
      if (at_ < text_.size()) DLC_CHECK(read(t));
      tokens.push_back(t);
      if (t.kind == TokenKind::end) return tokens;
    }
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::unexpected<Error> error(const Token& t, std::string message) const {
    return fail({file_, t.line, t.column, {}}, std::move(message));
  }

  bool skip_space() {
    const size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_start_ = ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        break;
      }
    }
    return at_ != start;
  }

  Result<> read(Token& t) {
    const char c = peek();
    if (is_letter(c)) {
      t.kind = TokenKind::name;
      while (is_letter(peek()) || is_digit(peek()) || peek() == '.') t.text += text_[at_++];
      return {};
    }
    if (is_digit(c)) return number(t);
    if (c == '"') return string(t);
    t.kind = TokenKind::punct;
    const std::string_view two = text_.substr(at_, 2);
    if (std::ranges::find(kTwoCharacters, two) != kTwoCharacters.end()) {
      t.text = two;
    } else if (kOneCharacter.find(c) != std::string_view::npos) {
      t.text = c;
    } else {
      return error(t, "character that no kernel text has (byte " + std::to_string(static_cast<unsigned char>(c)) + ")");
    }
    at_ += t.text.size();
    return {};
  }

  void digits(Token& t) {
    while (is_digit(peek())) t.text += text_[at_++];
  }

  Result<> number(Token& t) {
    t.kind = TokenKind::integer;
    digits(t);
    if (peek() == '.' && is_digit(peek(1))) {
      t.kind = TokenKind::real;
      t.text += text_[at_++];
      digits(t);
    }
    if (peek() == 'e' || peek() == 'E') {
      const bool sign = peek(1) == '+' || peek(1) == '-';
      if (is_digit(peek(sign ? 2 : 1))) {
        t.kind = TokenKind::real;
        t.text += text_.substr(at_, sign ? 2 : 1);
        at_ += sign ? 2 : 1;
        digits(t);
      }
    }
    if (is_letter(peek()) || peek() == '.') return error(t, "malformed number " + t.text + peek());
    return {};
  }

  Result<> string(Token& t) {
    t.kind = TokenKind::string;
    for (++at_; peek() != '"'; ++at_) {
      if (at_ >= text_.size() || peek() == '\n') return error(t, "string without its closing quote");
      if (peek() != '\\') {
        t.text += peek();
        continue;
      }
      ++at_;
      if (peek() != '"' && peek() != '\\' && peek() != 'n') return error(t, "unknown escape in a string");
      t.text += peek() == 'n' ? '\n' : peek();
    }
    ++at_;
    return {};
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_;
};

}  // namespace

Result<std::vector<Token>> lex(std::string_view text, const std::string& file, int line) {
  return Lexer(text, file, line).run();
}

}  // namespace dlc
