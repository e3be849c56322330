#include "plugins/cuda/codegen/text.h"

#include <fmt/format.h>

#include <cmath>

namespace dlc::cuda {

using lower::Rep;

std::string_view name_of(Type t) {
  switch (t) {
    case Type::boolean:
      return "bool";
    case Type::s32:
      return "int";
    case Type::s64:
      return "long long";
    case Type::u64:
      return "unsigned long long";
    case Type::f32:
      return "float";
    default:
      return "double";
  }
}

Type type_of(DType compute, Rep rep) {
  if (compute.is_bool()) return Type::boolean;
  if (compute.is_float()) return compute == kF64 ? Type::f64 : Type::f32;
  if (compute == kU64) return Type::u64;
  return rep == Rep::i64 ? Type::s64 : Type::s32;
}

std::string storage_name(DType t) {
  if (t == kF32) return "float";
  if (t == kF64) return "double";
  if (t.is_float()) return to_string(t);  // a struct of dlc_num.h
  const char* word = t.bytes() == 1 ? "char" : t.bytes() == 2 ? "short" : t.bytes() == 4 ? "int" : "long long";
  return fmt::format("{} {}", t.is_signed() ? "signed" : "unsigned", word);
}

std::string literal(int64_t v, Type t) {
  if (t == Type::boolean) return v != 0 ? "true" : "false";
  if (t == Type::u64) return fmt::format("{}ULL", static_cast<uint64_t>(v));
  if (v == INT64_MIN) return "(-9223372036854775807LL - 1)";
  if (v == INT32_MIN && t == Type::s32) return "(-2147483647 - 1)";
  const std::string digits = fmt::format("{}{}", v, t == Type::s64 ? "LL" : "");
  return v < 0 ? "(" + digits + ")" : digits;
}

std::string literal(double v, Type t) {
  const bool is_float = t == Type::f32;
  const auto narrow = static_cast<float>(v);
  if (is_float) v = narrow;
  if (std::isnan(v)) return is_float ? "dlc::not_a_number()" : "(double)dlc::not_a_number()";
  if (std::isinf(v)) return fmt::format("({}{}dlc::infinity())", v < 0 ? "-" : "", is_float ? "" : "(double)");
  std::string digits = is_float ? fmt::format("{}", narrow) : fmt::format("{}", v);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  if (is_float) digits += "f";
  return digits[0] == '-' ? "(" + digits + ")" : digits;
}

const ExprText::Variable* ExprText::find(std::string_view var) const {
  const auto it = variables_.find(var);
  return it == variables_.end() ? nullptr : &it->second;
}

// The sum of the magnitudes of all terms, and each argument of an atom, is below 2^31.
bool ExprText::fits_int(const Expr& e) const {
  double sum = 0;
  for (const Term& t : e.terms()) {
    double product = std::abs(static_cast<double>(t.coefficient));
    for (const Atom& a : t.factors) {
      Expr whole;
      if (a.kind() == AtomKind::symbol) {
        const Variable* v = find(a.name());
        if (v == nullptr || v->is_long) return false;
        whole = Expr::symbol(a.name());
      } else {
        for (const Expr& arg : a.args())
          if (!fits_int(arg)) return false;
        const std::span<const Expr> x = a.args();
        whole = a.kind() == AtomKind::floor_div ? floor_div(x[0], x[1])
                : a.kind() == AtomKind::mod     ? mod(x[0], x[1])
                : a.kind() == AtomKind::min     ? min(x[0], x[1])
                : a.kind() == AtomKind::max     ? max(x[0], x[1])
                                                : select_nonneg(x[0], x[1], x[2]);
      }
      const Interval i = bounds(whole, ranges_);
      if (i.lo == Interval::kNegInf || i.hi == Interval::kPosInf) return false;
      product *= std::max(std::abs(static_cast<double>(i.lo)), std::abs(static_cast<double>(i.hi)));
      if (a.kind() == AtomKind::select && bounds(a.args()[0], ranges_).hi == Interval::kPosInf) return false;
    }
    sum += product;
  }
  return sum < 2147483647.0;
}

ExprText::Result ExprText::operator()(const Expr& e) {
  if (!e.valid()) {
    if (error_.empty()) error_ = "an index or extent overflows 64 bits";
    return {{"0", true}, false};
  }
  return print(e, !fits_int(e));
}

std::string ExprText::as_long(const Expr& e) {
  const Result r = (*this)(e);
  if (r.is_long) return r.text.operand();
  if (const auto c = e.constant()) return literal(*c, Type::s64);
  return "(long long)" + r.text.operand();
}

ExprText::Result ExprText::print(const Expr& e, bool as_long) {
  if (const auto c = e.constant()) return {{literal(*c, as_long ? Type::s64 : Type::s32), true}, as_long};
  // Beside a long long an int literal is one too.
  const auto number = [](int64_t c) { return literal(c, c > INT32_MAX || c < INT32_MIN ? Type::s64 : Type::s32); };
  std::string sum;
  size_t count = 0;
  bool is_single = false;
  // A term with a positive coefficient first: `9 - x`, `x - 1`.
  std::vector<const Term*> order;
  for (const Term& t : e.terms())
    if (t.coefficient > 0 && !t.factors.empty()) order.push_back(&t);
  for (const Term& t : e.terms())
    if (t.coefficient > 0 && t.factors.empty()) order.push_back(&t);
  for (const Term& t : e.terms())
    if (t.coefficient < 0) order.push_back(&t);
  for (const Term* t : order) {
    // A negative coefficient is a minus, but for the one whose magnitude does not fit.
    const bool minus = t->coefficient < 0 && t->coefficient != INT64_MIN;
    const int64_t c = minus ? -t->coefficient : t->coefficient;
    std::string product;
    bool is_primary = true;
    for (const Atom& a : t->factors) {
      const Result f = atom(a, as_long);
      if (!product.empty()) is_primary = false;
      product += (product.empty() ? "" : " * ") + f.text.operand();
    }
    if (t->factors.empty()) {
      product = number(c);
    } else if (c != 1) {
      product += " * " + number(c);
      is_primary = false;
    }
    sum += count == 0 ? (minus ? "-" : "") : minus ? " - " : " + ";
    sum += product;
    is_single = count == 0 && is_primary && !minus;
    ++count;
  }
  return {{sum, is_single && count == 1}, as_long};
}

ExprText::Result ExprText::atom(const Atom& a, bool as_long) {
  if (a.kind() == AtomKind::symbol) {
    const Variable* v = find(a.name());
    if (v == nullptr) {
      if (error_.empty()) error_ = "unbound symbol " + std::string(a.name());
      return {{"0", true}, as_long};
    }
    return {{as_long && !v->is_long ? "(long long)" + v->name : v->name, true}, as_long};
  }
  const auto arg = [&](size_t i) { return print(a.args()[i], as_long).text; };
  switch (a.kind()) {
    case AtomKind::floor_div:
    case AtomKind::mod: {
      const bool is_div = a.kind() == AtomKind::floor_div;
      const Interval n = bounds(a.args()[0], ranges_), d = bounds(a.args()[1], ranges_);
      if (n.lo >= 0 && d.lo > 0)
        return {{fmt::format("{} {} {}", arg(0).operand(), is_div ? "/" : "%", arg(1).operand()), false}, as_long};
      return {{fmt::format("dlc::{}({}, {})", is_div ? "floor_div" : "floor_mod", arg(0).s, arg(1).s), true}, as_long};
    }
    case AtomKind::min:
    case AtomKind::max:
      return {{fmt::format("dlc::{}({}, {})", a.kind() == AtomKind::min ? "min" : "max", arg(0).s, arg(1).s), true},
              as_long};
    default:
      return {{fmt::format("({} >= 0 ? {} : {})", arg(0).operand(), arg(1).operand(), arg(2).operand()), true},
              as_long};
  }
}

}  // namespace dlc::cuda
