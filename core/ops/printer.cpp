// Trees back to text, with as few parentheses as the grammar allows: parse(print(r)) == r.
#include <fmt/format.h>

#include <cmath>

#include "core/ops/ast.h"
#include "dlc/kernel/names.h"

namespace dlc::detail {
namespace {

// How tightly an expression binds: ?: 0, if 0, operators 1..9, unary 10, the rest 11. A reduction's body is a product,
// so it may stand where a product's last factor may; printed as if it were a sum, it always gets parentheses there.
constexpr int kLoosest = 0, kReduction = kAddPrecedence, kUnary = kUnaryPrecedence;

std::string comma(const std::vector<Node>& nodes) {
  std::string s;
  for (const Node& n : nodes) s += (s.empty() ? "" : ", ") + print(n);
  return s;
}

std::string number(double v) {
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string show(const TypeRef& t) { return t.compute ? fmt::format("compute({})", t.name) : t.name; }

std::string show(const IndexRef& r) {
  std::string s = r.name;
  if (!r.select.empty())
    s += fmt::format("[{}{}{}]", r.complement ? "!" : "", r.select, r.keep.empty() ? "" : ", " + r.keep);
  return s + (r.pack ? "..." : "");
}

std::string show(const Node& n, int context);

std::string show(const RangeVar& v) {
  return show(v.ref) + (v.extent.empty() ? "" : " < " + show(v.extent[0], kComparisonPrecedence + 1));
}

std::string show(const std::vector<RangeVar>& vars) {
  std::string s;
  for (const RangeVar& v : vars) s += (s.empty() ? "" : ", ") + show(v);
  return s;
}

std::string wrap(std::string s, int level, int context) { return level < context ? "(" + s + ")" : s; }

std::string show(const Node& n, int context) {
  switch (n.kind) {
    case NodeKind::integer:
      return wrap(fmt::format("{}", n.integer), n.integer < 0 ? kUnary : kUnary + 1, context);
    case NodeKind::real:
      return wrap(number(n.real), std::signbit(n.real) ? kUnary : kUnary + 1, context);
    case NodeKind::string:
      return '"' + n.text + '"';
    case NodeKind::name:
      return n.text;
    case NodeKind::size:
      return fmt::format("|{}{}|", print(n.args[0]), n.pack ? "..." : "");
    case NodeKind::read:
      return fmt::format("{}[{}]", n.text, comma(n.args));
    case NodeKind::call:
      return fmt::format("{}({})", n.text, comma(n.args));
    case NodeKind::pack: {
      const bool bare = n.args[0].kind == NodeKind::name || n.args[0].kind == NodeKind::read;
      return show(n.args[0], bare ? kLoosest : kUnary + 2) + "...";
    }
    case NodeKind::fold:
      return fmt::format("({} {} ...)", print(n.args[0]), n.op == kFoldOrelse ? "?:" : to_string(n.binary_op()));
    case NodeKind::branch:
      return wrap(fmt::format("if {} then {} else {}", print(n.args[0]), print(n.args[1]), print(n.args[2])), kLoosest,
                  context);
    case NodeKind::orelse:
      return wrap(fmt::format("{} ?: {}", show(n.args[0], 1), print(n.args[1])), kLoosest, context);
    case NodeKind::neg:
      return wrap("-" + show(n.args[0], kUnary), kUnary, context);
    case NodeKind::logical_not:
      return wrap("not " + show(n.args[0], kUnary), kUnary, context);
    case NodeKind::bit_not:
      return wrap("~" + show(n.args[0], kUnary), kUnary, context);
    case NodeKind::complement:
      return "!" + print(n.args[0]);
    case NodeKind::binary: {
      const int level = precedence(n.binary_op());
      const int left = level == kComparisonPrecedence ? level + 1 : level;  // comparisons do not chain
      return wrap(fmt::format("{} {} {}", show(n.args[0], left), to_string(n.binary_op()), show(n.args[1], level + 1)),
                  level, context);
    }
    case NodeKind::reduce:
      return wrap(fmt::format("{}{}[{}] {}", to_string(n.reduce_op()), n.type.empty() ? "" : ":" + show(n.type),
                              show(n.vars), show(n.args[0], kMulPrecedence)),
                  kReduction, context);
  }
  return {};
}

std::string show(const Domain& d) {
  const std::string word = d.drawn ? " from " : " in ";
  switch (d.kind) {
    case Domain::Kind::none:
      return {};
    case Domain::Kind::range:
      return word + (d.open ? "(" + comma(d.values) + ")" : "[" + comma(d.values) + "]");
    case Domain::Kind::set:
      return word + "{" + comma(d.values) + "}";
  }
  return {};
}

std::string show(const Dim& d) {
  if (d.ref.name.empty()) return print(d.extent[0]);
  return (d.broadcast ? "~" : "") + show(d.ref) + (d.extent.empty() ? "" : " = " + print(d.extent[0]));
}

std::string show_kind(const AttrDecl& a) {
  if (!a.kind_written) return {};
  switch (a.kind) {
    case AttrDecl::Kind::integer:
      return ": int";
    case AttrDecl::Kind::real:
      return ": real";
    case AttrDecl::Kind::string:
      return ": string";
    case AttrDecl::Kind::type:
      return ": type";
    case AttrDecl::Kind::at:
      return ": at " + a.index + (a.index_pack ? "..." : "");
    case AttrDecl::Kind::axes:
      return ": axes of " + a.index;
    case AttrDecl::Kind::new_axes:
      return ": new axes of " + a.index;
  }
  return {};
}

void show(const std::vector<Statement>& body, const std::string& indent, std::string& out) {
  for (const Statement& s : body) {
    out += indent;
    switch (s.kind) {
      case Statement::Kind::require:
        out += "require " + print(s.value);
        break;
      case Statement::Kind::let:
        out += fmt::format("let {}{} = {}", s.name, s.pack ? "..." : "", print(s.value));
        break;
      case Statement::Kind::assign:
        out += fmt::format("{}{} = {}", print(s.target), s.type.empty() ? "" : ": " + show(s.type), print(s.value));
        break;
      case Statement::Kind::seq: {
        const bool forward = s.value.kind == NodeKind::integer && s.value.integer == 1;
        out += fmt::format("seq {}{} {{\n", show(s.vars), forward ? "" : " by " + show(s.value, kUnary));
        show(s.body, indent + "  ", out);
        out += indent + "}";
        break;
      }
    }
    out += "\n";
  }
}

template <class T>
std::string joined(const std::vector<T>& items) {
  std::string s;
  for (const T& i : items) s += (s.empty() ? "" : ", ") + print(i);
  return s;
}

}  // namespace

std::string print(const Node& n) { return show(n, kLoosest); }

std::string print(const OperandDecl& o) {
  std::string dims;
  for (const Dim& d : o.dims) dims += (dims.empty() ? "" : ", ") + show(d);
  return fmt::format("{}{}[{}]{}{}{}", o.name, o.variadic ? "..." : "", dims, o.type.empty() ? "" : ": " + show(o.type),
                     o.optional ? "?" : "", show(o.domain));
}

std::string print(const AttrDecl& a) {
  const bool dots = a.list && a.kind != AttrDecl::Kind::axes && a.kind != AttrDecl::Kind::new_axes;
  return fmt::format("{}{}{}{}{}{}", a.name, a.along.empty() ? "" : "[" + a.along + "]", dots ? "..." : "",
                     show_kind(a), show(a.domain), a.initial.empty() ? "" : " = " + print(a.initial[0]));
}

std::string print(const RecordAst& r) {
  std::string out = fmt::format("op {}({}{}) -> {}", r.name, joined(r.operands),
                                r.attributes.empty() ? "" : "; " + joined(r.attributes), joined(r.results));
  if (r.is_extern) out += " extern";
  if (r.is_extern && r.body.empty()) return out + "\n";
  out += " {\n";
  show(r.body, "  ", out);
  return out + "}\n";
}

}  // namespace dlc::detail
