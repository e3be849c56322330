#include "core/ops/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "dlc/kernel/names.h"

namespace dlc::detail {
namespace {

constexpr std::array<std::string_view, 4> kConstants{"inf", "undef", "true", "false"};

bool is_constant(std::string_view n) { return std::find(kConstants.begin(), kConstants.end(), n) != kConstants.end(); }

class Checker {
 public:
  Checker(const DefTable& defs, const std::string& file) : defs_(defs), file_(file) {}

  Result<> run(const RecordAst& r) {
    for (const OperandDecl& o : r.operands) DLC_CHECK(declare_operand(o, true));
    for (const OperandDecl& o : r.results) DLC_CHECK(declare_operand(o, false));
    for (const AttrDecl& a : r.attributes) {
      DLC_CHECK(declare(a.name, "attribute", a.pos));
      if (a.kind == AttrDecl::Kind::type) types_.insert(a.name);
    }
    // Stages and indices are declared all through the body, and lets see the names of where they are used.
    for (const Statement& s : r.body) DLC_CHECK(declare_statement(s));
    for (const OperandDecl& o : r.operands) DLC_CHECK(operand(o));
    for (const OperandDecl& o : r.results) DLC_CHECK(operand(o));
    for (const AttrDecl& a : r.attributes) DLC_CHECK(attribute(a));
    for (const Statement& s : r.body) DLC_CHECK(statement(s));
    if (r.is_extern) return {};
    for (const OperandDecl& o : r.results)
      if (!written_.contains(o.name)) return error(o.pos, fmt::format("result `{}` is never written", o.name));
    return {};
  }

  Result<> run(const DefAst& d) {
    for (const Param& p : d.params) {
      DLC_CHECK(declare(p.name, "parameter", p.pos));
      if (!p.type.empty()) DLC_CHECK(known_type(p.type));
    }
    if (!d.result.empty()) DLC_CHECK(known_type(d.result));
    in_def_ = true;
    return expr(d.body);
  }

 private:
  std::unexpected<Error> error(Pos pos, std::string message, std::string hint = {}) const {
    return fail(loc_of(file_, pos), std::move(message), std::move(hint));
  }
  std::unexpected<Error> unknown(Pos pos, const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : names_) names.push_back(entry.first);
    for (const auto& entry : defs_.defs) names.push_back(entry.first);
    names.insert(names.end(), types_.begin(), types_.end());
    const std::string near = nearest(name, names);
    return error(pos, fmt::format("`{}` is not declared", name), near.empty() ? "" : "did you mean " + near + "?");
  }

  Result<> declare(const std::string& name, const std::string& what, Pos pos) {
    if (parse_dtype(name) || is_constant(name) || (what == "tensor" && find_reduce(name)))
      return error(pos, fmt::format("`{}` has a meaning of its own and cannot be {} {}", name,
                                    what == "attribute" || what == "index" ? "an" : "a", what));
    const auto [it, is_new] = names_.emplace(name, what);
    if (!is_new) return error(pos, fmt::format("`{}` is declared twice, as {} and {}", name, it->second, what));
    return {};
  }
  Result<> declare_index(const std::string& name, Pos pos) {
    const auto it = names_.find(name);
    if (it == names_.end()) return declare(name, "index", pos);
    if (it->second != "index")
      return error(pos, fmt::format("`{}` is declared twice, as {} and index", name, it->second));
    return {};
  }
  bool is(const std::string& name, std::string_view what) const {
    const auto it = names_.find(name);
    return it != names_.end() && it->second == what;
  }

  // ---- declarations

  Result<> declare_operand(const OperandDecl& o, bool operand) {
    DLC_CHECK(declare(o.name, "tensor", o.pos));
    const std::string type = o.type.empty() ? "T" : o.type.name;
    if (!parse_dtype(type) && operand) types_.insert(type);
    for (const Dim& d : o.dims) {
      if (d.ref.name.empty()) continue;
      if (operand && !d.extent.empty()) return error(d.ref.pos, "only results give extents");
      DLC_CHECK(declare_index(d.ref.name, d.ref.pos));
      signature_.insert(d.ref.name);
    }
    return {};
  }

