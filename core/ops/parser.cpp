#include "core/ops/parser.h"

#include <array>

#include "core/ops/expr_parser.h"

namespace dlc::detail {
namespace {

class Parser : private ExprParser {
 public:
  Parser(std::vector<Token> tokens, const std::string& file) : ExprParser(std::move(tokens), file) {}

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
    const bool drawn = accept("from");
    DLC_TRY(o.domain, drawn ? values() : domain());
    o.domain.drawn = drawn;
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

  Result<Domain> domain() { return accept("in") ? values() : Domain(); }

  Result<Domain> values() {
    Domain d;
    std::string_view end = "]";
    d.kind = Domain::Kind::range;
    if (accept("{")) {
      d.kind = Domain::Kind::set;
      end = "}";
    } else if (accept("(")) {
      d.open = true;
      end = ")";
    } else if (!accept("[")) {
      return expected("`[`, `(` or `{`");
    }
    const Loc where = here();
    DLC_CHECK(list(end, [&]() -> Result<> {
      DLC_TRY(Node e, expr());
      d.values.push_back(std::move(e));
      return {};
    }));
    if (d.kind == Domain::Kind::range && d.values.size() != 2)
      return fail(where, "a range is `[lowest, highest]` or `(above, below)`");
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
