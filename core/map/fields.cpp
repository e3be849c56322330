#include "core/map/fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace dlc::map {

bool FieldSolver::fail(std::string why) {
  why_ = std::move(why);
  return false;
}

bool FieldSolver::is_known(int field) const { return exprs_.contains(insn_->fields[static_cast<size_t>(field)].name); }

bool FieldSolver::set(int field, int64_t value) {
  const HwField& f = insn_->fields[static_cast<size_t>(field)];
  if (const auto it = exprs_.find(f.name); it != exprs_.end())
    return it->second.is(value) ||
           fail(fmt::format("{}.{} must be {}, and {}", insn_->name, f.name, value, to_string(it->second)));
  if (value < f.min() || value > f.max() || (value - f.plus) % f.unit != 0)
    return fail(fmt::format("{}.{} = {} is outside {} .. {}", insn_->name, f.name, value, f.min(), f.max()));
  if (!f.enumerators.empty() && f.find(value) == nullptr)
    return fail(fmt::format("{}.{} has no code {}", insn_->name, f.name, value));
  exprs_.emplace(f.name, Expr(value));
  return true;
}

bool FieldSolver::equal(const Expr& e, int64_t value, std::string_view what) {
  equations_.push_back({e, e, value, what});
  return propagate();
}

bool FieldSolver::equal(const Val& v, int64_t value, std::string_view what) {
  if (const auto e = val::as_expr(v)) return equal(*e, value, what);
  if (v->kind == ValKind::binary && (v->binary_op() == BinaryOp::eq) && value == 1) {
    const auto a = val::as_expr(v->args[0]), b = val::as_expr(v->args[1]);
    if (a && b) return equal(*a - *b, 0);
  }
  const Val n = substitute(v, exprs_);
  if (n->kind == ValKind::integer)
    return n->integer == value || fail(fmt::format("{}: {} must be {}", insn_->name, n->integer, value));
  checks_.emplace_back(v, value);
  return true;
}

bool FieldSolver::propagate() {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < equations_.size();) {
      const Expr e = equations_[i].rest = known(equations_[i].rest);
      const int64_t value = equations_[i].value;
      const auto symbols = e.symbols();
      if (symbols.empty()) {
        if (!e.is(value)) {
          const Equation& q = equations_[i];
          std::string given = q.given.symbols().empty() ? "" : to_string(q.given);
          if (!q.what.empty()) given = std::string(q.what) + (given.empty() ? "" : ", " + given + ",");
          const std::string is = given.empty() ? to_string(e) : fmt::format("{} is {}, and", given, to_string(e));
          return fail(fmt::format("{}: {} must be {}", insn_->name, is, value));
        }
        equations_.erase(equations_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      const auto line = symbols.size() == 1 ? affine(e, symbols) : std::nullopt;
      const auto slope = line ? line->coefficients[0].constant() : std::nullopt;
      const auto base = line ? line->base.constant() : std::nullopt;
      if (!slope || !base || *slope == 0) {
        ++i;
        continue;
      }
      if ((value - *base) % *slope != 0)
        return fail(fmt::format("{}: {} cannot be {}", insn_->name, to_string(equations_[i].given), value));
      const int field = insn_->field(symbols[0]);
      if (field < 0 || !set(field, (value - *base) / *slope)) return false;
      equations_.erase(equations_.begin() + static_cast<std::ptrdiff_t>(i));
      changed = true;
    }
  }
  return true;
}

bool FieldSolver::finish(const HwDescription& hw, Instruction& out) {
  if (!propagate()) return false;
  for (size_t f = 0; f < insn_->fields.size(); ++f) {
    const HwField& field = insn_->fields[f];
    if (exprs_.contains(field.name) || field.name == hw.isa.opcode_field) continue;
    const int64_t first = field.enumerators.empty() ? int64_t{0} : field.enumerators.front().value;
    if (!set(static_cast<int>(f), std::clamp(first, field.min(), field.max())) || !propagate()) return false;
  }
  out = make_instruction(hw, static_cast<int>(insn_ - hw.isa.insns.data()));
  for (size_t f = 0; f < insn_->fields.size(); ++f)
    if (const auto it = exprs_.find(insn_->fields[f].name); it != exprs_.end()) out.fields[f] = *it->second.constant();
  for (const auto& [v, value] : checks_) {
    const Val n = substitute(v, exprs_);
    if (n->kind != ValKind::integer || n->integer != value)
      return fail(fmt::format("{}: a value of its text must be {}", insn_->name, value));
  }
  if (auto legal = check_instruction(hw, out); !legal) return fail(std::string(legal.error().message()));
  return true;
}

}  // namespace dlc::map
