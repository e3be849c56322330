#include "core/map/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dlc/base/checked.h"

namespace dlc::map {

// base + slope * field; without a field it is a number, and `open` where it is neither yet.
struct FieldSolver::Line {
  int64_t base = 0, slope = 0;
  int field = -1;
  bool open = false;

  bool number() const { return !open && field < 0; }
  static Line none() { return {0, 0, -1, true}; }

  Line times(int64_t k) const {
    if (k == 0) return {};
    const auto b = checked_mul(base, k), s = checked_mul(slope, k);
    if (open || !b || !s) return none();
    return {*b, *s, *s == 0 ? -1 : field, false};
  }
  Line plus(const Line& o) const {
    const auto b = checked_add(base, o.base), s = checked_add(slope, o.slope);
    if (open || o.open || !b || !s || (field >= 0 && o.field >= 0 && field != o.field)) return none();
    return {*b, *s, *s == 0 ? -1 : std::max(field, o.field), false};
  }
};

FieldSolver::FieldSolver(const HwInsn& insn) : insn_(&insn), values_(insn.fields.size()) {
  auto fields = std::make_shared<std::map<const detail::AtomNode*, int>>();
  for (size_t f = 0; f < insn.fields.size(); ++f)
    fields->emplace(Expr::symbol(insn.fields[f].name).terms()[0].factors[0].node(), static_cast<int>(f));
  fields_ = std::move(fields);
}

bool FieldSolver::fail(Failure f) {
  failure_ = std::move(f);
  return false;
}

std::string FieldSolver::why() const {
  const Equation& q = failure_.equation;
  const std::string field =
      failure_.field < 0 ? ""
                         : fmt::format("{}.{}", insn_->name, insn_->fields[static_cast<size_t>(failure_.field)].name);
  switch (failure_.kind) {
    case Failure::Kind::none:
      return {};
    case Failure::Kind::field_clash:
      return fmt::format("{} must be {}, and {}", field, q.value, failure_.is);
    case Failure::Kind::field_range: {
      const HwField& f = insn_->fields[static_cast<size_t>(failure_.field)];
      return fmt::format("{} = {} is outside {} .. {}", field, q.value, f.min(), f.max());
    }
    case Failure::Kind::field_code:
      return fmt::format("{} has no code {}", field, q.value);
    case Failure::Kind::unequal: {
      std::string given = q.e.constant() ? "" : to_string(q.e);
      if (!q.what.empty()) given = std::string(q.what) + (given.empty() ? "" : ", " + given + ",");
      const std::string is = fmt::format("{}{}{}", given, given.empty() ? "" : " is ", failure_.is);
      return fmt::format("{}: {}{} must be {}", insn_->name, is, given.empty() ? "" : ", and", q.value);
    }
    case Failure::Kind::fraction:
      return fmt::format("{}: {} cannot be {}", insn_->name, to_string(q.e), q.value);
    case Failure::Kind::number:
      return fmt::format("{}: {} must be {}", insn_->name, failure_.is, q.value);
    case Failure::Kind::open:
      return fmt::format("{}: a value of its text must be {}", insn_->name, q.value);
    case Failure::Kind::illegal:
      return failure_.illegal;
  }
  return {};
}

bool FieldSolver::set(int field, int64_t value) {
  const auto failed = [&](Failure::Kind kind, int64_t is = 0) { return fail({kind, field, is, {{}, value, {}}, {}}); };
  auto& known = values_[static_cast<size_t>(field)];
  if (known) return *known == value || failed(Failure::Kind::field_clash, *known);
  const HwField& f = insn_->fields[static_cast<size_t>(field)];
  if (value < f.min() || value > f.max() || (value - f.plus) % f.unit != 0) return failed(Failure::Kind::field_range);
  if (!f.enumerators.empty() && f.find(value) == nullptr) return failed(Failure::Kind::field_code);
  known = value;
  changed_ = true;
  return true;
}

FieldSolver::Line FieldSolver::line_of(const Atom& a) const {
  if (a.kind() == AtomKind::symbol) {
    const auto it = fields_->find(a.node());
    if (it == fields_->end()) return Line::none();
    const auto& known = values_[static_cast<size_t>(it->second)];
    return known ? Line{*known} : Line{0, 1, it->second};
  }
  const Line x = line_of(a.args()[0]);
  if (!x.number()) return Line::none();
  if (a.kind() == AtomKind::select) return line_of(a.args()[x.base >= 0 ? 1 : 2]);
  const Line y = line_of(a.args()[1]);
  const bool divides = a.kind() == AtomKind::floor_div || a.kind() == AtomKind::mod;
  if (!y.number() || (divides && y.base == 0)) return Line::none();
  switch (a.kind()) {
    case AtomKind::floor_div:
      return {floor_div(x.base, y.base)};
    case AtomKind::mod:
      return {floor_mod(x.base, y.base)};
    case AtomKind::min:
      return {std::min(x.base, y.base)};
    default:
      return {std::max(x.base, y.base)};
  }
}

FieldSolver::Line FieldSolver::line_of(const Expr& e) const {
  Line sum{0, 0, -1, !e.valid()};
  for (const Term& t : e.terms()) {
    Line product{t.coefficient};
    for (const Atom& a : t.factors) {
      const Line factor = line_of(a);
      product = factor.number()    ? product.times(factor.base)
                : product.number() ? factor.times(product.base)
                                   : Line::none();
    }
    sum = sum.plus(product);
    if (sum.open) break;
  }
  return sum;
}

std::optional<int64_t> FieldSolver::value(const Expr& e) const {
  const Line line = line_of(e);
  return line.number() ? std::optional(line.base) : std::nullopt;
}

std::map<std::string, Expr, std::less<>> FieldSolver::known() const {
  std::map<std::string, Expr, std::less<>> out;
  for (size_t f = 0; f < values_.size(); ++f)
    if (values_[f]) out.emplace(insn_->fields[f].name, Expr(*values_[f]));
  return out;
}

FieldSolver::Step FieldSolver::decide(const Equation& q) {
  const Line line = line_of(q.e);
  if (line.open) return Step::open;
  const auto failed = [&](Failure::Kind kind) {
    fail({kind, -1, line.base, q, {}});
    return Step::failed;
  };
  if (line.field < 0) return line.base == q.value ? Step::done : failed(Failure::Kind::unequal);
  if ((q.value - line.base) % line.slope != 0) return failed(Failure::Kind::fraction);
  return set(line.field, (q.value - line.base) / line.slope) ? Step::done : Step::failed;
}

bool FieldSolver::equal(const Expr& e, int64_t value, std::string_view what) {
  const Equation q{e, value, what};
  if (changed_ && !propagate()) return false;
  switch (decide(q)) {
    case Step::open:
      equations_.push_back(q);
      return true;
    case Step::done:
      return propagate();
    case Step::failed:
      break;
  }
  return false;
}

bool FieldSolver::equal(const Val& v, int64_t value, std::string_view what) {
  if (const auto e = val::as_expr(v)) return equal(*e, value, what);
  if (v->kind == ValKind::binary && (v->binary_op() == BinaryOp::eq) && value == 1) {
    const auto a = val::as_expr(v->args[0]), b = val::as_expr(v->args[1]);
    if (a && b) return equal(*a - *b, 0);
  }
  const Val n = substitute(v, known());
  if (n->kind == ValKind::integer)
    return n->integer == value || fail({Failure::Kind::number, -1, n->integer, {{}, value, {}}, {}});
  checks_.emplace_back(v, value);
  return true;
}

bool FieldSolver::propagate() {
  while (std::exchange(changed_, false))
    for (size_t i = 0; i < equations_.size();) {
      const Step step = decide(equations_[i]);
      if (step == Step::failed) return false;
      if (step == Step::open)
        ++i;
      else
        equations_.erase(equations_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  return true;
}

bool FieldSolver::finish(const HwDescription& hw, Instruction& out) {
  if (!propagate()) return false;
  for (size_t f = 0; f < insn_->fields.size(); ++f) {
    const HwField& field = insn_->fields[f];
    if (values_[f] || field.name == hw.isa.opcode_field) continue;
    const int64_t first = field.enumerators.empty() ? int64_t{0} : field.enumerators.front().value;
    if (!set(static_cast<int>(f), std::clamp(first, field.min(), field.max())) || !propagate()) return false;
  }
  out = make_instruction(hw, static_cast<int>(insn_ - hw.isa.insns.data()));
  for (size_t f = 0; f < values_.size(); ++f)
    if (values_[f]) out.fields[f] = *values_[f];
  for (const auto& [v, value] : checks_) {
    const Val n = substitute(v, known());
    if (n->kind != ValKind::integer || n->integer != value)
      return fail({Failure::Kind::open, -1, 0, {{}, value, {}}, {}});
  }
  if (!equations_.empty()) return fail({Failure::Kind::open, -1, 0, equations_.front(), {}});
  const auto holds = [&](const HwCondition& c) { return value(c.value).value_or(-1) >= 0; };
  if (std::ranges::all_of(insn_->require, holds)) return true;  // each field was checked when it was set
  if (auto legal = check_instruction(hw, out); !legal)
    return fail({Failure::Kind::illegal, -1, 0, {}, std::string(legal.error().message())});
  return true;
}

}  // namespace dlc::map
