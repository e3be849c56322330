#include "core/ops/domains.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ops/bind.h"
#include "core/ops/check.h"

namespace dlc::detail {

namespace {

// A bound that depends on symbols says nothing yet.
Result<double> bound(Evaluator& eval, const Node& n, double unknown) {
  DLC_TRY(const Val v, eval.number(n, {}));
  if (v->kind == ValKind::real) return v->real;
  const auto e = val::as_expr(v);
  const auto c = e ? e->constant() : std::nullopt;
  return c ? static_cast<double>(*c) : unknown;
}

}  // namespace

Result<std::vector<std::optional<ElementDomain>>> element_domains(const RecordAst& ast,
                                                                  std::span<const Operand> operands, const Attrs& attrs,
                                                                  const Ranges& ranges, const DefTable& defs) {
  Symbols s;
  s.owner = ast.name;
  s.file = ast.file;
  s.defs = &defs;
  s.ranges = ranges;
  for (const Statement& st : ast.body) collect_lets(st, s.lets);
  Kernel k;
  DLC_CHECK(bind_signature(ast, operands, attrs, s, k));
  Evaluator eval(s);
  std::vector<std::optional<ElementDomain>> out(ast.operands.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const Domain& d = ast.operands[i].domain;
    if (d.kind != Domain::Kind::range) continue;
    ElementDomain& e = out[i].emplace();
    e.open = d.open;
    DLC_TRY(e.lo, bound(eval, d.values[0], e.lo));
    DLC_TRY(e.hi, bound(eval, d.values[1], e.hi));
  }
  return out;
}

bool has_domain(const Record& record, size_t operand) {
  const Domain& d = record.ast().operands[operand].domain;
  return d.kind == Domain::Kind::range && !d.drawn;
}

Result<> check_elements(const RecordSet& set, const Record& record, std::span<const Operand> operands,
                        const Attrs& attrs, const Ranges& ranges, std::span<const ConstantOperand> constants,
                        const Loc& where) {
  DLC_TRY(const auto domains, element_domains(record.ast(), operands, attrs, ranges, set.defs()));
  for (const ConstantOperand& c : constants) {
    const auto& domain = domains[c.operand];
    if (!has_domain(record, c.operand)) continue;
    for (int64_t i = 0; domain && i < c.value->elements(); ++i) {
      const double x = c.value->get_double(i);
      if (domain->contains(x)) continue;
      return fail(where,
                  fmt::format("{}: element {} of the constant '{}' is {}, which no {} may be", record.name(), i, c.name,
                              x, print(record.ast().operands[c.operand])),
                  "correct the constant, or export the model again");
    }
  }
  return {};
}

}  // namespace dlc::detail
