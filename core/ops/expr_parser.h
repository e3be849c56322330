// Expressions of the op language: recursive descent over one token of look-ahead. parser.cpp adds declarations and
// statements.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/lexer.h"

namespace dlc::detail {

bool is_keyword(std::string_view s);

class ExprParser {
 protected:
  ExprParser(std::vector<Token> tokens, const std::string& file) : tokens_(std::move(tokens)), file_(file) {}

  // ---- tokens
  const Token& peek() const { return tokens_[at_]; }
  bool is(std::string_view text) const {
    return (peek().kind == Token::Kind::punct || peek().kind == Token::Kind::name) && peek().text == text;
  }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    take();
    return true;
  }
  Loc here() const { return loc_of(file_, peek().pos); }
  std::unexpected<Error> expected(std::string_view what) const {
    return fail(here(), peek().kind == Token::Kind::end ? fmt::format("expected {}, got the end of the text", what)
                                                        : fmt::format("expected {}, got `{}`", what, peek().text));
  }
  Result<> expect(std::string_view text) {
    if (!accept(text)) return expected(fmt::format("`{}`", text));
    return {};
  }
  Result<std::string> identifier(std::string_view what = "a name") {
    if (peek().kind != Token::Kind::name || is_keyword(peek().text)) return expected(what);
    return take().text;
  }
  // item {',' item} end; an empty list when end comes at once.
  template <class F>
  Result<> list(std::string_view end, F item) {
    if (accept(end)) return {};
    while (true) {
      DLC_CHECK(item());
      if (accept(end)) return {};
      if (!accept(",")) return expected(fmt::format("`,` or `{}`", end));
    }
  }

  // Bounds the recursion of the parser itself.
  struct Nesting {
    int& depth;
    explicit Nesting(int& d) : depth(d) { ++depth; }
    ~Nesting() { --depth; }
  };
  Result<> check_depth() const {
    if (depth_ > kMaxNesting) return fail(here(), fmt::format("nested deeper than {} levels", kMaxNesting));
    return {};
  }
  // Bounds the height of the tree, which a long chain of operators makes without nesting.
  Result<Node> make(Node n) const {
    for (const Node& a : n.args) n.height = std::max(n.height, a.height + 1);
    for (const RangeVar& v : n.vars)
      for (const Node& e : v.extent) n.height = std::max(n.height, e.height + 1);
    if (n.height > 2 * kMaxNesting)
      return fail(loc_of(file_, n.pos), fmt::format("expression of more than {} operators in a chain", 2 * kMaxNesting),
                  "split it with `let` or a named stage");
    return n;
  }
  static Node node(NodeKind kind, Pos pos) {
    Node n;
    n.kind = kind;
    n.pos = pos;
    return n;
  }

  // ---- expressions
  Result<Node> expr();
  Result<Node> branch();
  std::optional<BinaryOp> binary_ahead(int level) const;
  Result<Node> binary(int level);
  Result<Node> unary();
  Result<Node> primary();
  Result<Node> parenthesised();
  Result<Node> size();
  Result<Node> named();
  Result<Node> bracketed(NodeKind kind, std::string name, Pos pos);
  Result<Node> argument();
  Result<Node> reduction(ReduceOp op, Pos pos);
  Result<RangeVar> range_var();
  Result<IndexRef> index_reference();
  Result<TypeRef> type();

  std::vector<Token> tokens_;
  const std::string& file_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace dlc::detail
