// Operators, functions, conversions and the storage of element types.
#include <fmt/format.h>

#include "plugins/cuda/codegen/writer.h"

namespace dlc::cuda {

using lower::Rep;

Writer::Cell Writer::unary(const ValNode& n, const Cell& a) {
  const Type type = type_of_node(n);
  if (n.unary_op() == UnaryOp::logical_not) return {{"!" + a.v.operand(), false}, type, a.ok};
  if (n.type.is_float()) return {{"-" + a.v.operand(), false}, type, a.ok};
  if (n.unary_op() == UnaryOp::bit_not) return {{"~" + as(a, type), false}, type, a.ok};
  return {{fmt::format("dlc::neg({})", as(a, type)), true}, type, a.ok};
}

namespace {

const char* symbol_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return "+";
    case BinaryOp::sub:
      return "-";
    case BinaryOp::mul:
      return "*";
    case BinaryOp::div:
      return "/";
    case BinaryOp::bit_and:
      return "&";
    case BinaryOp::bit_or:
      return "|";
    case BinaryOp::bit_xor:
      return "^";
    case BinaryOp::eq:
      return "==";
    case BinaryOp::ne:
      return "!=";
    case BinaryOp::lt:
      return "<";
    case BinaryOp::le:
      return "<=";
    case BinaryOp::gt:
      return ">";
    case BinaryOp::ge:
      return ">=";
    case BinaryOp::logical_and:
      return "&&";
    case BinaryOp::logical_or:
      return "||";
    default:
      return nullptr;  // written as a function
  }
}

bool is_finite(const Interval& i) { return i.lo != Interval::kNegInf && i.hi != Interval::kPosInf; }

}  // namespace

Writer::Cell Writer::binary(const ValNode& n, Cell a, Cell b) {
  const BinaryOp op = n.binary_op();
  const DType operands = n.args[0]->type;
  const char* symbol = symbol_of(op);
  if (op == BinaryOp::logical_and || op == BinaryOp::logical_or) {
    std::string ok = a.ok;
    if (!b.ok.empty())  // lazy: b does not matter when a decides
      ok = all(ok, fmt::format("({} || {}{})", b.ok, op == BinaryOp::logical_and ? "!" : "", a.v.operand()));
    return {{fmt::format("{} {} {}", a.v.operand(), symbol, b.v.operand()), false}, Type::boolean, ok};
  }
  const std::string ok = all(a.ok, b.ok);
  if (operands.is_bool()) {
    if (symbol == nullptr) fail_with("an operator that bools do not have");
    return {{fmt::format("{} {} {}", a.v.operand(), symbol == nullptr ? "&" : symbol, b.v.operand()), false},
            Type::boolean,
            ok};
  }
  if (!operands.is_float()) return integer_binary(n, std::move(a), std::move(b));
  const Type type = n.type.is_bool() ? Type::boolean : type_of_node(n);
  if (symbol != nullptr) return {{fmt::format("{} {} {}", a.v.operand(), symbol, b.v.operand()), false}, type, ok};
  const Val& d = n.args[1];
  const bool may_be_zero = !(d->kind == ValKind::real && d->real != 0);
  return {{fmt::format("dlc::{}({}, {})", op == BinaryOp::mod ? "float_mod" : "float_floor_div", a.v.s, b.v.s), true},
          type,
          may_be_zero ? all(ok, fmt::format("({} != 0)", b.v.operand())) : ok};
}

