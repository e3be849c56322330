#include "core/ops/expr_parser.h"

#include <algorithm>
#include <array>

#include "dlc/kernel/names.h"

namespace dlc::detail {
namespace {

constexpr std::array<std::string_view, 12> kKeywords{"op",   "def",  "require", "let", "seq", "if",
                                                     "then", "else", "and",     "or",  "not", "extern"};

}  // namespace

bool is_keyword(std::string_view s) { return std::find(kKeywords.begin(), kKeywords.end(), s) != kKeywords.end(); }

Result<Node> ExprParser::expr() {
  Nesting nesting(depth_);
  DLC_CHECK(check_depth());
  const Pos pos = peek().pos;
  DLC_TRY(Node a, is("if") ? branch() : binary(1));
  if (!accept("?:")) return a;
  DLC_TRY(Node b, expr());
  Node n = node(NodeKind::orelse, pos);
  n.args = {std::move(a), std::move(b)};
  return make(std::move(n));
}

Result<Node> ExprParser::branch() {
  Node n = node(NodeKind::branch, take().pos);
  DLC_TRY(Node c, expr());
  DLC_CHECK(expect("then"));
  DLC_TRY(Node a, expr());
  DLC_CHECK(expect("else"));
  DLC_TRY(Node b, expr());
  n.args = {std::move(c), std::move(a), std::move(b)};
  return make(std::move(n));
}

std::optional<BinaryOp> ExprParser::binary_ahead(int level) const {
  if (peek().kind != Token::Kind::punct && peek().kind != Token::Kind::name) return std::nullopt;
  const auto op = find_binary(peek().text);
  return op && precedence(*op) == level ? op : std::nullopt;
}

// Left-associative; comparisons do not chain.
Result<Node> ExprParser::binary(int level) {
  if (level == kUnaryPrecedence) return unary();
  const Pos pos = peek().pos;
  DLC_TRY(Node a, binary(level + 1));
  while (const auto op = binary_ahead(level)) {
    take();
    DLC_TRY(Node rhs, binary(level + 1));
    Node n = node(NodeKind::binary, pos);
    n.op = static_cast<uint8_t>(*op);
    n.args.push_back(std::move(a));
    n.args.push_back(std::move(rhs));
    DLC_TRY(a, make(std::move(n)));
    if (level == kComparisonPrecedence) break;
  }
  return a;
}

Result<Node> ExprParser::unary() {
  Nesting nesting(depth_);
  DLC_CHECK(check_depth());
  const Pos pos = peek().pos;
  NodeKind kind;
  if (accept("-")) {
    kind = NodeKind::neg;
  } else if (accept("not")) {
    kind = NodeKind::logical_not;
  } else if (accept("~")) {
    kind = NodeKind::bit_not;
  } else {
    return primary();
  }
  DLC_TRY(Node a, unary());
  if (kind == NodeKind::neg && a.kind == NodeKind::integer) {
    a.integer = -a.integer;
    return a;
  }
  if (kind == NodeKind::neg && a.kind == NodeKind::real) {
    a.real = -a.real;
    return a;
  }
  Node n = node(kind, pos);
  n.args.push_back(std::move(a));
  return make(std::move(n));
}

Result<Node> ExprParser::primary() {
  const Token& t = peek();
  Node n = node(NodeKind::integer, t.pos);
  switch (t.kind) {
    case Token::Kind::integer:
      n.integer = take().integer;
      return n;
    case Token::Kind::real:
      n.kind = NodeKind::real;
      n.real = take().real;
      return n;
    case Token::Kind::string:
      n.kind = NodeKind::string;
      n.text = take().text;
      return n;
    case Token::Kind::name:
      return named();
    default:
      break;
  }
  if (is("(")) return parenthesised();
  if (is("|")) return size();
  return expected("an expression");
}

// (e) or the fold (e op ...)
Result<Node> ExprParser::parenthesised() {
  const Pos pos = take().pos;
  DLC_TRY(Node e, expr());
  if (peek().kind != Token::Kind::fold) {
    DLC_CHECK(expect(")"));
    return e;
  }
  const std::string op = take().text;
  DLC_CHECK(expect(")"));
  Node n = node(NodeKind::fold, pos);
  const auto binary_op = find_binary(op);
  n.op = binary_op ? static_cast<uint8_t>(*binary_op) : kFoldOrelse;
  n.args.push_back(std::move(e));
  return make(std::move(n));
}

Result<Node> ExprParser::size() {
  Node n = node(NodeKind::size, take().pos);
  const Pos pos = peek().pos;
  DLC_TRY(std::string name, identifier("an index, a pack or a variadic operand"));
  Node ref = node(NodeKind::name, pos);
  if (is("[")) {
    DLC_TRY(ref, bracketed(NodeKind::read, std::move(name), pos));
  } else {
    ref.text = std::move(name);
  }
  n.pack = accept("...");
  DLC_CHECK(expect("|"));
  n.args.push_back(std::move(ref));
  return make(std::move(n));
}

Result<Node> ExprParser::named() {
  const Pos pos = peek().pos;
  DLC_TRY(std::string name, identifier("an expression"));
  if (is("[") || is(":"))
    if (const auto op = find_reduce(name)) return reduction(*op, pos);
  if (is("[")) return bracketed(NodeKind::read, std::move(name), pos);
  if (is("(")) return bracketed(NodeKind::call, std::move(name), pos);
  Node n = node(NodeKind::name, pos);
  n.text = std::move(name);
  return n;
}

// name[...] or name(...)
Result<Node> ExprParser::bracketed(NodeKind kind, std::string name, Pos pos) {
  take();
  Node n = node(kind, pos);
  n.text = std::move(name);
  DLC_CHECK(list(kind == NodeKind::read ? "]" : ")", [&]() -> Result<> {
    DLC_TRY(Node a, argument());
    n.args.push_back(std::move(a));
    return {};
  }));
  return make(std::move(n));
}

Result<Node> ExprParser::argument() {
  const Pos pos = peek().pos;
  if (accept("!")) {
    DLC_TRY(std::string name, identifier("an attribute"));
    Node ref = node(NodeKind::name, pos), n = node(NodeKind::complement, pos);
    ref.text = std::move(name);
    n.args.push_back(std::move(ref));
    return make(std::move(n));
  }
  DLC_TRY(Node e, expr());
  if (!accept("...")) return e;
  Node n = node(NodeKind::pack, pos);
  n.args.push_back(std::move(e));
  return make(std::move(n));
}

// The body reaches as far as a product: sum[k] a * b + c is (sum[k] (a * b)) + c.
Result<Node> ExprParser::reduction(ReduceOp op, Pos pos) {
  Node n = node(NodeKind::reduce, pos);
  n.op = static_cast<uint8_t>(op);
  if (accept(":")) {
    DLC_TRY(n.type, type());
  }
  DLC_CHECK(expect("["));
  DLC_CHECK(list("]", [&]() -> Result<> {
    DLC_TRY(RangeVar v, range_var());
    n.vars.push_back(std::move(v));
    return {};
  }));
  DLC_TRY(Node body, binary(kMulPrecedence));
  n.args.push_back(std::move(body));
  return make(std::move(n));
}

Result<RangeVar> ExprParser::range_var() {
  RangeVar v;
  DLC_TRY(v.ref, index_reference());
  if (accept("<")) {
    DLC_TRY(Node e, binary(kComparisonPrecedence + 1));
    v.extent.push_back(std::move(e));
  }
  return v;
}

// i, i..., i[axes]..., i[!axes, keepdims]...
Result<IndexRef> ExprParser::index_reference() {
  IndexRef r;
  r.pos = peek().pos;
  DLC_TRY(r.name, identifier("an index"));
  if (accept("[")) {
    r.complement = accept("!");
    DLC_TRY(r.select, identifier("an attribute"));
    if (accept(",")) {
      DLC_TRY(r.keep, identifier("an attribute"));
    }
    DLC_CHECK(expect("]"));
  }
  r.pack = accept("...");
  return r;
}

Result<TypeRef> ExprParser::type() {
  TypeRef t;
  t.pos = peek().pos;
  DLC_TRY(t.name, identifier("a type"));
  if (t.name == "compute" && accept("(")) {
    t.compute = true;
    DLC_TRY(t.name, identifier("a type"));
    DLC_CHECK(expect(")"));
  }
  return t;
}

}  // namespace dlc::detail
