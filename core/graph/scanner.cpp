#include "core/graph/scanner.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/graph/text.h"
#include "dlc/base/checked.h"

namespace dlc::detail {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

template <class T>
std::optional<T> number(std::string_view s) {
  T v{};
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}

}  // namespace

void Scanner::skip() {
  while (at_ < text_.size()) {
    if (is_space(text_[at_]))
      ++at_;
    else if (text_[at_] == '#')
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    else
      break;
  }
}

bool Scanner::at_end() {
  skip();
  return at_ == text_.size();
}

char Scanner::peek() {
  skip();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool Scanner::peek_word(std::string_view word) {
  skip();
  if (!text_.substr(at_).starts_with(word)) return false;
  const size_t end = at_ + word.size();
  return end == text_.size() || !is_word_char(text_[end]);
}

bool Scanner::accept(char c) {
  if (peek() != c || at_end()) return false;
  ++at_;
  return true;
}

bool Scanner::accept(std::string_view word) {
  if (!peek_word(word)) return false;
  at_ += word.size();
  return true;
}

Result<> Scanner::expect(char c) {
  if (!accept(c)) return unexpected("'" + std::string(1, c) + "'");
  return {};
}

Result<> Scanner::expect(std::string_view word) {
  if (!accept(word)) return unexpected("'" + std::string(word) + "'");
  return {};
}

Result<std::string> Scanner::word(std::string_view what) {
  skip();
  const size_t start = at_;
  while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
  if (at_ == start) return unexpected(what);
  return std::string(text_.substr(start, at_ - start));
}

Result<std::string> Scanner::name(std::string_view what) {
  if (peek() == '"') return string();
  const size_t start = at_;
  while (at_ < text_.size() && is_bare_name_char(text_[at_])) ++at_;
  if (at_ == start) return unexpected(what);
  return std::string(text_.substr(start, at_ - start));
}

Result<std::string> Scanner::string() {
  const Loc start = loc();
  DLC_CHECK(expect('"'));
  std::string s;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      c = text_[at_++];
      if (c == 'x') {
        uint8_t code = 0;
        const char* from = text_.data() + at_;
        auto [end, error] = std::from_chars(from, from + std::min<size_t>(2, text_.size() - at_), code, 16);
        if (error != std::errc() || end != from + 2) return fail(loc_at(at_), "\\x needs two hexadecimal digits");
        at_ += 2;
        c = static_cast<char>(code);
      } else if (c != '"' && c != '\\') {
        return fail(loc_at(at_), "unknown escape in a string", "write \\\", \\\\ or \\x and two digits");
      }
    }
    s += c;
  }
  if (at_ == text_.size()) return fail(start, "this string has no end");
  ++at_;
  return s;
}

std::string_view Scanner::until(std::string_view stops) {
  skip();
  int depth = 0;
  size_t end = at_;
  for (; end < text_.size(); ++end) {
    const char c = text_[end];
    if (depth == 0 && stops.find(c) != std::string_view::npos) break;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == '\n' || depth < 0) break;
  }
  auto s = text_.substr(at_, end - at_);
  at_ = end;
  return trimmed(s);
}

Result<TensorType> Scanner::type() {
  const Loc start = loc();
  DLC_TRY(auto word, this->word("an element type"));
  auto dtype = parse_dtype(word);
  if (!dtype) return fail(start, "'" + word + "' is not an element type", "for example f32, s8, u8, s64 or bool");
  TensorType t{.dtype = *dtype, .shape = {}};
  DLC_TRY(t.shape, shape());
  return t;
}

Result<std::vector<Expr>> Scanner::shape() {
  std::vector<Expr> dims;
  DLC_CHECK(expect('['));
  if (accept(']')) return dims;
  do {
    const Loc at = loc();
    DLC_TRY(Expr dim, parse_expr(until(",]"), at));
    dims.push_back(dim);
  } while (accept(','));
  DLC_CHECK(expect(']'));
  return dims;
}

Result<> Scanner::element(Tensor& t, int64_t i) {
  const Loc at = loc();
  const std::string_view text = until(",]{}");
  const auto bad = [&] { return fail(at, "'" + std::string(text) + "' is not a value of " + to_string(t.dtype())); };
  const DType type = t.dtype();
  if (type.is_float()) {
    if (type == kF64) {
      auto v = number<double>(text);
      if (!v) return bad();
      t.set_double(i, *v);
    } else {
      auto v = number<float>(text);
      if (!v) return bad();
      t.set_double(i, *v);
    }
    return {};
  }
  if (type == kU64) {
    auto v = number<uint64_t>(text);
    if (!v) return bad();
    t.set_int(i, static_cast<int64_t>(*v));
    return {};
  }
  auto v = number<int64_t>(text);
  if (!v || *v < type.min_value() || *v > type.max_value()) return bad();
  t.set_int(i, *v);
  return {};
}

Result<Tensor> Scanner::elements(const TensorType& type) {
  const Loc start = loc();
  std::vector<int64_t> shape;
  for (const Expr& d : type.shape) {
    auto c = d.constant();
    if (!c) return fail(start, "a constant has a fixed shape, not " + to_string(type));
    shape.push_back(*c);
  }
  auto count = checked_product(shape);
  if (!count) return fail(start, "this shape is negative or too large: " + to_string(type));
  if (!accept('[')) {
    if (*count > kSplatElements)
      return fail(start, "a constant of one repeated value has at most " + std::to_string(kSplatElements) + " elements",
                  "put this one into the weight table");
    DLC_TRY(auto t, Tensor::make(type.dtype, shape));
    if (*count == 0) return fail(start, "an empty constant is written []");
    DLC_CHECK(element(t, 0));
    const auto size = static_cast<size_t>(type.dtype.bytes());
    std::byte* bytes = t.mutable_bytes();
    for (size_t i = 1; i < static_cast<size_t>(*count); ++i) std::memcpy(bytes + i * size, bytes, size);
    return t;
  }
  // A list cannot be longer than its text, so a shape that lies is found before anything is allocated.
  if (static_cast<size_t>(*count) > text_.size() - at_)
    return fail(start, "fewer elements than " + to_string(type) + " has");
  DLC_TRY(auto t, Tensor::make(type.dtype, shape));
  int64_t i = 0;
  if (!accept(']')) {
    do {
      if (i == *count) return fail(start, "more elements than " + to_string(type) + " has");
      DLC_CHECK(element(t, i++));
    } while (accept(','));
    DLC_CHECK(expect(']'));
  }
  if (i != *count) return fail(start, "fewer elements than " + to_string(type) + " has");
  return t;
}

Loc Scanner::loc_at(size_t at) const {
  at = std::min(at, text_.size());
  if (at < known_at_) {
    known_at_ = known_line_start_ = 0;
    known_line_ = 1;
  }
  for (; known_at_ < at; ++known_at_) {
    if (text_[known_at_] != '\n') continue;
    ++known_line_;
    known_line_start_ = known_at_ + 1;
  }
  return {.file = file_, .line = known_line_, .column = 1 + static_cast<int>(at - known_line_start_)};
}

Loc Scanner::loc() {
  skip();
  return loc_at(at_);
}

std::unexpected<Error> Scanner::unexpected(std::string_view wanted) {
  std::string found = at_end() ? "the end of the text" : "'" + std::string(1, text_[at_]) + "'";
  return fail(loc(), "expected " + std::string(wanted) + ", found " + found);
}

}  // namespace dlc::detail
