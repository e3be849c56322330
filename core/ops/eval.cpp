#include "core/ops/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dlc/kernel/names.h"

namespace dlc::detail {

Result<Value> Evaluator::checked(Val v, Pos pos) const {
  if (std::string e = type_error(*v); !e.empty()) return s_.fail_text(pos, e);
  return Value(std::move(v));
}

namespace {

constexpr int kMaxDepth = 1000, kMaxSteps = 1 << 20, kMaxNodes = 1 << 17;

bool fits(const Val& v, int depth, int& nodes) {
  if (depth == 0 || --nodes < 0) return false;
  return std::ranges::all_of(v->args, [&](const Val& a) { return fits(a, depth - 1, nodes); });
}

}  // namespace

Result<> Evaluator::check_tree(const Val& v, Pos pos) const {
  int nodes = kMaxNodes;
  if (fits(v, 2 * kMaxDepth, nodes)) return {};
  return s_.fail_text(pos, "the expression is too large once its lets and defs are expanded");
}

Result<Value> Evaluator::value(const Node& n, const Env& env) {
  if (depth_ >= kMaxDepth || steps_ >= kMaxSteps)
    return s_.fail_text(n.pos, "the expression is too large once its lets and defs are expanded");
  ++depth_;
  ++steps_;
  auto result = evaluate(n, env);
  --depth_;
  return result;
}

Result<Value> Evaluator::evaluate(const Node& n, const Env& env) {
  switch (n.kind) {
    case NodeKind::integer:
      return Value(val::integer(n.integer));
    case NodeKind::real:
      return Value(val::real(n.real));
    case NodeKind::string:
      return Value(n.text);
    case NodeKind::name:
      return name(n, env);
    case NodeKind::size:
      return size(n, env);
    case NodeKind::read:
      return read(n, env);
    case NodeKind::call:
      return call(n, env);
    case NodeKind::pack:
      return s_.fail_text(n.pos, "`...` stands only in the arguments of a call or a read");
    case NodeKind::complement:
      return s_.fail_text(n.pos, "`!` stands only in the selection of a pack");
    case NodeKind::fold:
      return fold(n, env);
    case NodeKind::branch:
      return branch(n, env);
    case NodeKind::orelse: {
      DLC_TRY(Val a, number(n.args[0], env));
      DLC_TRY(Val b, number(n.args[1], env));
      return checked(val::orelse(a, b), n.pos);
    }
    case NodeKind::neg:
    case NodeKind::logical_not:
    case NodeKind::bit_not: {
      DLC_TRY(Val a, number(n.args[0], env));
      const UnaryOp op = n.kind == NodeKind::neg           ? UnaryOp::neg
                         : n.kind == NodeKind::logical_not ? UnaryOp::logical_not
                                                           : UnaryOp::bit_not;
      return checked(val::unary(op, a), n.pos);
    }
    case NodeKind::binary:
      return binary(n, env);
    case NodeKind::reduce:
      return reduce(n, env);
  }
  return s_.fail_text(n.pos, "not an expression");
}

Result<Val> Evaluator::number(const Node& n, const Env& env) {
  DLC_TRY(Value v, value(n, env));
  if (Val* x = std::get_if<Val>(&v)) return *x;
  return s_.fail_text(n.pos, fmt::format("`{}` is a {}, not a number", print(n),
                                         std::holds_alternative<std::string>(v) ? "string" : "type"));
}

Result<Expr> Evaluator::extent(const Node& n, const Env& env) {
  Env sizes = env;
  sizes.exact = true;
  DLC_TRY(Val v, number(n, sizes));
  if (v->type.is_bool()) v = val::convert(kS64, v);
  const auto e = val::as_expr(v);
  if (!e) return s_.fail_text(n.pos, fmt::format("`{}` is not an integer known from the shapes", print(n)));
  if (!e->valid()) return s_.fail_text(n.pos, fmt::format("`{}` overflows 64 bits", print(n)));
  return simplify(*e, s_.ranges);
}

// ---- names

Result<Value> Evaluator::index(const std::string& name, const Element& e, const Env& env, Pos pos) {
  if (e.unit) return Value(val::integer(env.scope ? 0 : 1));
  if (env.scope)
    if (const Expr* loop = env.scope->find(e.name)) return Value(val::index(*loop));
  const auto it = s_.extents.find(e.name);
  if (it == s_.extents.end()) return s_.fail_text(pos, fmt::format("the extent of `{}` is not known here", name));
  if (env.scope)
    return s_.fail_text(pos, fmt::format("index `{}` is not bound here", name),
                        fmt::format("its extent is |{}|", name));
  return Value(val::index(it->second));
}

Result<Value> Evaluator::name(const Node& n, const Env& env) {
  const std::string& id = n.text;
  if (env.params)
    if (const auto it = env.params->find(id); it != env.params->end()) return it->second;
  if (id == "inf") return Value(val::real(std::numeric_limits<double>::infinity()));
  if (id == "undef") return Value(val::undef(kF32));
  if (id == "true" || id == "false") return Value(val::boolean(id == "true"));
  if (!env.params) {
    if (const auto it = s_.packs.find(id); it != s_.packs.end()) {
      if (env.pack < 0) return s_.fail_text(n.pos, fmt::format("pack `{}` is used outside `...`", id));
      if (env.pack >= it->second)
        return s_.fail_text(n.pos,
                            fmt::format("pack `{}` has {} elements; element {} is used", id, it->second, env.pack));
      return index(id, {false, flat_name(id, env.pack)}, env, n.pos);
    }
    if (env.scope)
      if (const Expr* loop = env.scope->find(id)) return Value(val::index(*loop));
    if (const auto it = s_.values.find(id); it != s_.values.end()) return it->second;
    if (const auto it = s_.lets.find(id); it != s_.lets.end()) {
      if (env.calls > kMaxNesting) return s_.fail_text(n.pos, fmt::format("`{}` is defined by itself", id));
      Env inner = env;
      ++inner.calls;
      return value(it->second->value, inner);
    }
    if (s_.attributes.contains(id)) return attribute(id, env, n.pos);
    if (s_.extents.contains(id)) return index(id, {false, id}, env, n.pos);
    if (const auto it = s_.operand_extents.find(id); it != s_.operand_extents.end()) {
      if (env.operand < 0)
        return s_.fail_text(n.pos, fmt::format("`{}` differs between operands; use it in `...`", id));
      return Value(val::index(it->second[static_cast<size_t>(env.operand)]));
    }
  }
  if (const DefAst* d = s_.defs->find(id); d && d->constant) return call_def(*d, n, env);
  if (parse_dtype(id) || s_.types.contains(id)) {
    DLC_TRY(const DType t, s_.type({id, false, n.pos}));
    return Value(t);
  }
  const std::string near = nearest(id, s_.known_names());
  return s_.fail_text(n.pos, fmt::format("`{}` is not declared", id), near.empty() ? "" : "did you mean " + near + "?");
}

Result<Value> Evaluator::attribute(const std::string& name, const Env& env, Pos pos) {
  const Attribute& a = s_.attributes.find(name)->second;
  if (a.decl->kind == AttrDecl::Kind::at) return Value(val::integer(a.axes[0]));
  if (a.selects()) {
    if (env.pack < 0 || env.pack >= static_cast<int>(a.axes.size()))
      return s_.fail_text(pos, fmt::format("attribute `{}` is a list; use it in `...` or as {}[0]", name, name));
    return Value(val::integer(a.axes[static_cast<size_t>(env.pack)]));
  }
  if (!a.given) {
    if (a.decl->initial.empty()) return s_.fail_use(fmt::format("attribute {} is required", name));
    if (env.calls > kMaxNesting)
      return s_.fail_text(pos, fmt::format("the default of `{}` is defined by itself", name));
    Env inner = env;
    inner.scope = nullptr;
    ++inner.calls;
    return value(a.decl->initial[0], inner);
  }
  if (!a.decl->list) return a.values[0];
  if (env.pack < 0) return s_.fail_text(pos, fmt::format("attribute `{}` is a list and used outside `...`", name));
  if (env.pack >= static_cast<int>(a.values.size()))
    return s_.fail_use(fmt::format("attribute {} has {} values, needs more", name, a.values.size()));
  return a.values[static_cast<size_t>(env.pack)];
}

Result<Value> Evaluator::size(const Node& n, const Env& env) {
  const IndexRef ref = index_ref(n.args[0]);
  if (const auto it = s_.variadic.find(ref.name); it != s_.variadic.end()) return Value(val::integer(it->second));
  Env shape = env;
  shape.scope = nullptr;
  if (!n.pack) return value(n.args[0], shape);
  DLC_TRY(const auto elements, s_.elements(ref));
  Expr total = 1;
  for (const Element& e : elements) {
    DLC_TRY(Value v, index(ref.name, e, shape, n.pos));
    total = total * *val::as_expr(std::get<Val>(v));
  }
  if (!total.valid()) return s_.fail_text(n.pos, fmt::format("{} overflows 64 bits", print(n)));
  return Value(val::index(total));
}

// ---- reads

Result<Value> Evaluator::read(const Node& n, const Env& env) {
  if (s_.is_pack(n.text)) {
    DLC_TRY(const auto elements, s_.elements(index_ref(n)));
    if (env.pack < 0 || env.pack >= static_cast<int>(elements.size()))
      return s_.fail_text(n.pos, fmt::format("`{}` is used outside `...`", print(n)));
    return index(n.text, elements[static_cast<size_t>(env.pack)], env, n.pos);
  }
  if (const auto it = s_.attributes.find(n.text); it != s_.attributes.end()) {
    if (n.args.size() != 1) return s_.fail_text(n.pos, fmt::format("attribute `{}` takes one index", n.text));
    Env inner = env;
    DLC_TRY(const Expr e, extent(n.args[0], env));
    inner.pack = static_cast<int>(e.constant().value_or(-1));
    return attribute(n.text, inner, n.pos);
  }
  std::string tensor = n.text;
  if (const auto it = s_.variadic.find(tensor); it != s_.variadic.end()) {
    if (env.operand < 0)
      return s_.fail_text(n.pos, fmt::format("`{}` has many operands; read it inside `...`", tensor));
    tensor = flat_name(tensor, env.operand);
  }
  const auto it = s_.tensors.find(tensor);
  if (it == s_.tensors.end() || env.params) {
    const std::string near = nearest(n.text, s_.known_tensors());
    return s_.fail_text(n.pos, fmt::format("`{}` is not a tensor here", n.text),
                        near.empty() ? "" : "did you mean " + near + "?");
  }
  return read_tensor(n, it->second, env);
}

Result<Value> Evaluator::read_tensor(const Node& n, const TensorName& t, const Env& env) {
  if (t.index < 0) return Value(val::undef(t.type));
  if (!t.typed)
    return s_.fail_text(n.pos, fmt::format("`{}` is read before its type is known", n.text),
                        fmt::format("state it where it is written: {}[...]: T = ...", n.text));
  if (!env.scope) return s_.fail_text(n.pos, fmt::format("`{}` is read where only shapes are known", n.text));
  DLC_TRY(std::vector<Val> indices, arguments(n.args, env));
  const size_t rank = t.unit.size();
  if (indices.size() != rank + t.absent)
    return s_.fail_text(
        n.pos, fmt::format("`{}` has {} dims and is read with {} indices", n.text, rank + t.absent, indices.size()));
  indices.erase(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(t.absent));
  for (size_t i = 0; i < rank; ++i) {
    if (t.unit[i]) indices[i] = val::integer(0);
    if (indices[i]->type.is_float())
      return s_.fail_text(n.pos, fmt::format("index {} of `{}` is {}", i, n.text, to_string(indices[i]->type)),
                          "write cast(..., s64)");
  }
  return checked(val::read(t.index, t.type, std::move(indices)), n.pos);
}

Result<std::vector<Value>> Evaluator::expand(const Node& inner, const Env& env) {
  PackUse use;
  collect_packs(s_, inner, use);
  std::vector<Value> out;
  Env e = env;
  if (use.variadic >= 0 && env.operand < 0) {
    for (e.operand = 0; e.operand < use.variadic; ++e.operand) {
      DLC_TRY(Value v, value(inner, e));
      out.push_back(std::move(v));
    }
    return out;
  }
  if (use.packs.empty()) return s_.fail_text(inner.pos, fmt::format("no pack in `{}...`", print(inner)));
  const int length = use.packs.begin()->second;
  for (const auto& [name, n] : use.packs)
    if (n != length)
      return s_.fail_use(fmt::format("`{}` has {} elements, but `{}` has {} (in `{}...`)", name, n,
                                     use.packs.begin()->first, length, print(inner)));
  for (e.pack = 0; e.pack < length; ++e.pack) {
    DLC_TRY(Value v, value(inner, e));
    out.push_back(std::move(v));
  }
  return out;
}

Result<std::vector<Val>> Evaluator::arguments(const std::vector<Node>& args, const Env& env) {
  std::vector<Val> out;
  for (const Node& a : args) {
    if (a.kind != NodeKind::pack) {
      DLC_TRY(Val v, number(a, env));
      out.push_back(std::move(v));
      continue;
    }
    DLC_TRY(auto values, expand(a.args[0], env));
    for (Value& v : values) {
      if (!std::holds_alternative<Val>(v)) return s_.fail_text(a.pos, fmt::format("`{}` is not a number", print(a)));
      out.push_back(std::get<Val>(std::move(v)));
    }
  }
  return out;
}

// ---- operators

// Where integers are sizes, arithmetic that leaves 64 bits is an error; values wrap.
Result<> Evaluator::check_size(BinaryOp op, const Val& a, const Val& b, const Node& n, const Env& env) const {
  if (!env.exact || (op != BinaryOp::add && op != BinaryOp::sub && op != BinaryOp::mul)) return {};
  const auto x = val::as_expr(a), y = val::as_expr(b);
  if (x && y && !(op == BinaryOp::add ? *x + *y : op == BinaryOp::sub ? *x - *y : *x * *y).valid())
    return s_.fail_text(n.pos, fmt::format("`{}` overflows 64 bits", print(n)));
  return {};
}

Result<Value> Evaluator::branch(const Node& n, const Env& env) {
  DLC_TRY(Val c, number(n.args[0], env));
  c = val::convert(kBool, c);
  if (c->kind == ValKind::integer) return value(n.args[c->integer ? 1 : 2], env);
  DLC_TRY(Val a, number(n.args[1], env));
  DLC_TRY(Val b, number(n.args[2], env));
  return checked(val::select(c, a, b), n.pos);
}

Result<Value> Evaluator::fold(const Node& n, const Env& env) {
  DLC_TRY(auto values, expand(n.args[0], env));
  std::vector<Val> items;
  for (Value& v : values) {
    if (!std::holds_alternative<Val>(v)) return s_.fail_text(n.pos, fmt::format("`{}` is not a number", print(n)));
    items.push_back(std::get<Val>(std::move(v)));
  }
  if (n.op == kFoldOrelse) {
    Val r = items.empty() ? val::undef(kF32) : items.back();
    for (size_t i = items.size(); i-- > 1;) r = val::orelse(items[i - 1], r);
    return checked(r, n.pos);
  }
  const BinaryOp op = n.binary_op();
  if (items.empty()) {
    if (op == BinaryOp::logical_and || op == BinaryOp::logical_or)
      return Value(val::boolean(op == BinaryOp::logical_and));
    return Value(val::integer(op == BinaryOp::mul ? 1 : 0));
  }
  Val r = items[0];
  for (size_t i = 1; i < items.size(); ++i) {
    DLC_CHECK(check_size(op, r, items[i], n, env));
    r = val::binary(op, r, items[i]);
  }
  return checked(r, n.pos);
}

// Comparisons of integers over dims are decided by the ranges of the dims where they can be.
Val Evaluator::compare(BinaryOp op, const Val& a, const Val& b) const {
  const Val v = val::binary(op, a, b);
  if (v->kind != ValKind::binary) return v;
  const auto x = val::as_expr(v->args[0]), y = val::as_expr(v->args[1]);
  if (!x || !y) return v;
  const Ranges& r = s_.ranges;
  auto answer = [&](bool yes, bool no) { return yes ? val::boolean(true) : no ? val::boolean(false) : v; };
  switch (op) {
    case BinaryOp::lt:
      return answer(provably_lt(*x, *y, r), provably_le(*y, *x, r));
    case BinaryOp::le:
      return answer(provably_le(*x, *y, r), provably_lt(*y, *x, r));
    case BinaryOp::gt:
      return answer(provably_lt(*y, *x, r), provably_le(*x, *y, r));
    case BinaryOp::ge:
      return answer(provably_le(*y, *x, r), provably_lt(*x, *y, r));
    case BinaryOp::eq:
      return answer(provably_eq(*x, *y, r), provably_lt(*x, *y, r) || provably_lt(*y, *x, r));
    case BinaryOp::ne:
      return answer(provably_lt(*x, *y, r) || provably_lt(*y, *x, r), provably_eq(*x, *y, r));
    default:
      return v;
  }
}

Result<Value> Evaluator::binary(const Node& n, const Env& env) {
  const BinaryOp op = n.binary_op();
  DLC_TRY(Value left, value(n.args[0], env));
  const bool logical = op == BinaryOp::logical_and || op == BinaryOp::logical_or;
  if (const Val* a = std::get_if<Val>(&left); a && logical) {  // a static left side decides alone
    const Val c = (*a)->type.is_float() ? *a : val::convert(kBool, *a);
    if (c->kind == ValKind::integer && (c->integer != 0) == (op == BinaryOp::logical_or)) return Value(c);
  }
  DLC_TRY(Value right, value(n.args[1], env));
  if (left.index() != right.index())
    return s_.fail_text(n.pos, fmt::format("`{}` and `{}` cannot be combined by {}", print(n.args[0]), print(n.args[1]),
                                           to_string(op)));
  if (!std::holds_alternative<Val>(left)) {
    if (op != BinaryOp::eq && op != BinaryOp::ne)
      return s_.fail_text(n.pos, fmt::format("{} needs numbers; strings and types have == and !=", to_string(op)));
    return Value(val::boolean((left == right) == (op == BinaryOp::eq)));
  }
  const Val &a = std::get<Val>(left), &b = std::get<Val>(right);
  const bool comparison = op >= BinaryOp::eq && op <= BinaryOp::ge;
  DLC_CHECK(check_size(op, a, b, n, env));
  return checked(comparison ? compare(op, a, b) : val::binary(op, a, b), n.pos);
}

// ---- reductions

std::string Evaluator::fresh(const std::string& name) {
  std::string wish = name;
  for (int i = 2; used.contains(wish) || s_.reserved.contains(wish); ++i) wish = fmt::format("{}_{}", name, i);
  used.insert(wish);
  return wish;
}

Result<std::vector<Loop>> Evaluator::loops(const std::vector<RangeVar>& vars, const Env& env, Scope& scope) {
  std::vector<Loop> out;
  for (const RangeVar& v : vars) {
    Env shape = env;
    shape.scope = nullptr;
    if (v.ref.pack && !v.extent.empty() && v.ref.select.empty()) {  // a local pack is as long as its extents
      PackUse use;
      collect_packs(s_, v.extent[0], use);
      if (use.packs.empty()) return s_.fail_text(v.ref.pos, fmt::format("no pack in the extents of `{}`", v.ref.name));
      s_.packs[v.ref.name] = use.packs.begin()->second;
    }
    if (!v.ref.pack && s_.is_pack(v.ref.name))
      return s_.fail_text(v.ref.pos, fmt::format("`{}` is a pack; write {}...", v.ref.name, v.ref.name));
    DLC_TRY(const auto elements, s_.elements(v.ref));
    for (size_t p = 0; p < elements.size(); ++p) {
      if (elements[p].unit) continue;
      const std::string& name = elements[p].name;
      if (!v.extent.empty()) {
        if (v.ref.pack) shape.pack = static_cast<int>(p);
        DLC_TRY(Expr e, extent(v.extent[0], shape));
        s_.extents[name] = e;
      }
      const auto it = s_.extents.find(name);
      if (it == s_.extents.end())
        return s_.fail_text(v.ref.pos, fmt::format("the extent of `{}` is not known", v.ref.name),
                            fmt::format("write {} < extent", v.ref.name));
      const std::string var = fresh(name);
      scope.loops.insert_or_assign(name, Expr::symbol(var));
      out.push_back({var, it->second});
    }
  }
  return out;
}

Result<Value> Evaluator::reduce(const Node& n, const Env& env) {
  if (!env.scope) return s_.fail_text(n.pos, "a reduction where only shapes are known");
  Scope scope;
  scope.outer = env.scope;
  DLC_TRY(auto loops, loops(n.vars, env, scope));
  Env inner = env;
  inner.scope = &scope;
  DLC_TRY(Val body, number(n.args[0], inner));
  const ReduceOp op = n.reduce_op();
  if ((op == ReduceOp::argmax || op == ReduceOp::argmin) && loops.size() > 1)
    return s_.fail_text(n.pos, fmt::format("{} runs over one index, not {}", to_string(op), loops.size()));
  DType acc = body->type.is_bool() ? kS64 : body->type;
  if (!n.type.empty()) {
    DLC_TRY(acc, s_.type(n.type));
  }
  return checked(val::reduce(op, acc, std::move(loops), body), n.pos);
}

}  // namespace dlc::detail
