// The expression half of the kernel parser; parse.cpp has declarations and statements.
#pragma once

#include "dlc/kernel/kernel.h"
#include "lex.h"

namespace dlc {

// A position in the tokens and the questions a recursive-descent parser asks there.
class TokenCursor {
 public:
  TokenCursor(std::vector<Token> tokens, std::string file) : tokens_(std::move(tokens)), file_(std::move(file)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token next();
  bool at(std::string_view text) const;  // an unquoted name or punctuation
  bool take(std::string_view text);      // consumes it when it is there
  Result<> expect(std::string_view text, std::string_view after);
  std::unexpected<Error> error(const Token& where, std::string message, std::string hint = {}) const;

 private:
  std::vector<Token> tokens_;
  std::string file_;
  size_t at_ = 0;
};

class ValueParser {
 public:
  ValueParser(TokenCursor& tokens, const Kernel& kernel) : t_(tokens), kernel_(kernel) {}

  Result<Val> value();
  Result<Expr> expr();  // an index expression, up to but without comparisons
  Result<std::vector<Loop>> loops();
  Result<std::vector<Val>> values_until(std::string_view close);  // consumes `close`
  Result<int> tensor(const Token& name) const;
  Result<std::string> new_name(std::string_view what);  // of something declared here: an unreserved name or a string

 private:
  // A value and the height of its tree: the parser bounds both its own recursion and that of everyone after it.
  struct Tree {
    Val v;
    int height = 1;
  };
  Result<Tree> any();
  Result<Tree> condition();
  Result<Tree> binary(int least);
  Result<Tree> unary();
  Result<Tree> primary();
  Result<Tree> literal();
  Result<Tree> call(const Token& name);
  Result<Tree> cast(const Token& name);
  Result<Tree> reduce(const Token& name);
  Result<Tree> read(const Token& name);
  Result<std::vector<Tree>> trees_until(std::string_view close);
  Result<std::optional<DType>> type_suffix();
  // The tree above children, after checking types and height.
  Result<Tree> above(const Token& where, Val v, std::initializer_list<int> heights);
  Result<Tree> above(const Token& where, Val v, const std::vector<Tree>& children);

  TokenCursor& t_;
  const Kernel& kernel_;
  int nesting_ = 0;
};

}  // namespace dlc
