#include "core/ops/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ops/lexer.h"
#include "dlc/kernel/names.h"

namespace dlc::detail {
namespace {

constexpr std::array<std::string_view, 12> kKeywords{"op",   "def",  "require", "let", "seq", "if",
                                                     "then", "else", "and",     "or",  "not", "extern"};

bool is_keyword(std::string_view s) { return std::find(kKeywords.begin(), kKeywords.end(), s) != kKeywords.end(); }

class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& file) : tokens_(std::move(tokens)), file_(file) {}

  Result<ParsedFile> file() {
    ParsedFile out;
    while (peek().kind != Token::Kind::end) {
      if (is("def")) {
        DLC_TRY(DefAst d, def());
        out.defs.push_back(std::move(d));
      } else if (is("op")) {
        DLC_TRY(RecordAst r, record());
        out.records.push_back(std::move(r));
      } else {
        return expected("`op` or `def`");
      }
    }
    return out;
  }

  Result<std::vector<Statement>> statements_to_end() {
    std::vector<Statement> out;
    while (true) {
      while (accept(";")) {
      }
      if (peek().kind == Token::Kind::end) return out;
      DLC_CHECK(statement(out));
    }
  }

 private:
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
  Result<Node> expr() {
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

  Result<Node> branch() {
    Node n = node(NodeKind::branch, take().pos);
    DLC_TRY(Node c, expr());
    DLC_CHECK(expect("then"));
    DLC_TRY(Node a, expr());
    DLC_CHECK(expect("else"));
    DLC_TRY(Node b, expr());
    n.args = {std::move(c), std::move(a), std::move(b)};
    return make(std::move(n));
  }

  std::optional<BinaryOp> binary_ahead(int level) const {
    if (peek().kind != Token::Kind::punct && peek().kind != Token::Kind::name) return std::nullopt;
    const auto op = find_binary(peek().text);
    return op && precedence(*op) == level ? op : std::nullopt;
  }

  // Left-associative; comparisons do not chain.
  Result<Node> binary(int level) {
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

  Result<Node> unary() {
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

  Result<Node> primary() {
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
  Result<Node> parenthesised() {
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

  Result<Node> size() {
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

  Result<Node> named() {
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
  Result<Node> bracketed(NodeKind kind, std::string name, Pos pos) {
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

  Result<Node> argument() {
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
  Result<Node> reduction(ReduceOp op, Pos pos) {
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

  Result<RangeVar> range_var() {
    RangeVar v;
    DLC_TRY(v.ref, index_reference());
    if (accept("<")) {
      DLC_TRY(Node e, binary(kComparisonPrecedence + 1));
      v.extent.push_back(std::move(e));
    }
    return v;
  }

  // i, i..., i[axes]..., i[!axes, keepdims]...
  Result<IndexRef> index_reference() {
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

  Result<TypeRef> type() {
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

  // ---- declarations
  Result<DefAst> def() {
    DefAst d;
    d.file = file_;
    d.pos = take().pos;
    DLC_TRY(d.name, identifier("the name of the function"));
    if (accept("(")) {
      DLC_CHECK(list(")", [&]() -> Result<> {
        Param p;
        p.pos = peek().pos;
        DLC_TRY(p.name, identifier("a parameter"));
        if (accept(":")) {
          DLC_TRY(p.type, type());
        }
        d.params.push_back(std::move(p));
        return {};
      }));
      if (accept("->")) {
        DLC_TRY(d.result, type());
      }
    } else {
      d.constant = true;
    }
    DLC_CHECK(expect("="));
    DLC_TRY(d.body, expr());
    return d;
  }

  Result<RecordAst> record() {
    RecordAst r;
    r.file = file_;
    r.pos = take().pos;
    DLC_TRY(r.name, identifier("the name of the op"));
    DLC_CHECK(expect("("));
    while (!is(";") && !is(")")) {
      DLC_TRY(OperandDecl o, operand());
      r.operands.push_back(std::move(o));
      if (!accept(",")) break;
    }
    if (accept(";")) {
      DLC_CHECK(list(")", [&]() -> Result<> {
        DLC_TRY(AttrDecl a, attribute());
        r.attributes.push_back(std::move(a));
        return {};
      }));
    } else if (!accept(")")) {
      return expected("`,`, `;` or `)`");
    }
    DLC_CHECK(expect("->"));
    do {
      DLC_TRY(OperandDecl o, operand());
      r.results.push_back(std::move(o));
    } while (accept(","));
    if (accept("extern")) {
      r.is_extern = true;
      if (!is("{")) return r;
    }
    DLC_TRY(r.body, block());
    return r;
  }

  Result<OperandDecl> operand() {
    OperandDecl o;
    o.pos = peek().pos;
    DLC_TRY(o.name, identifier("the name of an operand"));
    o.variadic = accept("...");
    DLC_CHECK(expect("["));
    DLC_CHECK(list("]", [&]() -> Result<> {
      DLC_TRY(Dim d, dim());
      o.dims.push_back(std::move(d));
      return {};
    }));
    if (accept(":")) {
      DLC_TRY(o.type, type());
    }
    o.optional = accept("?");
    DLC_TRY(o.domain, domain());
    return o;
  }

  Result<Dim> dim() {
    Dim d;
    if (peek().kind == Token::Kind::integer) {
      d.ref.pos = peek().pos;
      DLC_TRY(Node e, primary());
      d.extent.push_back(std::move(e));
      return d;
    }
    d.broadcast = accept("~");
    DLC_TRY(d.ref, index_reference());
    if (accept("=")) {
      DLC_TRY(Node e, expr());
      d.extent.push_back(std::move(e));
    }
    return d;
  }

  Result<Domain> domain() {
    Domain d;
    if (!accept("in")) return d;
    std::string_view end = "]";
    d.kind = Domain::Kind::range;
    if (accept("{")) {
      d.kind = Domain::Kind::set;
      end = "}";
    } else if (!accept("[")) {
      return expected("`[` or `{`");
    }
    const Loc where = here();
    DLC_CHECK(list(end, [&]() -> Result<> {
      DLC_TRY(Node e, expr());
      d.values.push_back(std::move(e));
      return {};
    }));
    if (d.kind == Domain::Kind::range && d.values.size() != 2) return fail(where, "a range is `[lowest, highest]`");
    if (d.values.empty()) return fail(where, "a domain of no values");
    return d;
  }

  Result<AttrDecl> attribute() {
    AttrDecl a;
    a.pos = peek().pos;
    DLC_TRY(a.name, identifier("the name of an attribute"));
    if (accept("[")) {
      DLC_TRY(a.along, identifier("a pack"));
      DLC_CHECK(expect("]"));
    }
    a.list = accept("...");
    if (!a.along.empty() && !a.list) return expected("`...`");
    if (accept(":")) {
      a.kind_written = true;
      DLC_CHECK(attribute_kind(a));
    }
    DLC_TRY(a.domain, domain());
    if (accept("=")) {
      DLC_TRY(Node e, expr());
      a.initial.push_back(std::move(e));
    }
    if (!a.kind_written) infer_kind(a);
    return a;
  }

  Result<> attribute_kind(AttrDecl& a) {
    if (accept("at")) {
      a.kind = AttrDecl::Kind::at;
      DLC_TRY(a.index, identifier("an index"));
      a.index_pack = accept("...");
      return {};
    }
    const Loc where = here();
    DLC_TRY(std::string kind, identifier("a kind of attribute"));
    const bool is_new = kind == "new" && accept("axes");
    if (kind == "axes" || is_new) {
      a.kind = is_new ? AttrDecl::Kind::new_axes : AttrDecl::Kind::axes;
      a.list = true;
      DLC_CHECK(expect("of"));
      DLC_TRY(a.index, identifier("a pack"));
      return {};
    }
    constexpr std::array<std::pair<std::string_view, AttrDecl::Kind>, 4> kKinds{{{"int", AttrDecl::Kind::integer},
                                                                                 {"real", AttrDecl::Kind::real},
                                                                                 {"string", AttrDecl::Kind::string},
                                                                                 {"type", AttrDecl::Kind::type}}};
    for (const auto& [text, k] : kKinds) {
      if (kind != text) continue;
      a.kind = k;
      return {};
    }
    return fail(where, fmt::format("unknown kind of attribute `{}`", kind),
                "kinds are int, real, string, type, at, axes of, new axes of");
  }

  static void infer_kind(AttrDecl& a) {
    auto look = [&](const Node& n) {
      if (n.kind == NodeKind::real) a.kind = AttrDecl::Kind::real;
      if (n.kind == NodeKind::string) a.kind = AttrDecl::Kind::string;
    };
    for (const Node& n : a.domain.values) look(n);
    for (const Node& n : a.initial) look(n);
  }

  // ---- statements
  Result<std::vector<Statement>> block() {
    std::vector<Statement> out;
    DLC_CHECK(expect("{"));
    while (true) {
      while (accept(";")) {
      }
      if (accept("}")) return out;
      DLC_CHECK(statement(out));
    }
  }

  Result<> statement(std::vector<Statement>& out) {
    Nesting nesting(depth_);
    DLC_CHECK(check_depth());
    if (is("require")) return require(out);
    if (is("let")) return let(out);
    if (is("seq")) return seq(out);
    return assign(out);
  }

  Result<> require(std::vector<Statement>& out) {
    take();
    do {
      Statement s;
      s.kind = Statement::Kind::require;
      s.pos = peek().pos;
      DLC_TRY(s.value, expr());
      out.push_back(std::move(s));
    } while (accept(","));
    return {};
  }

  Result<> let(std::vector<Statement>& out) {
    Statement s;
    s.kind = Statement::Kind::let;
    s.pos = take().pos;
    DLC_TRY(s.name, identifier());
    s.pack = accept("...");
    DLC_CHECK(expect("="));
    DLC_TRY(s.value, expr());
    out.push_back(std::move(s));
    return {};
  }

  Result<> seq(std::vector<Statement>& out) {
    Statement s;
    s.kind = Statement::Kind::seq;
    s.pos = take().pos;
    do {
      DLC_TRY(RangeVar v, range_var());
      s.vars.push_back(std::move(v));
    } while (accept(","));
    s.value = node(NodeKind::integer, s.pos);
    s.value.integer = 1;
    if (accept("by")) {
      DLC_TRY(s.value, unary());
    }
    if (accept(":")) {
      DLC_CHECK(statement(s.body));
    } else {
      DLC_TRY(s.body, block());
    }
    out.push_back(std::move(s));
    return {};
  }

  Result<> assign(std::vector<Statement>& out) {
    Statement s;
    s.pos = peek().pos;
    DLC_TRY(std::string name, identifier("a statement"));
    if (!is("[")) return expected(fmt::format("`[` after `{}`", name));
    DLC_TRY(s.target, bracketed(NodeKind::read, std::move(name), s.pos));
    if (accept(":")) {
      DLC_TRY(s.type, type());
    }
    if (accept("+=")) {
      DLC_TRY(Node v, expr());
      Node sum = node(NodeKind::binary, s.pos);
      sum.op = static_cast<uint8_t>(BinaryOp::add);
      sum.args = {s.target, std::move(v)};
      DLC_TRY(s.value, make(std::move(sum)));
    } else {
      if (!accept("=")) return expected("`=`");
      DLC_TRY(s.value, expr());
    }
    out.push_back(std::move(s));
    return {};
  }

  std::vector<Token> tokens_;
  const std::string& file_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<ParsedFile> parse_ops(std::string_view text, const std::string& file) {
  DLC_TRY(auto tokens, tokenize(text, file));
  return Parser(std::move(tokens), file).file();
}

Result<std::vector<Statement>> parse_statements(std::string_view text, const std::string& file, Pos start) {
  DLC_TRY(auto tokens, tokenize(text, file, start));
  return Parser(std::move(tokens), file).statements_to_end();
}

}  // namespace dlc::detail
