#include "core/ops/statements.h"

#include <fmt/format.h>

#include <algorithm>

#include "dlc/kernel/names.h"

namespace dlc::detail {

Result<Val> stored(Val v, DType t, const std::string& tensor, const Symbols& s, Pos pos) {
  if (v->kind == ValKind::undef) return s.fail_text(pos, fmt::format("the value of `{}` is undefined", tensor));
  const DType c = compute_type(t);
  if (v->type.is_float() && !c.is_float() && v->kind != ValKind::real)
    return s.fail_text(pos, fmt::format("`{}` is {} and its value is {}", tensor, to_string(t), to_string(v->type)),
                       "say how it is converted: cast(x, T) truncates, sat(x, T) saturates");
  return val::convert(c, std::move(v));
}

Result<> StatementBuilder::build(const std::vector<Statement>& body) {
  const Scope outermost;
  DLC_CHECK(declare(body, outermost));
  DLC_TRY(k_.body, emit(body, outermost));
  return {};
}

namespace {

// `q < 4` in a target declares a local index.
bool is_local(const Node& n) {
  return n.kind == NodeKind::binary && n.binary_op() == BinaryOp::lt && n.args[0].kind == NodeKind::name;
}

}  // namespace

// The positions an index, a pack or a local index of a target stands for; none for any other expression.
Result<std::optional<std::vector<Element>>> StatementBuilder::declared(const Node& n) {
  if (is_local(n)) {
    DLC_TRY(s_.extents[n.args[0].text], eval_.extent(n.args[1], {}));
    return std::vector<Element>{{false, n.args[0].text}};
  }
  const Node& inner = n.kind == NodeKind::pack ? n.args[0] : n;
  const bool index = inner.kind == NodeKind::name && s_.extents.contains(inner.text) && !s_.lets.contains(inner.text);
  const bool pack = (inner.kind == NodeKind::name || inner.kind == NodeKind::read) && s_.is_pack(inner.text);
  if (!index && !pack) return std::nullopt;
  if (pack && n.kind != NodeKind::pack)
    return s_.fail_text(n.pos, fmt::format("`{}` is a pack; write {}...", print(n), print(n)));
  DLC_TRY(auto elements, s_.elements(index_ref(n)));
  for (const Element& e : elements)
    if (!e.unit && !s_.extents.contains(e.name))
      return s_.fail_text(n.pos, fmt::format("the extent of `{}` is not known", print(n)));
  return elements;
}

// First every index declares its loop, then the brackets are evaluated over all of them.
Result<StatementBuilder::Target> StatementBuilder::target(const Statement& st, const Scope& outer) {
  Target t;
  t.scope.outer = &outer;
  std::vector<std::optional<std::vector<Element>>> places;
  for (const Node& n : st.target.args) {
    DLC_TRY(auto elements, declared(n));
    for (const Element& e : elements.value_or(std::vector<Element>{})) {
      if (e.unit || t.scope.find(e.name)) continue;
      const std::string var = eval_.fresh(e.name);
      t.scope.loops.emplace(e.name, Expr::symbol(var));
      t.loops.push_back({var, s_.extents.find(e.name)->second});
    }
    places.push_back(std::move(elements));
  }
  Env env;
  env.scope = &t.scope;
  for (size_t i = 0; i < places.size(); ++i) {
    const Node& n = st.target.args[i];
    if (places[i]) {
      for (const Element& e : *places[i]) {
        t.indices.push_back(e.unit ? val::integer(0) : val::index(*t.scope.find(e.name)));
        t.extents.push_back(e.unit ? Expr(1) : s_.extents.find(e.name)->second);
      }
      continue;
    }
    DLC_TRY(auto values, eval_.arguments({n}, env));
    for (Val& v : values) {
      if (v->type != kS64)
        return s_.fail_text(n.pos,
                            fmt::format("index `{}` of `{}` is {}", print(n), st.target.text, to_string(v->type)),
                            "write cast(..., s64)");
      t.indices.push_back(std::move(v));
    }
  }
  return t;
}

Result<> StatementBuilder::declare(const std::vector<Statement>& body, const Scope& outer) {
  for (const Statement& st : body) {
    eval_.used.clear();
    if (st.kind == Statement::Kind::seq) {
      Scope scope;
      scope.outer = &outer;
      DLC_CHECK(eval_.loops(st.vars, {}, scope));
      DLC_CHECK(declare(st.body, scope));
      continue;
    }
    if (st.kind != Statement::Kind::assign) continue;
    const std::string& name = st.target.text;
    if (const auto it = s_.tensors.find(name); it != s_.tensors.end()) {
      // A later statement on the same tensor may declare local indices too.
      for (const Node& n : st.target.args)
        if (is_local(n)) DLC_CHECK(declared(n));
      continue;
    }
    DLC_TRY(Target t, target(st, outer));
    if (t.extents.size() != t.indices.size())
      return s_.fail_text(st.pos,
                          fmt::format("the first statement on `{}` declares its dims and takes plain indices", name));
    KernelTensor stage;
    stage.name = name;
    stage.shape = t.extents;
    TensorName info;
    info.index = static_cast<int>(k_.tensors.size());
    info.unit.resize(t.extents.size());
    info.typed = !st.type.empty();
    if (info.typed) {
      DLC_TRY(info.type, s_.type(st.type));
      stage.dtype = info.type;
    }
    s_.tensors[name] = info;
    k_.tensors.push_back(std::move(stage));
  }
  return {};
}

Result<int> StatementBuilder::seq_step(const Statement& st) {
  DLC_TRY(const Expr step, eval_.extent(st.value, {}));
  if (!step.is(1) && !step.is(-1)) return s_.fail_text(st.pos, "a seq runs by 1 or -1");
  return step.is(1) ? 1 : -1;
}

Result<std::vector<Stmt>> StatementBuilder::emit(const std::vector<Statement>& body, const Scope& outer) {
  std::vector<Stmt> out;
  for (const Statement& st : body) {
    eval_.used.clear();
    for (const Scope* s = &outer; s; s = s->outer)
      for (const auto& [name, e] : s->loops) eval_.used.insert(std::string(*e.as_symbol()));
    if (st.kind == Statement::Kind::assign) {
      DLC_TRY(Stmt s, emit_assign(st, outer));
      out.push_back(std::move(s));
    } else if (st.kind == Statement::Kind::seq) {
      Stmt s;
      s.kind = Stmt::Kind::seq;
      Scope scope;
      scope.outer = &outer;
      DLC_TRY(s.step, seq_step(st));
      DLC_TRY(s.loops, eval_.loops(st.vars, {}, scope));
      DLC_TRY(s.body, emit(st.body, scope));
      if (s.loops.empty()) {  // a pack of length 0: the body runs once
        for (Stmt& inner : s.body) out.push_back(std::move(inner));
      } else {
        out.push_back(std::move(s));
      }
    }
  }
  return out;
}

namespace {

// True when v has a value at every point of the loops: it reads operands alone, and within their bounds.
bool always_defined(const Val& v, const Kernel& k, const Ranges& ranges) {
  switch (v->kind) {
    case ValKind::integer:
    case ValKind::real:
      return true;
    case ValKind::index:
      return !may_be_undefined(v);
    case ValKind::read: {
      const KernelTensor& t = k.tensors[static_cast<size_t>(v->tensor)];
      if (t.role != Role::input && t.role != Role::constant) return false;
      for (size_t i = 0; i < v->args.size(); ++i) {
        const auto e = val::as_expr(v->args[i]);
        if (!e || !always_defined(v->args[i], k, ranges)) return false;
        if (!provably_le(0, *e, ranges) || !provably_lt(*e, t.shape[i], ranges)) return false;
      }
      return true;
    }
    case ValKind::binary: {
      const BinaryOp op = v->binary_op();
      if (op == BinaryOp::floor_div || op == BinaryOp::mod || op == BinaryOp::shl || op == BinaryOp::shr) return false;
      break;
    }
    case ValKind::call:
      if (v->fn() == Fn::tdiv || v->fn() == Fn::fmod) return false;
      break;
    case ValKind::unary:
    case ValKind::cast:
    case ValKind::select:
      break;
    default:
      return false;
  }
  return std::ranges::all_of(v->args, [&](const Val& a) { return always_defined(a, k, ranges); });
}

}  // namespace

// Within the ranges of all loops of the statement, whose names are unique in it: index expressions become simpler and
// a `?:` goes whose left side is always defined (an optional operand that is there, a convolution without padding).
void StatementBuilder::simplify_statement(Stmt& s, const Scope& outer) const {
  Ranges ranges = s_.ranges;
  for (const Scope* o = &outer; o; o = o->outer)
    for (const auto& [name, loop] : o->loops)
      add_loop_ranges({{std::string(*loop.as_symbol()), s_.extents.find(name)->second}}, ranges);
  add_loop_ranges(s.loops, ranges);
  walk(s.value, [&](const ValNode& n) {
    if (n.kind == ValKind::reduce) add_loop_ranges(n.loops, ranges);
  });
  auto simplified = [&](const Val& v) -> Val {
    if (v->kind == ValKind::index) return val::index(simplify(v->index, ranges));
    if (v->kind == ValKind::orelse && always_defined(v->args[0], k_, ranges)) return v->args[0];
    return nullptr;
  };
  s.value = rewrite(s.value, simplified);
  for (Val& i : s.indices) i = rewrite(i, simplified);
}

namespace {

bool is_empty(const Loop& l) { return l.extent.is(0); }

// A value for a statement that never runs: an extent of 0 makes index expressions undefined (x // 0) that no one asks.
Val never_stored(DType t) {
  const DType c = compute_type(t);
  return c.is_float() ? val::real(0, c) : c.is_bool() ? val::boolean(false) : val::integer(0, c);
}

}  // namespace

bool StatementBuilder::never_runs(const Stmt& s, const Scope& outer) const {
  for (const Scope* o = &outer; o; o = o->outer)
    for (const auto& [name, loop] : o->loops)
      if (s_.extents.find(name)->second.is(0)) return true;
  return std::ranges::any_of(s.loops, is_empty);
}

Result<Stmt> StatementBuilder::emit_assign(const Statement& st, const Scope& outer) {
  const std::string& name = st.target.text;
  const auto it = s_.tensors.find(name);
  if (it == s_.tensors.end() || it->second.index < 0)
    return s_.fail_text(st.pos, fmt::format("`{}` cannot be written", name));
  DLC_TRY(Target t, target(st, outer));
  if (t.indices.size() != it->second.unit.size())
    return s_.fail_text(st.pos, fmt::format("`{}` has {} dims and is written with {} indices", name,
                                            it->second.unit.size(), t.indices.size()));
  Env env;
  env.scope = &t.scope;
  DLC_TRY(Val v, eval_.number(st.value, env));
  DLC_CHECK(eval_.check_tree(v, st.pos));
  KernelTensor& tensor = k_.tensors[static_cast<size_t>(it->second.index)];
  if (tensor.role == Role::input || tensor.role == Role::constant)
    return s_.fail_text(st.pos, fmt::format("operand `{}` cannot be written", name));
  if (!it->second.typed) {  // the stage keeps what it is computed in
    tensor.dtype = it->second.type = v->type;
    it->second.typed = true;
  }
  Stmt s;
  s.tensor = it->second.index;
  s.loops = std::move(t.loops);
  if (v->kind == ValKind::undef && never_runs(s, outer)) v = never_stored(tensor.dtype);
  DLC_TRY(s.value, stored(v, tensor.dtype, name, s_, st.pos));
  s.indices = std::move(t.indices);
  simplify_statement(s, outer);
  return s;
}

}  // namespace dlc::detail
