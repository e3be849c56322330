#include "core/interp/expr_code.h"

#include <algorithm>
#include <array>

#include "dlc/base/checked.h"

namespace dlc::interp {

int Slots::of(std::string_view name) {
  if (const auto it = slots_.find(name); it != slots_.end()) return it->second;
  const int slot = size();
  slots_.emplace(name, slot);
  names_.emplace_back(name);
  return slot;
}

std::optional<int> Slots::find(std::string_view name) const {
  const auto it = slots_.find(name);
  return it == slots_.end() ? std::nullopt : std::optional(it->second);
}

namespace {

const Slots& with_symbols(const Expr& e, Slots& slots) {
  for (const auto& s : e.symbols()) slots.of(s);
  return slots;
}

}  // namespace

ExprCode::ExprCode(const Expr& e, Slots& slots) : ExprCode(e, with_symbols(e, slots)) {}

ExprCode::ExprCode(const Expr& e, const Slots& slots) {
  if (const auto c = e.constant()) {
    constant_ = *c;
    return;
  }
  emit(e, slots);
  std::ranges::sort(used_);
  used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
}

void ExprCode::push(Op::Kind kind, int64_t value) {
  ops_.push_back({kind, value});
  if (kind == Op::Kind::slot) used_.push_back(static_cast<int>(value));
}

void ExprCode::emit(const Expr& e, const Slots& slots) {
  bool first_term = true;
  for (const Term& t : e.terms()) {
    bool first_factor = true;
    if (t.coefficient != 1 || t.factors.empty()) {
      push(Op::Kind::constant, t.coefficient);
      first_factor = false;
    }
    for (const Atom& a : t.factors) {
      emit(a, slots);
      if (!first_factor) push(Op::Kind::mul);
      first_factor = false;
    }
    if (!first_term) push(Op::Kind::add);
    first_term = false;
  }
  if (first_term) push(Op::Kind::constant, 0);
}

void ExprCode::emit(const Atom& a, const Slots& slots) {
  if (a.kind() == AtomKind::symbol) return push(Op::Kind::slot, slots.find(a.name()).value_or(0));
  for (const Expr& arg : a.args()) emit(arg, slots);
  switch (a.kind()) {
    case AtomKind::floor_div:
      return push(Op::Kind::floor_div);
    case AtomKind::mod:
      return push(Op::Kind::mod);
    case AtomKind::min:
      return push(Op::Kind::min);
    case AtomKind::max:
      return push(Op::Kind::max);
    default:
      return push(Op::Kind::select);
  }
}

std::optional<int64_t> ExprCode::evaluate(const int64_t* env) const {
  if (ops_.empty()) return constant_;
  std::array<int64_t, kMaxExprDepth> stack;
  size_t n = 0;
  for (const Op& op : ops_) {
    if (op.kind == Op::Kind::constant || op.kind == Op::Kind::slot) {
      if (n == stack.size()) return std::nullopt;
      stack[n++] = op.kind == Op::Kind::constant ? op.value : env[op.value];
      continue;
    }
    const int64_t b = stack[--n];
    int64_t& a = stack[n - 1];
    switch (op.kind) {
      case Op::Kind::add:
        if (__builtin_add_overflow(a, b, &a)) return std::nullopt;
        break;
      case Op::Kind::mul:
        if (__builtin_mul_overflow(a, b, &a)) return std::nullopt;
        break;
      case Op::Kind::floor_div:
        if (b == 0) return std::nullopt;
        a = floor_div(a, b);
        break;
      case Op::Kind::mod:
        if (b == 0) return std::nullopt;
        a = floor_mod(a, b);
        break;
      case Op::Kind::min:
        a = std::min(a, b);
        break;
      case Op::Kind::max:
        a = std::max(a, b);
        break;
      default: {  // select: condition, a, b
        --n;
        stack[n - 1] = stack[n - 1] >= 0 ? a : b;
        break;
      }
    }
  }
  return stack[0];
}

}  // namespace dlc::interp
