#include "core/hw/field_code.h"

#include <algorithm>

#include "dlc/base/checked.h"

namespace dlc {

std::optional<FieldCode> FieldCode::make(const Expr& e, const HwInsn& insn) {
  if (!e.valid()) return std::nullopt;
  FieldCode code;
  for (const Term& t : e.terms()) {
    Product p{t.coefficient, {}};
    for (const Atom& a : t.factors) {
      Factor f;
      f.kind = a.kind();
      if (f.kind == AtomKind::symbol) {
        f.field = insn.field(a.name());
        if (f.field < 0) return std::nullopt;
      } else {
        for (const Expr& arg : a.args()) {
          auto c = make(arg, insn);
          if (!c) return std::nullopt;
          f.args.push_back(std::move(*c));
        }
      }
      p.factors.push_back(std::move(f));
    }
    code.terms_.push_back(std::move(p));
  }
  return code;
}

std::optional<int64_t> FieldCode::run(const Factor& f, std::span<const int64_t> fields) {
  if (f.kind == AtomKind::symbol) return fields[static_cast<size_t>(f.field)];
  const auto a = f.args[0].run(fields);
  if (!a) return std::nullopt;
  if (f.kind == AtomKind::select) return f.args[*a >= 0 ? 1 : 2].run(fields);
  const auto b = f.args[1].run(fields);
  if (!b) return std::nullopt;
  switch (f.kind) {
    case AtomKind::floor_div:
      return *b == 0 ? std::nullopt : std::optional<int64_t>(floor_div(*a, *b));
    case AtomKind::mod:
      return *b == 0 ? std::nullopt : std::optional<int64_t>(floor_mod(*a, *b));
    case AtomKind::min:
      return std::min(*a, *b);
    default:
      return std::max(*a, *b);
  }
}

std::optional<int64_t> FieldCode::run(std::span<const int64_t> fields) const {
  int64_t sum = 0;
  for (const Product& p : terms_) {
    int64_t v = p.coefficient;
    for (const Factor& f : p.factors) {
      const auto x =
          f.kind == AtomKind::symbol ? std::optional<int64_t>(fields[static_cast<size_t>(f.field)]) : run(f, fields);
      const auto m = x ? checked_mul(v, *x) : std::nullopt;
      if (!m) return std::nullopt;
      v = *m;
    }
    const auto s = checked_add(sum, v);
    if (!s) return std::nullopt;
    sum = *s;
  }
  return sum;
}

}  // namespace dlc
