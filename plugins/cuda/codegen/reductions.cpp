// Reductions: loops with an accumulator; one whose iterations are shared by the threads of a block ends with what they
// have together.
#include <fmt/format.h>

#include "plugins/cuda/codegen/writer.h"

namespace dlc::cuda {

using lower::Rep;

Type Writer::accumulator(const ValNode& r) const {
  if (r.type.is_bool()) return Type::boolean;
  if (r.type.is_float()) return r.type == kF64 ? Type::f64 : Type::f32;
  if (r.type == kU64) return Type::u64;
  const bool wraps = r.reduce_op() == ReduceOp::sum || r.reduce_op() == ReduceOp::prod;
  if (wraps) return r.to.bits <= 32 || l_.rep(&r) == Rep::i32 ? Type::s32 : Type::s64;  // exact modulo 2^32
  return r.to.min_value() >= INT32_MIN && r.to.max_value() <= INT32_MAX ? Type::s32 : Type::s64;
}

std::string Writer::identity(const ValNode& r, Type t) const {
  const bool is_float = t == Type::f32 || t == Type::f64;
  const bool is_int = r.to.is_int() && r.type.is_int();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (r.reduce_op()) {
    case ReduceOp::prod:
      return is_float ? literal(1.0, t) : literal(int64_t{1}, t);
    case ReduceOp::all:
      return "true";
    case ReduceOp::max:
      return is_float ? literal(-kInfinity, t) : literal(is_int ? r.to.min_value() : 0, t);
    case ReduceOp::min:
      return is_float ? literal(kInfinity, t) : literal(r.to == kU64 ? -1 : is_int ? r.to.max_value() : 1, t);
    default:
      return is_float ? literal(0.0, t) : literal(int64_t{0}, t);
  }
}

std::string Writer::combined(const ValNode& r, const std::string& a, const std::string& b, Type t) const {
  const bool is_float = t == Type::f32 || t == Type::f64, is_narrow = r.to.is_narrow_float() && is_float;
  const auto rounded = [&](const std::string& v) {  // a narrow accumulator is rounded at every step
    return is_narrow ? fmt::format("dlc::rounded_to_{}({})", storage_name(r.to), v) : v;
  };
  switch (r.reduce_op()) {
    case ReduceOp::sum:
      return is_float ? rounded(fmt::format("{} + {}", a, b)) : fmt::format("dlc::add({}, {})", a, b);
    case ReduceOp::prod:
      return is_float ? rounded(fmt::format("{} * {}", a, b)) : fmt::format("dlc::mul({}, {})", a, b);
    case ReduceOp::any:
      return fmt::format("{} || {}", a, b);
    case ReduceOp::all:
      return fmt::format("{} && {}", a, b);
    default: {
      const bool is_max = r.reduce_op() == ReduceOp::max;
      if (t == Type::boolean) return fmt::format("{} {} {}", a, is_max ? "||" : "&&", b);
      return fmt::format("dlc::{}({}, {})", is_max ? "max" : "min", a, rounded(b));
    }
  }
}

Writer::Cell Writer::finished(const ValNode& r, const std::string& acc, Type type, const std::string& ok) {
  const Type result = type_of_node(r);
  if (!r.type.is_int()) return {{acc, true}, result, ok};
  const bool wraps = r.reduce_op() == ReduceOp::sum || r.reduce_op() == ReduceOp::prod;
  if (!wraps || r.to.bits == 64)
    return {{type == result ? acc : fmt::format("({}){}", name_of(result), acc), type == result}, result, ok};
  if (type == Type::s32 && result == Type::s32 && r.to == kS32) return {{acc, true}, result, ok};
  const std::string v = wrapped(acc, r.to);
  return {{result == Type::s64 ? v : fmt::format("({}){}", name_of(result), v), false}, result, ok};
}

// One step of the accumulator.
void Writer::accumulate(const ValNode& r, const std::string& acc, Type type, const std::string& ok) {
  const Val& body = r.args[0];
  const bool fuses = r.reduce_op() == ReduceOp::sum && r.type.is_float() && !r.to.is_narrow_float() && ok.empty() &&
                     body->kind == ValKind::binary && body->binary_op() == BinaryOp::mul && body->type == r.type;
  if (fuses) {
    const Cell a = eval(body->args[0]);
    const Cell b = eval(body->args[1]);
    line(fmt::format("{0} = dlc::fma({1}, {2}, {0});", acc, argument(a, type), argument(b, type)));
    return;
  }
  const Cell c = eval(body);
  std::string v = as(c, type);
  const bool compares = r.reduce_op() == ReduceOp::max || r.reduce_op() == ReduceOp::min;
  if (r.type.is_int() && compares && r.to != body->type) {
    const Interval range = l_.range(body.get());
    const bool fits = r.to.bits < 64 && range.lo >= r.to.min_value() && range.hi <= r.to.max_value();
    if (!fits && r.to.bits < 64) v = saturated(c, body->type, r.to, type);
  }
  line(fmt::format("{} = {};", acc, combined(r, acc, v, type)));
  if (!ok.empty() && !c.ok.empty()) line(fmt::format("{0} = {0} && {1};", ok, c.ok));
}

std::string Writer::open_loop(const Loop& loop, bool shared) {
  const Interval extent = bounds(loop.extent, l_.ranges());
  const bool is_long = extent.hi > INT32_MAX - 1024;
  const std::string name = names_.fresh(loop.var);
  const ExprText::Result n = e_(loop.extent);
  e_.bind(loop.var, {name, is_long});
  open(fmt::format("for ({0} {1} = {3}; {1} < {2}; {4})", is_long ? "long long" : "int", name, n.text.operand(),
                   shared ? "threadIdx.x" : "0", shared ? name + " += blockDim.x" : "++" + name));
  scopes_.push_back({});
  scopes_.back().vars = l_.bit(loop.var);
  return name;
}

void Writer::reduce_nest(const ValNode& r, size_t depth, const std::string& acc, Type type, const std::string& ok,
                         bool shared) {
  if (depth == r.loops.size()) return accumulate(r, acc, type, ok);
  open_loop(r.loops[depth], shared && depth == 0);
  if (depth + 1 < r.loops.size()) hoist(r.args[0]);
  reduce_nest(r, depth + 1, acc, type, ok, shared);
  scopes_.pop_back();
  close();
}

Writer::Cell Writer::reduce(const Val& v) {
  const ReduceOp op = v->reduce_op();
  if (op == ReduceOp::argmax || op == ReduceOp::argmin) return reduce_position(v);
  static constexpr const char* kNames[] = {"sum", "product", "largest", "smallest", "any", "every"};
  const char* wanted = kNames[static_cast<size_t>(op)];
  const bool shared = shared_ == v.get();
  hoist(v->args[0]);
  const Type type = accumulator(*v);
  std::string acc = names_.fresh(wanted), ok;
  line(fmt::format("{} {} = {};", name_of(type), acc, identity(*v, type)));
  if (l_.may_be_undefined(v->args[0].get())) {
    ok = names_.fresh("defined");
    line(fmt::format("bool {} = true;", ok));
  }
  reduce_nest(*v, 0, acc, type, ok, shared);
  if (shared) {
    const auto whole = [&](const std::string& part, Type t, const std::string& both) {
      const std::string parts = names_.fresh(part + "_parts"), of = std::string(name_of(t));
      line(fmt::format("DLC_SHARED({}, {}, 32);", of, parts));
      line(fmt::format("{0} = dlc::of_block({0}, {1}, []({2} a, {2} b) -> {2} {{ return {3}; }});", part, parts, of,
                       both));
    };
    whole(acc, type, combined(*v, "a", "b", type));
    if (!ok.empty()) whole(ok, Type::boolean, "a && b");
  }
  Cell c = finished(*v, acc, type, ok);
  return c.v.is_primary ? c : named(std::move(c), wanted);
}

// The first position of the best value; a NaN beats everything but an earlier NaN.
Writer::Cell Writer::reduce_position(const Val& v) {
  const Val& body = v->args[0];
  const Loop& loop = v->loops.front();
  hoist(body);
  const Type value = type_of_node(*body), position = type_of_node(*v);
  const bool is_max = v->reduce_op() == ReduceOp::argmax;
  const std::string best = names_.fresh("best"), at = names_.fresh("position");
  line(fmt::format("{} {} = 0;", name_of(value), best));
  line(fmt::format("{} {} = -1;", name_of(position), at));
  std::string ok;
  if (l_.may_be_undefined(body.get())) {
    ok = names_.fresh("defined");
    line(fmt::format("bool {} = true;", ok));
  }
  const std::string i = open_loop(loop, false);
  const Cell c = eval(body);
  const std::string x = as(c, value);
  std::string better = fmt::format("{} {} {}", x, is_max ? ">" : "<", best);
  if (body->type.is_float()) better = fmt::format("({} || dlc::is_nan({})) && !dlc::is_nan({})", better, x, best);
  open(fmt::format("if ({} < 0 || ({}))", at, better));
  line(fmt::format("{} = {};", best, x));
  line(fmt::format("{} = {};", at, i));
  close();
  if (!ok.empty() && !c.ok.empty()) line(fmt::format("{0} = {0} && {1};", ok, c.ok));
  scopes_.pop_back();
  close();
  const auto n = loop.extent.constant();
  if (!n || *n <= 0) ok = all(ok, fmt::format("({} >= 0)", at));
  return {{at, true}, position, ok};
}

}  // namespace dlc::cuda