Writer::Cell Writer::integer_binary(const ValNode& n, Cell a, Cell b) {
  const BinaryOp op = n.binary_op();
  const bool is_unsigned = n.args[0]->type == kU64;
  const Type result = n.type.is_bool() ? Type::boolean : type_of_node(n);
  std::string ok = all(a.ok, b.ok);
  Type width = is_unsigned ? Type::u64 : Type::s32;
  if (!is_unsigned && (a.type == Type::s64 || b.type == Type::s64 || result == Type::s64)) width = Type::s64;
  const Interval r = l_.range(n.args[1].get());
  const bool is_shift = op == BinaryOp::shl || op == BinaryOp::shr;
  if (is_shift && width == Type::s32 && r.hi > 31) width = Type::s64;
  const std::string x = as(a, width);
  std::string y = as(b, width);
  const auto made = [&](Text t) {
    if (n.type.is_bool() || width == result) return Cell{std::move(t), result, ok};
    return Cell{{fmt::format("({}){}", name_of(result), t.operand()), false}, result, ok};
  };
  const auto function = [&](const char* name) { return made({fmt::format("dlc::{}({}, {})", name, x, y), true}); };
  if (op == BinaryOp::floor_div || op == BinaryOp::mod) {
    const bool is_div = op == BinaryOp::floor_div;
    if (r.lo <= 0 && r.hi >= 0) ok = all(ok, fmt::format("({} != 0)", y));
    if (!is_unsigned && l_.range(n.args[0].get()).lo >= 0 && r.lo > 0)
      return made({fmt::format("{} {} {}", x, is_div ? "/" : "%", y), false});
    return function(is_unsigned ? (is_div ? "quotient" : "remainder") : is_div ? "floor_div" : "floor_mod");
  }
  if (is_shift) {
    if (r.lo < 0 || r.hi > 63) {
      const std::string inside = fmt::format("dlc::inside((long long){}, 64)", y);
      ok = all(ok, inside);
      y = fmt::format("({} ? {} : 0)", inside, y);
    }
    if (op == BinaryOp::shl) return made({fmt::format("dlc::shl({}, ({}){})", x, name_of(width), y), true});
    return made({fmt::format("{} >> {}", x, y), false});
  }
  // What is known to stay in 64 bits cannot wrap.
  const bool can_wrap = !is_unsigned && !n.type.is_bool() && !is_finite(l_.range(&n));
  if (can_wrap && op == BinaryOp::add) return function("add");
  if (can_wrap && op == BinaryOp::sub) return function("sub");
  if (can_wrap && op == BinaryOp::mul) return function("mul");
  const char* symbol = symbol_of(op);
  if (symbol == nullptr) fail_with("an operator of unknown kind");
  return made({fmt::format("{} {} {}", x, symbol == nullptr ? "+" : symbol, y), false});
}

Writer::Cell Writer::call(const ValNode& n, const std::vector<Cell>& args) {
  static constexpr const char* kNames[] = {"exp",   "log",  "sin",  "cos",      "tan",    "asin",  "acos",  "atan",
                                           "sinh",  "cosh", "tanh", "asinh",    "acosh",  "atanh", "erf",   "sqrt",
                                           "rsqrt", "pow",  "abs",  "sign",     "floor",  "ceil",  "round", "trunc",
                                           "min",   "max",  "fmod", "quotient", "is_nan", "is_inf"};
  const Fn fn = n.fn();
  const char* name = kNames[static_cast<size_t>(fn)];
  std::string ok;
  for (const Cell& a : args) ok = all(ok, a.ok);
  if (fn == Fn::is_nan || fn == Fn::is_inf) {
    if (!n.args[0]->type.is_float()) return {{"false", true}, Type::boolean, ok};
    return {{fmt::format("dlc::{}({})", name, args[0].v.s), true}, Type::boolean, ok};
  }
  const Type result = type_of_node(n);
  Type width = result;
  if (result == Type::s32)
    for (const Cell& a : args)
      if (a.type == Type::s64) width = Type::s64;
  if (n.type.is_bool()) {  // min and max
    std::string all_of;
    for (const Cell& a : args) all_of += (all_of.empty() ? "" : fn == Fn::min ? " && " : " || ") + a.v.operand();
    return {{all_of, args.size() == 1 && args[0].v.is_primary}, result, ok};
  }
  Text t{argument(args[0], width), true};
  if (fn == Fn::min || fn == Fn::max) {
    t.is_primary = args.size() > 1 || (args[0].v.is_primary && args[0].type == width);
    for (size_t i = 1; i < args.size(); ++i)
      t = {fmt::format("dlc::{}({}, {})", name, t.s, argument(args[i], width)), true};
  } else if (!n.type.is_float()) {
    switch (fn) {
      case Fn::fmod:
      case Fn::tdiv: {
        const Interval r = l_.range(n.args[1].get());
        const std::string d = as(args[1], width);
        if (r.lo <= 0 && r.hi >= 0) ok = all(ok, fmt::format("({} != 0)", d));
        t = {fmt::format("dlc::{}({}, {})", fn == Fn::fmod ? "remainder" : "quotient", t.s, d), true};
        break;
      }
      case Fn::pow:
        t = {fmt::format("dlc::power_of({}, {})", t.s, as(args[1], width)), true};
        break;
      case Fn::abs:
      case Fn::sign:
        t = {fmt::format("dlc::{}({})", name, t.s), true};
        break;
      default:
        t.is_primary = args[0].v.is_primary && args[0].type == width;
        break;  // floor, ceil, round and trunc of an integer
    }
  } else {
    for (size_t i = 1; i < args.size(); ++i) t.s += ", " + argument(args[i], width);
    t = {fmt::format("dlc::{}({})", name, t.s), true};
  }
  if (width != result) t = {fmt::format("({}){}", name_of(result), t.operand()), false};
  return {t, result, ok};
}

// ---- conversions

std::string Writer::to_integer(const Cell& a, bool to_u64) {
  return fmt::format("dlc::{}({})", to_u64 ? "to_u64" : "to_s64", a.v.s);
}

std::string Writer::wrapped(const std::string& v, DType to) {
  if (to.bits == 64) return v;
  return fmt::format("dlc::wrap_{}<{}>({})", to.is_signed() ? "signed" : "unsigned", to.bits, v);
}

