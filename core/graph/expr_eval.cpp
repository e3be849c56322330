// A kernel evaluated with Exprs for numbers.
//
// A value is known (an Expr), unknown (depends on data or on floats) or undefined (see kernel.h). What the operators
// mean is not said here: the constructors of values apply them, which fold literals and index values, and the result is
// read off. A truth value is an Expr that is 0 or 1. A u64 is known while it is below 2^63, where Expr counts as it
// does; what reaches beyond is left to the interpreter.
#include <algorithm>

#include "core/graph/value_inference.h"
#include "core/kernel/typing.h"

namespace dlc {

namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 18;  // evaluated values per kernel: shapes are small, this is a guard

struct Known {
  enum class State : uint8_t { known, unknown, undefined } state = State::unknown;
  Expr value;

  bool known() const { return state == State::known; }
  bool undefined() const { return state == State::undefined; }
  std::optional<int64_t> constant() const { return known() ? value.constant() : std::nullopt; }
};

Known unknown() { return {}; }
Known undefined() { return {Known::State::undefined, {}}; }

using Env = std::map<std::string, Expr, std::less<>>;

class Evaluator {
 public:
  Evaluator(const Kernel& k, const std::map<int, std::vector<std::optional<Expr>>>& inputs, const Ranges& ranges);
  std::vector<std::vector<std::optional<Expr>>> run();

 private:
  struct Memory {
    bool usable = false;  // shape and elements are tracked
    std::vector<int64_t> shape;
    std::vector<Known> elements;
  };

  void run_body(const std::vector<Stmt>& body, Env& env);
  void assign(const Stmt& s, Env& env);
  // Calls f at every point of loops; false when an extent has no constant value or the budget is spent.
  bool each_point(const std::vector<Loop>& loops, Env& env, bool reverse, const std::function<void()>& f);
  bool each_point(const std::vector<Loop>& loops, size_t depth, Env& env, bool reverse, const std::function<void()>& f);
  std::optional<size_t> position(const Memory& m, std::span<const Known> indices, bool& out_of_bounds) const;

  Known eval(const Val& v, Env& env);
  Known eval_read(const ValNode& n, Env& env);
  Known eval_binary(const ValNode& n, Env& env);
  Known eval_call(const ValNode& n, Env& env);
  Known eval_reduce(const ValNode& n, Env& env);

  // e as a value of a type, if all it may be is one.
  Known known(const Expr& e, DType type) const;
  // A known value as the constructors of values take it, and what they made of it. Symbols are s64 between the two.
  static Val operand(const Known& k, DType type);
  Known result(const Val& v, DType type) const;
  Known converted(const Known& a, DType from, DType to, bool saturate) const;
  void forget_everything();