  Result<> declare_vars(const std::vector<RangeVar>& vars) {
    for (const RangeVar& v : vars) {
      if (v.extent.empty()) continue;
      if (signature_.contains(v.ref.name))
        return error(v.ref.pos, fmt::format("`{}` has an extent already", v.ref.name),
                     "give the local index a new name");
      DLC_CHECK(declare_index(v.ref.name, v.ref.pos));
    }
    return {};
  }

  Result<> declare_expr(const Node& n) {
    DLC_CHECK(declare_vars(n.vars));
    for (const Node& a : n.args) DLC_CHECK(declare_expr(a));
    return {};
  }

  Result<> declare_statement(const Statement& s) {
    DLC_CHECK(declare_expr(s.value));
    DLC_CHECK(declare_vars(s.vars));
    if (s.kind == Statement::Kind::let) return declare(s.name, "let", s.pos);
    if (s.kind == Statement::Kind::assign) {
      for (const Node& n : s.target.args) {
        if (n.kind != NodeKind::binary || n.binary_op() != BinaryOp::lt || n.args[0].kind != NodeKind::name) continue;
        if (signature_.contains(n.args[0].text))
          return error(n.pos, fmt::format("`{}` has an extent already", n.args[0].text));
        DLC_CHECK(declare_index(n.args[0].text, n.pos));
      }
      written_.insert(s.target.text);
      if (!names_.contains(s.target.text)) DLC_CHECK(declare(s.target.text, "tensor", s.pos));
    }
    for (const Statement& b : s.body) DLC_CHECK(declare_statement(b));
    return {};
  }

  // ---- uses

  Result<> known_type(const TypeRef& t) const {
    if (parse_dtype(t.name) || types_.contains(t.name)) return {};
    return error(t.pos, fmt::format("`{}` is not a type", t.name), "types of a record come from its operands");
  }

  Result<> domain(const Domain& d) {
    for (const Node& n : d.values) DLC_CHECK(expr(n));
    return {};
  }

  Result<> reference(const IndexRef& r) {
    if (!is(r.name, "index")) return unknown(r.pos, r.name);
    for (const std::string* a : {&r.select, &r.keep})
      if (!a->empty() && !is(*a, "attribute")) return unknown(r.pos, *a);
    return {};
  }

  Result<> operand(const OperandDecl& o) {
    const TypeRef t = o.type.empty() ? TypeRef{"T", false, o.pos} : o.type;
    DLC_CHECK(known_type(t));
    for (const Dim& d : o.dims) {
      if (!d.ref.name.empty()) DLC_CHECK(reference(d.ref));
      for (const Node& e : d.extent) DLC_CHECK(expr(e));
    }
    return domain(o.domain);
  }

  Result<> attribute(const AttrDecl& a) {
    if (!a.along.empty() && !is(a.along, "index")) return unknown(a.pos, a.along);
    if (!a.index.empty() && !is(a.index, "index")) return unknown(a.pos, a.index);
    if (a.kind == AttrDecl::Kind::at && !a.initial.empty() && a.initial[0].kind != NodeKind::integer)
      return error(a.pos, "a position's default is an integer");
    if (a.kind != AttrDecl::Kind::type)
      for (const Node& n : a.initial) DLC_CHECK(expr(n));
    for (const Node& n : a.initial)
      if (a.kind == AttrDecl::Kind::type) DLC_CHECK(known_type({n.text, false, n.pos}));
    return domain(a.domain);
  }

  Result<> vars(const std::vector<RangeVar>& v) {
    for (const RangeVar& r : v) {
      DLC_CHECK(reference(r.ref));
      for (const Node& e : r.extent) DLC_CHECK(expr(e));
    }
    return {};
  }

  Result<> statement(const Statement& s) {
    if (s.kind == Statement::Kind::assign) {
      if (!is(s.target.text, "tensor")) return error(s.pos, fmt::format("`{}` is not a tensor", s.target.text));
      for (const Node& n : s.target.args) DLC_CHECK(expr(n));
      if (!s.type.empty()) DLC_CHECK(known_type(s.type));
    }
    DLC_CHECK(vars(s.vars));
    in_require_ = s.kind == Statement::Kind::require;
    DLC_CHECK(expr(s.value));
    in_require_ = false;
    for (const Statement& b : s.body) DLC_CHECK(statement(b));
    return {};
  }