// Of the type that `result` says, which holds every value of `to`.
std::string Writer::saturated(const Cell& a, DType from, DType to, Type result) {
  if (from.is_float()) {
    if (to == kU64 || to == kS64) return to_integer(a, to == kU64);
    const std::string clamped = fmt::format("dlc::clamp({}, {}, {})", to_integer(a, false),
                                            literal(to.min_value(), Type::s64), literal(to.max_value(), Type::s64));
    return result == Type::s64 ? clamped : fmt::format("({}){}", name_of(result), clamped);
  }
  std::string clamped;
  if (from == kU64)
    clamped = to == kU64 ? a.v.operand()
                         : fmt::format("(long long)dlc::min({}, {})", a.v.s, literal(to.max_value(), Type::u64));
  else if (to == kU64)
    clamped = fmt::format("(unsigned long long)dlc::max({}, 0LL)", as(a, Type::s64));
  else
    clamped = fmt::format("dlc::clamp({}, {}, {})", as(a, Type::s64), literal(to.min_value(), Type::s64),
                          literal(to.max_value(), Type::s64));
  const Type now = to == kU64 ? Type::u64 : Type::s64;
  return now == result ? clamped : fmt::format("({}){}", name_of(result), clamped);
}

Writer::Cell Writer::cast(const ValNode& n, const Cell& a) {
  const DType from = n.args[0]->type, to = n.to;
  const Type type = type_of_node(n);
  if (to.is_int()) {
    if (n.saturate && !from.is_bool()) return {{saturated(a, from, to, type), false}, type, a.ok};
    const Interval range = from.is_int() ? l_.range(n.args[0].get()) : Interval{};
    const bool fits =
        from.is_bool() || (from.is_int() && to.bits < 64 && range.lo >= to.min_value() && range.hi <= to.max_value());
    if (fits || (to.bits == 64 && !from.is_float())) {
      if (from.is_bool()) {  // s1 holds 0 and -1
        const std::string whole = to.bits == 64 ? as(a, Type::s64) : wrapped(as(a, Type::s64), to);
        return {{fmt::format("({}){}", name_of(type), whole), false}, type, a.ok};
      }
      return {{as(a, type), a.type == type && a.v.is_primary}, type, a.ok};
    }
    const std::string whole = from.is_float() ? to_integer(a, to == kU64) : as(a, Type::s64);
    if (to.bits == 64) return {{whole, true}, type, a.ok};
    const std::string narrow = wrapped(whole, to);
    return {{type == Type::s64 ? narrow : fmt::format("({}){}", name_of(type), narrow), false}, type, a.ok};
  }
  if (to.is_bool()) {
    if (from.is_bool()) return a;
    return {{fmt::format("{} != 0", a.v.operand()), false}, Type::boolean, a.ok};
  }
  if (to.is_narrow_float()) {
    const std::string f = a.type == Type::f32 ? a.v.s : "(float)" + a.v.operand();
    return {{fmt::format("dlc::rounded_to_{}({})", storage_name(to), f), true}, type, a.ok};
  }
  return {{as(a, type), a.type == type && a.v.is_primary}, type, a.ok};
}

// ---- storage

Writer::Cell Writer::decoded(DType t, const std::string& stored, Type type) {
  if (t.is_narrow_float()) return {{fmt::format("dlc::to_float({})", stored), true}, type, {}};
  if (t.is_bool()) return {{stored + " != 0", false}, type, {}};
  if (t.is_float() || t.bits == 8 * t.bytes()) return {{stored, true}, type, {}};
  return {{fmt::format("({}){}", name_of(type), wrapped(stored, t)), false}, type, {}};
}

std::string Writer::encoded(DType t, const Cell& v) {
  const bool is_float = v.type == Type::f32 || v.type == Type::f64;
  const std::string storage = storage_name(t);
  if (t.is_bool()) return v.type == Type::boolean ? v.v.s : v.v.operand() + " != 0";
  if (t.is_narrow_float())
    return fmt::format("dlc::to_{}({})", storage, v.type == Type::f32 ? v.v.s : "(float)" + v.v.operand());
  if (t.is_float())
    return v.type == (t == kF64 ? Type::f64 : Type::f32) ? v.v.s : as(v, t == kF64 ? Type::f64 : Type::f32);
  std::string i = is_float ? to_integer(v, t == kU64) : v.v.operand();
  if (t.bits != 8 * t.bytes()) i = wrapped(is_float ? i : as(v, Type::s64), t);
  const bool is_same = !is_float && ((t == kS32 && v.type == Type::s32) || (t == kS64 && v.type == Type::s64));
  return is_same ? v.v.s : fmt::format("({}){}", storage, i);
}

}  // namespace dlc::cuda