  const Kernel& k_;
  const Ranges& ranges_;
  std::vector<Memory> memory_;
  int64_t steps_ = 0;
};

Evaluator::Evaluator(const Kernel& k, const std::map<int, std::vector<std::optional<Expr>>>& inputs,
                     const Ranges& ranges)
    : k_(k), ranges_(ranges), memory_(k.tensors.size()) {
  for (size_t i = 0; i < k.tensors.size(); ++i) {
    const KernelTensor& t = k.tensors[i];
    Memory& m = memory_[i];
    int64_t elements = 1;
    m.usable = !t.view && (t.dtype.is_int() || t.dtype.is_bool());
    for (const Expr& d : t.shape) {
      auto c = d.constant();
      if (!c || *c < 0 || *c > ValueInference::kMaxElements) m.usable = false;
      if (!m.usable) break;
      m.shape.push_back(*c);
      elements *= *c;
      if (elements > ValueInference::kMaxElements) m.usable = false;
    }
    if (!m.usable) continue;
    auto given = inputs.find(static_cast<int>(i));
    if (given != inputs.end() && given->second.size() == static_cast<size_t>(elements)) {
      for (const auto& e : given->second) m.elements.push_back(e ? known(*e, t.dtype) : unknown());
    } else {
      const bool written_here = t.role == Role::output || t.role == Role::temp;
      m.elements.assign(static_cast<size_t>(elements), written_here ? undefined() : unknown());
    }
  }
}

std::vector<std::vector<std::optional<Expr>>> Evaluator::run() {
  Env env;
  run_body(k_.body, env);
  std::vector<std::vector<std::optional<Expr>>> results;
  for (int t : k_.outputs) {
    auto& elements = results.emplace_back();
    for (const Known& e : memory_[static_cast<size_t>(t)].elements)
      elements.push_back(e.known() ? std::optional(e.value) : std::nullopt);
  }
  return results;
}

void Evaluator::forget_everything() {
  for (size_t i = 0; i < memory_.size(); ++i)
    if (k_.tensors[i].role == Role::output || k_.tensors[i].role == Role::temp)
      std::ranges::fill(memory_[i].elements, unknown());
}

void Evaluator::run_body(const std::vector<Stmt>& body, Env& env) {
  for (const Stmt& s : body) {
    if (s.kind == Stmt::Kind::assign)
      assign(s, env);
    else if (!each_point(s.loops, env, s.step < 0, [&] { run_body(s.body, env); }))
      forget_everything();
  }
}

void Evaluator::assign(const Stmt& s, Env& env) {
  Memory& m = memory_[static_cast<size_t>(s.tensor)];
  if (!m.usable) return;
  const auto forget = [&] { std::ranges::fill(m.elements, unknown()); };
  std::vector<std::pair<size_t, Known>> writes;  // after the statement: its points do not see each other
  bool scattered = false;
  const bool complete = each_point(s.loops, env, false, [&] {
    std::vector<Known> indices;
    for (const Val& i : s.indices) indices.push_back(eval(i, env));
    bool out_of_bounds = false;
    auto at = position(m, indices, out_of_bounds);
    if (!at) {
      scattered = true;
      return;
    }
    const DType stored = k_.tensors[static_cast<size_t>(s.tensor)].dtype;
    const Known value = converted(eval(s.value, env), s.value->type, stored, false);
    writes.emplace_back(*at, value.undefined() ? unknown() : value);
  });
  if (!complete || scattered) return forget();
  for (auto& [at, value] : writes) m.elements[at] = value;
}

bool Evaluator::each_point(const std::vector<Loop>& loops, Env& env, bool reverse, const std::function<void()>& f) {
  return each_point(loops, 0, env, reverse, f);
}

bool Evaluator::each_point(const std::vector<Loop>& loops, size_t depth, Env& env, bool reverse,
                           const std::function<void()>& f) {
  if (depth == loops.size()) {
    if (++steps_ > kMaxSteps) return false;
    f();
    return true;
  }
  auto extent = substitute(loops[depth].extent, env).constant();
  if (!extent || *extent > kMaxSteps) return false;
  auto [slot, fresh] = env.try_emplace(loops[depth].var);
  const Expr outer = slot->second;
  bool complete = true;
  for (int64_t i = 0; i < *extent && complete; ++i) {
    slot->second = Expr(reverse ? *extent - 1 - i : i);
    complete = each_point(loops, depth + 1, env, reverse, f);
  }
  if (fresh)
    env.erase(slot);
  else
    slot->second = outer;
  return complete;
}

std::optional<size_t> Evaluator::position(const Memory& m, std::span<const Known> indices, bool& out_of_bounds) const {
  size_t at = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    auto i = indices[d].constant();
    if (!i) return std::nullopt;
    if (*i < 0 || *i >= m.shape[d]) {
      out_of_bounds = true;
      return std::nullopt;
    }
    at = at * static_cast<size_t>(m.shape[d]) + static_cast<size_t>(*i);
  }
  return at;
}

Known Evaluator::known(const Expr& e, DType type) const {
  if (!e.valid()) return unknown();
  if (type != kS64) {
    const Interval range = bounds(e, ranges_);
    if (range.lo < type.min_value() || range.hi > type.max_value()) return unknown();
  }
  return {Known::State::known, e};
}

Val Evaluator::operand(const Known& k, DType type) {
  const auto c = k.constant();
  if (!type.is_bool()) return c ? val::integer(*c, type) : val::index(k.value);
  return c ? val::boolean(*c != 0) : val::binary(BinaryOp::ge, val::index(k.value), val::integer(1));
}

Known Evaluator::result(const Val& v, DType type) const {
  if (v->kind == ValKind::undef) return undefined();
  if (typing::is_int_literal(v)) return known(v->integer, type);
  // A truth value of symbols is what it chooses of 1 and 0.
  const auto e = val::as_expr(v->type.is_bool() ? val::select(v, val::integer(1), val::integer(0)) : v);
  return e ? known(simplify(*e, ranges_), type) : unknown();
}

Known Evaluator::converted(const Known& a, DType from, DType to, bool saturate) const {
  if (a.undefined()) return a;
  if (!a.known() || to.is_float() || from.is_float()) return unknown();
  if (a.constant() || to.is_bool()) return result(val::cast(to, operand(a, from), saturate), to);
  return known(a.value, to);
}

