// Statements of the op language over declared memories: what a hardware instruction does.
//
// Every declared loop is in force in every statement. A statement runs over the loops that are free in it; a loop that
// is free in the value alone would store many values in one element, which is an error.
#include <fmt/format.h>

#include <algorithm>

#include "core/ops/check.h"
#include "core/ops/parser.h"
#include "core/ops/statements.h"
#include "dlc/ops/record.h"

namespace dlc {
namespace detail {
namespace {

class FragmentBuilder {
 public:
  FragmentBuilder(const FragmentContext& context, const Loc& where) : context_(context), where_(where), eval_(s_) {}

  Result<Kernel> build(std::string_view text) {
    DLC_CHECK(define_defs());
    DLC_CHECK(declare());
    const Pos start{std::max(where_.line, 1), std::max(where_.column, 1)};
    DLC_TRY(const auto statements, parse_statements(text, where_.file, start));
    DLC_CHECK(check_statements(statements));
    DLC_TRY(k_.body, emit(statements, loops_));
    if (k_.body.empty()) return fail(where_, "no statement");
    operands();
    return std::move(k_);
  }

 private:
  Result<> define_defs() {
    DLC_TRY(ParsedFile parsed, parse_ops(context_.defs, where_.file));
    if (!parsed.records.empty()) return fail(where_, "an op among the defs");
    for (DefAst& d : parsed.defs) defs_.defs.insert_or_assign(d.name, std::move(d));
    std::vector<std::string> names;
    for (const auto& [name, d] : defs_.defs) {
      DLC_CHECK(check(d, defs_));
      names.push_back(name);
    }
    DLC_CHECK(check_cycles(names, defs_));
    return {};
  }

  Result<> declare() {
    s_.owner = "fragment";
    s_.file = where_.file;
    s_.where = where_;
    s_.fragment = true;
    s_.defs = &defs_;
    k_.tensors = context_.tensors;
    // A memory and a field may share a name: the one is always followed by brackets.
    std::set<std::string> names;
    auto once = [&](const std::string& n) -> Result<> {
      if (names.insert(n).second) return {};
      return fail(where_, fmt::format("`{}` is declared twice", n));
    };
    for (size_t i = 0; i < k_.tensors.size(); ++i) {
      const KernelTensor& t = k_.tensors[i];
      if (s_.tensors.contains(t.name)) return fail(where_, fmt::format("`{}` is declared twice", t.name));
      TensorName name;
      name.index = static_cast<int>(i);
      name.type = t.dtype;
      name.unit.resize(t.shape.size());
      s_.tensors[t.name] = name;
    }
    for (const std::string& n : context_.symbols) {
      DLC_CHECK(once(n));
      s_.values.emplace(n, val::index(Expr::symbol(n)));
      s_.reserved.insert(n);
    }
    for (const Loop& l : context_.loops) {
      DLC_CHECK(once(l.var));
      s_.extents[l.var] = l.extent;
      loops_.loops.emplace(l.var, Expr::symbol(l.var));
      for (const std::string& n : l.extent.symbols()) s_.reserved.insert(n);
    }
    return {};
  }

  // Local loops of reductions are declared where they stand; everything else must be known.
  Result<> check_statements(const std::vector<Statement>& statements) {
    for (const Statement& st : statements) {
      if (st.kind == Statement::Kind::require) return s_.fail_text(st.pos, "require has no meaning here");
      if (st.kind == Statement::Kind::assign && !s_.tensors.contains(st.target.text))
        return unknown(st.pos, st.target.text, s_.known_tensors());
      DLC_CHECK(check_locals(st.value));
      DLC_CHECK(check_statements(st.body));
    }
    return {};
  }
  Result<> check_locals(const Node& n) {
    for (const RangeVar& v : n.vars)
      if (!v.extent.empty() && (loops_.loops.contains(v.ref.name) || s_.values.contains(v.ref.name)))
        return s_.fail_text(v.ref.pos, fmt::format("`{}` is declared already", v.ref.name),
                            "give the local index a new name");
    for (const Node& a : n.args) DLC_CHECK(check_locals(a));
    return {};
  }
  std::unexpected<Error> unknown(Pos pos, const std::string& name, const std::vector<std::string>& candidates) const {
    const std::string near = nearest(name, candidates);
    return s_.fail_text(pos, fmt::format("`{}` is not declared", name),
                        near.empty() ? "" : "did you mean " + near + "?");
  }

