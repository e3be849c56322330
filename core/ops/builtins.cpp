// Calls: the functions of the kernel level, casts, what is known of packs and types, and defs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/ops/check.h"
#include "core/ops/eval.h"
#include "dlc/kernel/names.h"

namespace dlc::detail {
namespace {

// name -> number of arguments
struct Builtin {
  std::string_view name;
  size_t arguments;
};
constexpr size_t kAny = 99;
constexpr std::array kBuiltins{
    Builtin{"selected", 2}, Builtin{"len", 1},    Builtin{"pos", 1},       Builtin{"rep", 2},
    Builtin{"total", 1},    Builtin{"before", 1}, Builtin{"flat", kAny},   Builtin{"unflat", 2},
    Builtin{"cast", 2},     Builtin{"sat", 2},    Builtin{"lowest", 1},    Builtin{"highest", 1},
    Builtin{"is_float", 1}, Builtin{"is_int", 1}, Builtin{"is_signed", 1}, Builtin{"bits", 1},
    Builtin{"compute", 1},
};

Val extreme(DType t, bool low) {
  if (t.is_float()) {
    const double inf = std::numeric_limits<double>::infinity();
    return val::real(low ? -inf : inf, compute_type(t));
  }
  if (t.is_bool()) return val::boolean(!low);
  if (t == kU64) return val::integer(low ? 0 : -1, kU64);
  return val::integer(low ? t.min_value() : t.max_value());
}

}  // namespace

bool is_builtin_function(std::string_view name) {
  for (const Builtin& b : kBuiltins)
    if (b.name == name) return true;
  return find_fn(name).has_value();
}

std::vector<std::string> builtin_functions() {
  std::vector<std::string> names;
  for (const Builtin& b : kBuiltins) names.emplace_back(b.name);
  for (int f = 0; f <= static_cast<int>(Fn::is_inf); ++f) names.emplace_back(to_string(static_cast<Fn>(f)));
  return names;
}

Result<std::string> Evaluator::argument_name(const Node& n, size_t i) const {
  const Node& a = n.args[i];
  if (a.kind != NodeKind::name)
    return s_.fail_text(n.pos, fmt::format("`{}` takes the name of a pack or index", n.text));
  return a.text;
}

Result<Value> Evaluator::call(const Node& n, const Env& env) {
  if (const DefAst* d = s_.defs->find(n.text)) return call_def(*d, n, env);
  DLC_TRY(auto done, builtin(n, env));
  if (done) return std::move(*done);
  const auto fn = find_fn(n.text);
  if (!fn) {
    std::vector<std::string> names = builtin_functions();
    for (const auto& entry : s_.defs->defs) names.push_back(entry.first);
    const std::string near = nearest(n.text, names);
    return s_.fail_text(n.pos, fmt::format("`{}` is not a function", n.text),
                        near.empty() ? "" : "did you mean " + near + "?");
  }
  DLC_TRY(auto args, arguments(n.args, env));
  return checked(val::call(*fn, std::move(args)), n.pos);
}

Result<std::optional<Value>> Evaluator::builtin(const Node& n, const Env& env) {
  const Builtin* b = nullptr;
  for (const Builtin& x : kBuiltins)
    if (x.name == n.text) b = &x;
  if (!b) return std::nullopt;
  if (b->arguments != kAny && n.args.size() != b->arguments)
    return s_.fail_text(n.pos, fmt::format("{} takes {} argument{}, has {}", n.text, b->arguments,
                                           b->arguments == 1 ? "" : "s", n.args.size()));
  const std::string_view f = b->name;
  if (f == "rep") return value(n.args[0], env);
  if (f == "flat") {
    DLC_TRY(Val v, flat(n, env));
    return Value(v);
  }
  if (f == "unflat") {
    DLC_TRY(Val v, unflat(n, env));
    return Value(v);
  }
  if (f == "cast" || f == "sat" || f == "lowest" || f == "highest" || f.starts_with("is_") || f == "bits" ||
      f == "compute")
    return type_function(n, env);
  DLC_TRY(const std::string name, argument_name(n, 0));
  if (f == "len") {
    if (const auto it = s_.packs.find(name); it != s_.packs.end()) return Value(val::integer(it->second));
    if (const auto it = s_.attributes.find(name); it != s_.attributes.end() && it->second.decl->list) {
      const Attribute& a = it->second;
      return Value(val::integer(static_cast<int64_t>(a.selects() ? a.axes.size() : a.values.size())));
    }
    return s_.fail_text(n.pos, fmt::format("`{}` is neither a pack nor a list", name));
  }
  if (f == "pos") {
    if (env.pack < 0) return s_.fail_text(n.pos, "pos is used outside `...`");
    return Value(val::integer(env.pack));
  }
  if (f == "selected") {
    DLC_TRY(const std::string attribute, argument_name(n, 1));
    const auto it = s_.attributes.find(attribute);
    if (it == s_.attributes.end() || it->second.decl->kind != AttrDecl::Kind::axes || it->second.decl->index != name)
      return s_.fail_text(n.pos, fmt::format("`{}` does not select from `{}`", attribute, name));
    if (env.pack < 0) return s_.fail_text(n.pos, "selected is used outside `...`");
    const auto& axes = it->second.axes;
    return Value(val::boolean(std::find(axes.begin(), axes.end(), env.pack) != axes.end()));
  }
  // total, before
  const auto it = s_.operand_extents.find(name);
  if (it == s_.operand_extents.end())
    return s_.fail_text(n.pos, fmt::format("`{}` is not an index of a variadic operand", name));
  if (f == "before" && env.operand < 0) return s_.fail_text(n.pos, "before is used outside `...`");
  const size_t count = f == "total" ? it->second.size() : static_cast<size_t>(env.operand);
  Expr sum = 0;
  for (size_t i = 0; i < count; ++i) sum += it->second[i];
  return Value(val::index(sum));
}

Result<Value> Evaluator::type_function(const Node& n, const Env& env) {
  const bool converts = n.text == "cast" || n.text == "sat";
  DLC_TRY(Value t, value(n.args[converts ? 1 : 0], env));
  const DType* type = std::get_if<DType>(&t);
  if (!type)
    return s_.fail_text(n.pos, fmt::format("{} needs a type, has `{}`", n.text, print(n.args[converts ? 1 : 0])));
  if (n.text == "compute") return Value(compute_type(*type));
  if (n.text == "lowest" || n.text == "highest") return Value(extreme(*type, n.text == "lowest"));
  if (n.text == "is_float") return Value(val::boolean(type->is_float()));
  if (n.text == "is_int") return Value(val::boolean(type->is_int()));
  if (n.text == "is_signed") return Value(val::boolean(!type->is_bool() && type->kind != DType::Kind::unsigned_int));
  if (n.text == "bits") return Value(val::integer(type->bits));
  DLC_TRY(Val v, number(n.args[0], env));
  return checked(val::cast(*type, v, n.text == "sat"), n.pos);
}

// Row-major linear index of the named indices and packs over their extents.
Result<Val> Evaluator::flat(const Node& n, const Env& env) {
  Expr linear = 0;
  for (const Node& a : n.args) {
    const IndexRef ref = index_ref(a);
    const Node& inner = a.kind == NodeKind::pack ? a.args[0] : a;
    if (inner.kind != NodeKind::name && inner.kind != NodeKind::read)
      return s_.fail_text(a.pos, "flat takes indices and packs by name");
    DLC_TRY(const auto elements, s_.elements(ref));
    for (const Element& e : elements) {
      Env shape = env;
      shape.scope = nullptr;
      DLC_TRY(Value extent, index(ref.name, e, shape, a.pos));
      DLC_TRY(Value at, index(ref.name, e, env, a.pos));
      linear = linear * *val::as_expr(std::get<Val>(extent)) + *val::as_expr(std::get<Val>(at));
    }
  }
  if (!linear.valid()) return s_.fail_text(n.pos, "the linear index overflows 64 bits");
  return val::index(linear);
}

// Index of pack args[1] at the position being expanded, for linear index args[0], which must be within the pack.
Result<Val> Evaluator::unflat(const Node& n, const Env& env) {
  DLC_TRY(const std::string pack, argument_name(n, 1));
  const auto it = s_.packs.find(pack);
  if (it == s_.packs.end()) return s_.fail_text(n.pos, fmt::format("`{}` is not a pack", pack));
  if (env.pack < 0 || env.pack >= it->second) return s_.fail_text(n.pos, "unflat is used outside `...`");
  DLC_TRY(Val linear, number(n.args[0], env));
  Expr below = 1, own = 1;
  for (int p = env.pack; p < it->second; ++p) {
    const auto e = s_.extents.find(flat_name(pack, p));
    if (e == s_.extents.end()) return s_.fail_text(n.pos, fmt::format("the extents of `{}` are not known", pack));
    (p == env.pack ? own : below) = (p == env.pack ? Expr(1) : below) * e->second;
  }
  if (!below.valid()) return s_.fail_text(n.pos, "the linear index overflows 64 bits");
  Val v = val::binary(BinaryOp::floor_div, linear, val::index(below));
  if (env.pack > 0) v = val::binary(BinaryOp::mod, v, val::index(own));
  return v;
}

constexpr int kMaxCalls = 64;

// Whether every value of `from` is one of `to`.
static bool holds(DType to, DType from) {
  if (!to.is_int()) return true;
  if (from.is_bool()) return true;
  if (!from.is_int()) return false;
  if (to.is_signed() == from.is_signed()) return from.bits <= to.bits;
  return to.is_signed() && from.bits < to.bits;
}

// Arguments are evaluated where the call stands; typed ones are cast to their type, and so is the result.
Result<Value> Evaluator::call_def(const DefAst& d, const Node& n, const Env& env) {
  if (env.calls > kMaxCalls)
    return s_.fail_text(n.pos, fmt::format("`{}` calls defs that call defs, more than {} deep", d.name, kMaxCalls),
                        "a def cannot call itself, and a chain of defs is at most as long");
  std::vector<Value> values;
  std::vector<std::optional<std::pair<DType, Pos>>> read;  // the type of the element that an argument is
  for (const Node& a : n.args) {
    if (a.kind == NodeKind::pack) {
      DLC_TRY(auto expanded, expand(a.args[0], env));
      for (Value& v : expanded) values.push_back(std::move(v));
    } else {
      DLC_TRY(Value v, value(a, env));
      values.push_back(std::move(v));
    }
    read.resize(values.size());
    if (a.kind != NodeKind::read || a.text.empty() || s_.is_pack(a.text)) continue;
    if (const auto t = s_.tensors.find(a.text); t != s_.tensors.end() && t->second.typed)
      read.back() = {t->second.type, a.pos};
  }
  if (values.size() != d.params.size())
    return s_.fail_text(n.pos, fmt::format("{} takes {} arguments, has {}", d.name, d.params.size(), values.size()));
  std::map<std::string, Value, std::less<>> params;
  for (size_t i = 0; i < values.size(); ++i) {
    const Param& p = d.params[i];
    if (!p.type.empty()) {
      Val* v = std::get_if<Val>(&values[i]);
      if (!v) return s_.fail_text(n.pos, fmt::format("argument {} of {} is not a number", p.name, d.name));
      DLC_TRY(const DType t, s_.type(p.type));
      if (read[i] && !holds(t, read[i]->first))
        return s_.fail_text(
            read[i]->second,
            fmt::format("argument {} of {} is {}, which does not hold every {}", p.name, d.name, to_string(t),
                        to_string(read[i]->first)),
            fmt::format("an operand as narrow as the argument; or {}: {}", p.name, to_string(read[i]->first)));
      *v = val::cast(t, *v);
    }
    params.emplace(p.name, std::move(values[i]));
  }
  Env inner;
  inner.params = &params;
  inner.exact = env.exact;
  inner.calls = env.calls + 1;
  DLC_TRY(Value r, value(d.body, inner));
  if (const Val* v = std::get_if<Val>(&r)) DLC_CHECK(check_tree(*v, n.pos));
  if (d.result.empty()) return r;
  DLC_TRY(const DType t, s_.type(d.result));
  Val* v = std::get_if<Val>(&r);
  if (!v) return s_.fail_text(n.pos, fmt::format("{} gives no number", d.name));
  return Value(val::cast(t, *v));
}

}  // namespace dlc::detail