  Result<> expr(const Node& n) {
    switch (n.kind) {
      case NodeKind::name: {
        const DefAst* d = defs_.find(n.text);
        if (names_.contains(n.text) || types_.contains(n.text) || parse_dtype(n.text) || is_constant(n.text) ||
            (d && d->constant))
          return {};
        return unknown(n.pos, n.text);
      }
      case NodeKind::read:
        if (in_def_) return error(n.pos, "a def has no tensors; pass the value as an argument");
        if (!names_.contains(n.text)) return unknown(n.pos, n.text);
        if (in_require_ && is(n.text, "tensor")) return error(n.pos, "require sees shapes and attributes, no elements");
        break;
      case NodeKind::call:
        if (!is_builtin_function(n.text) && !defs_.find(n.text)) return unknown_function(n);
        break;
      case NodeKind::reduce:
        if (in_def_) return error(n.pos, "a def has no loops");
        DLC_CHECK(vars(n.vars));
        if (!n.type.empty()) DLC_CHECK(known_type(n.type));
        break;
      default:
        break;
    }
    for (const Node& a : n.args) DLC_CHECK(expr(a));
    return {};
  }

  Result<> unknown_function(const Node& n) const {
    std::vector<std::string> names = builtin_functions();
    for (const auto& entry : defs_.defs) names.push_back(entry.first);
    const std::string near = nearest(n.text, names);
    return error(n.pos, fmt::format("`{}` is not a function", n.text),
                 near.empty() ? "" : "did you mean " + near + "?");
  }

  const DefTable& defs_;
  const std::string& file_;
  std::map<std::string, std::string> names_;  // name -> what it is
  std::set<std::string> types_, signature_, written_;
  bool in_def_ = false, in_require_ = false;
};

}  // namespace

void collect_lets(const Statement& s, std::map<std::string, const Statement*, std::less<>>& lets) {
  if (s.kind == Statement::Kind::let) lets.emplace(s.name, &s);
  for (const Statement& b : s.body) collect_lets(b, lets);
}

Result<> check(const RecordAst& r, const DefTable& defs) { return Checker(defs, r.file).run(r); }
Result<> check(const DefAst& d, const DefTable& defs) { return Checker(defs, d.file).run(d); }

namespace {

using Calls = std::map<std::string, Pos>;  // and where

void called(const Node& n, Calls& out) {
  if (n.kind == NodeKind::call || n.kind == NodeKind::name) out.emplace(n.text, n.pos);
  for (const Node& a : n.args) called(a, out);
  for (const RangeVar& v : n.vars)
    for (const Node& e : v.extent) called(e, out);
}

}  // namespace

Result<> check_cycles(const std::vector<std::string>& names, const DefTable& defs) {
  std::map<std::string, Calls> open;  // by def: what it calls that is open, too
  for (const std::string& name : names) {
    Calls& calls = open[name];
    called(defs.find(name)->body, calls);
    for (const Param& p : defs.find(name)->params) calls.erase(p.name);
  }
  std::map<std::string, std::vector<std::string>> callers;
  std::vector<std::string> done;
  for (auto& [name, calls] : open) {
    std::erase_if(calls, [&](const auto& c) { return !open.contains(c.first); });
    for (const auto& [c, pos] : calls) callers[c].push_back(name);
    if (calls.empty()) done.push_back(name);
  }
  while (!done.empty()) {
    const std::string name = std::move(done.back());
    done.pop_back();
    open.erase(name);
    for (const std::string& caller : callers[name]) {
      const auto it = open.find(caller);
      if (it != open.end() && it->second.erase(name) > 0 && it->second.empty()) done.push_back(caller);
    }
  }
  if (open.empty()) return {};
  // Whatever is left calls something that is left, so this walk comes back.
  std::vector<std::string> way{open.begin()->first};
  while (std::ranges::count(way, way.back()) == 1) way.push_back(open.at(way.back()).begin()->first);
  way.erase(way.begin(), std::ranges::find(way, way.back()));
  const DefAst& d = *defs.find(way.front());
  std::string text = fmt::format("`{}` calls itself", d.name);
  for (size_t i = 1; i + 1 < way.size() && i <= 8; ++i)
    text += fmt::format("{}`{}`", i > 1 ? ", " : ", by way of ", way[i]);
  return fail(loc_of(d.file, open.at(d.name).at(way[1])), std::move(text), "a def cannot be recursive");
}

}  // namespace dlc::detail