  Result<std::vector<Stmt>> emit(const std::vector<Statement>& statements, const Scope& scope) {
    std::vector<Stmt> out;
    for (const Statement& st : statements) {
      eval_.used.clear();
      Env env;
      env.scope = &scope;
      if (st.kind == Statement::Kind::let) {
        DLC_TRY(Value v, eval_.value(st.value, env));  // a later let of the same name takes its place
        if (const Val* x = std::get_if<Val>(&v)) DLC_CHECK(eval_.check_tree(*x, st.pos));
        s_.values.insert_or_assign(st.name, std::move(v));
      } else if (st.kind == Statement::Kind::assign) {
        DLC_TRY(Stmt s, assign(st, scope, env));
        out.push_back(std::move(s));
      } else {
        DLC_TRY(Stmt s, seq(st, scope));
        out.push_back(std::move(s));
      }
    }
    return out;
  }

  // Free loop variables of a value, bound by no reduction within it.
  static void free_symbols(const Val& v, std::set<std::string>& out) {
    if (v->kind == ValKind::index)
      for (const std::string& n : v->index.symbols()) out.insert(n);
    std::set<std::string> inner;
    for (const Val& a : v->args) free_symbols(a, inner);
    for (const Loop& l : v->loops) inner.erase(l.var);
    out.merge(inner);
  }

  Result<Stmt> assign(const Statement& st, const Scope& scope, const Env& env) {
    const TensorName& t = s_.tensors.find(st.target.text)->second;
    Stmt s;
    s.tensor = t.index;
    DLC_TRY(s.indices, eval_.arguments(st.target.args, env));
    if (s.indices.size() != t.unit.size())
      return s_.fail_text(st.pos, fmt::format("`{}` has {} dims and is written with {} indices", st.target.text,
                                              t.unit.size(), s.indices.size()));
    std::set<std::string> in_target, in_value;
    for (size_t i = 0; i < s.indices.size(); ++i) {
      if (s.indices[i]->type != kS64)
        return s_.fail_text(st.target.args[i].pos,
                            fmt::format("an index of `{}` is {}", st.target.text, to_string(s.indices[i]->type)));
      free_symbols(s.indices[i], in_target);
    }
    eval_.used.insert(in_target.begin(), in_target.end());  // a reduction over one of these takes another name
    DLC_TRY(Val v, eval_.number(st.value, env));
    DLC_CHECK(eval_.check_tree(v, st.pos));
    DLC_TRY(s.value, stored(v, t.type, st.target.text, s_, st.pos));
    free_symbols(s.value, in_value);
    for (const Loop& l : context_.loops) {
      const bool bound_by_seq = sequential_.contains(l.var);
      if (in_target.contains(l.var) && !bound_by_seq) s.loops.push_back(l);
      if (in_value.contains(l.var) && !in_target.contains(l.var) && !bound_by_seq && scope.find(l.var))
        return s_.fail_text(
            st.pos, fmt::format("loop `{}` is in the value of `{}` but not in its index", l.var, st.target.text),
            "reduce over it (sum[" + l.var + "] ...), or run it in order (seq " + l.var + ": ...)");
    }
    return s;
  }

  Result<Stmt> seq(const Statement& st, const Scope& scope) {
    Stmt s;
    s.kind = Stmt::Kind::seq;
    DLC_TRY(const Expr step, eval_.extent(st.value, {}));
    if (!step.is(1) && !step.is(-1)) return s_.fail_text(st.pos, "a seq runs by 1 or -1");
    s.step = step.is(1) ? 1 : -1;
    for (const RangeVar& v : st.vars) {
      const auto l = std::find_if(context_.loops.begin(), context_.loops.end(),
                                  [&](const Loop& x) { return x.var == v.ref.name; });
      if (l == context_.loops.end() || !v.extent.empty()) return unknown(v.ref.pos, v.ref.name, s_.known_names());
      if (!sequential_.insert(l->var).second)
        return s_.fail_text(v.ref.pos, fmt::format("loop `{}` runs already", l->var));
      s.loops.push_back(*l);
    }
    DLC_TRY(s.body, emit(st.body, scope));
    for (const Loop& l : s.loops) sequential_.erase(l.var);
    return s;
  }

  // What is read before anything else is an input; what is written is an output.
  void operands() {
    std::set<int> read, written;
    walk(k_.body, [&](const Stmt& s) {
      if (s.kind != Stmt::Kind::assign) return;
      written.insert(s.tensor);
      auto visit = [&](const ValNode& n) {
        if (n.kind == ValKind::read) read.insert(n.tensor);
      };
      walk(s.value, visit);
      for (const Val& i : s.indices) walk(i, visit);
    });
    k_.inputs.assign(read.begin(), read.end());
    k_.outputs.assign(written.begin(), written.end());
  }

  const FragmentContext& context_;
  const Loc& where_;
  DefTable defs_;
  Symbols s_;
  Kernel k_;
  Evaluator eval_;
  Scope loops_;
  std::set<std::string> sequential_;
};

}  // namespace
}  // namespace detail

Result<Kernel> parse_fragment(std::string_view text, const FragmentContext& context, const Loc& where) {
  return detail::FragmentBuilder(context, where).build(text);
}

}  // namespace dlc