Known Evaluator::eval(const Val& v, Env& env) {
  if (++steps_ > kMaxSteps) return unknown();
  const ValNode& n = *v;
  switch (n.kind) {
    case ValKind::integer:
      return known(n.integer, n.type);
    case ValKind::index:
      return known(simplify(substitute(n.index, env), ranges_), n.type);
    case ValKind::undef:
      return undefined();
    case ValKind::read:
      return eval_read(n, env);
    case ValKind::unary: {
      const Known a = eval(n.args[0], env);
      return a.known() ? result(val::unary(n.unary_op(), operand(a, n.args[0]->type)), n.type) : a;
    }
    case ValKind::binary:
      return eval_binary(n, env);
    case ValKind::select: {
      const Known c = eval(n.args[0], env);
      if (c.undefined()) return c;
      if (auto constant = c.constant()) return eval(n.args[*constant != 0 ? 1 : 2], env);
      const Known a = eval(n.args[1], env), b = eval(n.args[2], env);
      if (!a.known() || !b.known()) return unknown();
      if (a.value == b.value) return a;
      return c.known() ? known(simplify(select_nonneg(c.value - 1, a.value, b.value), ranges_), n.type) : unknown();
    }
    case ValKind::orelse: {
      const Known a = eval(n.args[0], env);
      return a.undefined() ? eval(n.args[1], env) : a;
    }
    case ValKind::call:
      return eval_call(n, env);
    case ValKind::cast:
      return converted(eval(n.args[0], env), n.args[0]->type, n.to, n.saturate);
    case ValKind::reduce:
      return eval_reduce(n, env);
    case ValKind::real:
      break;
  }
  return unknown();
}

Known Evaluator::eval_read(const ValNode& n, Env& env) {
  const Memory& m = memory_[static_cast<size_t>(n.tensor)];
  std::vector<Known> indices;
  for (const Val& a : n.args) {
    indices.push_back(eval(a, env));
    if (indices.back().undefined()) return undefined();
  }
  if (!m.usable) return unknown();
  bool out_of_bounds = false;
  auto at = position(m, indices, out_of_bounds);
  if (at) return m.elements[*at];
  return out_of_bounds ? undefined() : unknown();
}

Known Evaluator::eval_binary(const ValNode& n, Env& env) {
  const Known a = eval(n.args[0], env);
  const BinaryOp op = n.binary_op();
  if (a.undefined()) return a;
  if (op == BinaryOp::logical_and && a.constant() == 0) return a;
  if (op == BinaryOp::logical_or && a.constant() == 1) return a;
  const Known b = eval(n.args[1], env);
  if (b.undefined()) return b;
  if (!a.known() || !b.known()) return unknown();
  return result(val::binary(op, operand(a, n.args[0]->type), operand(b, n.args[1]->type)), n.type);
}

Known Evaluator::eval_call(const ValNode& n, Env& env) {
  std::vector<Known> known_args;
  std::vector<Val> args;
  for (const Val& a : n.args) {
    known_args.push_back(eval(a, env));
    if (known_args.back().undefined()) return undefined();
    if (known_args.back().known()) args.push_back(operand(known_args.back(), a->type));
  }
  if (args.size() != n.args.size()) return unknown();
  const Val v = val::call(n.fn(), args);
  if (v->kind != ValKind::call) return result(v, n.type);
  // Functions of symbols that are index values too, some by what is known of the symbols.
  const auto chosen = [&](const Expr& e) { return known(simplify(e, ranges_), n.type); };
  const Expr& x = known_args[0].value;
  if (n.fn() == Fn::abs) return chosen(select_nonneg(x, x, -x));
  if (n.fn() == Fn::sign) return chosen(select_nonneg(x - 1, 1, 0) - select_nonneg(-x - 1, 1, 0));
  if (n.fn() != Fn::tdiv) return unknown();
  // Toward zero is toward minus infinity where both are not negative.
  const Expr& y = known_args[1].value;
  return provably_le(0, x, ranges_) && provably_le(1, y, ranges_) ? chosen(floor_div(x, y)) : unknown();
}

// What a reduction does to two of its values.
Val joined(ReduceOp op, const Val& a, const Val& b) {
  switch (op) {
    case ReduceOp::sum:
      return val::binary(BinaryOp::add, a, b);
    case ReduceOp::prod:
      return val::binary(BinaryOp::mul, a, b);
    case ReduceOp::all:
      return val::binary(BinaryOp::logical_and, a, b);
    case ReduceOp::any:
      return val::binary(BinaryOp::logical_or, a, b);
    default:
      return val::call(op == ReduceOp::max ? Fn::max : Fn::min, {a, b});
  }
}

Known Evaluator::eval_reduce(const ValNode& n, Env& env) {
  const ReduceOp op = n.reduce_op();
  if (n.type.is_float() || op == ReduceOp::argmax || op == ReduceOp::argmin) return unknown();
  std::optional<Known> total;
  const bool complete = each_point(n.loops, env, false, [&] {
    if (total && !total->known()) return;
    const Known x = eval(n.args[0], env);
    total = total && x.known() ? result(joined(op, operand(*total, n.type), operand(x, n.type)), n.type) : x;
  });
  if (!complete) return unknown();
  if (total) return *total;
  if (op == ReduceOp::sum || op == ReduceOp::any) return known(0, n.type);
  if (op == ReduceOp::prod || op == ReduceOp::all) return known(1, n.type);
  return unknown();
}

}  // namespace

std::vector<std::vector<std::optional<Expr>>> evaluate_on_exprs(
    const Kernel& k, const std::map<int, std::vector<std::optional<Expr>>>& inputs, const Ranges& ranges) {
  return Evaluator(k, inputs, ranges).run();
}

}  // namespace dlc
