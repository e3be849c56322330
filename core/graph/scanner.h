// A cursor over graph text: skips spaces and comments (# to the end of the line), reads words, knows line and column.
#pragma once

#include <string>
#include <string_view>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/ops/record.h"

namespace dlc::detail {

class Scanner {
 public:
  Scanner(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  bool at_end();
  char peek();                            // next character after spaces; '\0' at the end
  bool peek_word(std::string_view word);  // without consuming it
  bool accept(char c);
  bool accept(std::string_view word);  // a whole word, not the beginning of a longer one
  Result<> expect(char c);
  Result<> expect(std::string_view word);

  Result<std::string> word(std::string_view what);  // letters, digits, _ and .
  Result<std::string> name(std::string_view what);  // a value's name, bare or quoted
  Result<std::string> string();
  // The text up to a character of `stops` that is outside every bracket, trimmed; not consumed.
  std::string_view until(std::string_view stops);
  // "f32[N,3]"
  Result<TensorType> type();
  // "[N,3]"
  Result<std::vector<Expr>> shape();
  // The elements of a constant: one number for all, or a list.
  Result<Tensor> elements(const TensorType& type);

  Loc loc();  // of the next word
  std::unexpected<Error> unexpected(std::string_view wanted);

 private:
  void skip();
  Loc loc_at(size_t at) const;
  Result<> element(Tensor& t, int64_t i);

  std::string_view text_;
  std::string file_;
  size_t at_ = 0;
  // The last place a line and column were found for: the search for the next one starts here.
  mutable size_t known_at_ = 0, known_line_start_ = 0;
  mutable int known_line_ = 1;
};

Result<int64_t> parse_integer(std::string_view text, const Loc& where);
// N | N in 1..64 | N in ..M - 1 by 8
Result<> parse_symbol(Scanner& in, Ranges& symbols);

// {axis = 1, mode = "edge", to: f32, value: s64[2] = [1, 2]}; empty when the next character is no '{'.
Result<Attrs> parse_attributes(Scanner& in);

}  // namespace dlc::detail
