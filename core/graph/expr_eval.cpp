// A kernel evaluated with Exprs for numbers.
//
// A value is known (an Expr), unknown (depends on data or on floats) or undefined (see kernel.h). A truth value is an
// Expr that is 0 or 1, so that a comparison of symbols needs no case of its own: a < b is select(b - a - 1 >= 0, 1, 0),
// and `if c then x else y` is select(c - 1 >= 0, x, y).
#include <algorithm>

#include "core/graph/value_inference.h"

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
Known of(const Expr& e) { return e.valid() ? Known{Known::State::known, e} : unknown(); }

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
  Known eval_cast(const ValNode& n, Env& env);

  Known simple(const Expr& e) const { return of(simplify(e, ranges_)); }
  Expr at_least(const Expr& a, const Expr& b) const { return simplify(select_nonneg(a - b, 1, 0), ranges_); }
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
      for (const auto& e : given->second) m.elements.push_back(e ? of(*e) : unknown());
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
    Known value = eval(s.value, env);
    const DType type = k_.tensors[static_cast<size_t>(s.tensor)].dtype;
    if (auto c = value.constant()) value.value = Expr(wrap_to(type, *c));
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

Known Evaluator::eval(const Val& v, Env& env) {
  if (++steps_ > kMaxSteps) return unknown();
  const ValNode& n = *v;
  switch (n.kind) {
    case ValKind::integer:
      return of(Expr(n.integer));
    case ValKind::index:
      return simple(substitute(n.index, env));
    case ValKind::undef:
      return undefined();
    case ValKind::read:
      return eval_read(n, env);
    case ValKind::unary: {
      Known a = eval(n.args[0], env);
      if (!a.known()) return a;
      if (n.unary_op() == UnaryOp::neg) return of(-a.value);
      if (n.unary_op() == UnaryOp::logical_not) return simple(Expr(1) - a.value);
      if (auto c = a.constant()) return of(Expr(~*c));
      return unknown();
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
      return c.known() ? simple(select_nonneg(c.value - 1, a.value, b.value)) : unknown();
    }
    case ValKind::orelse: {
      const Known a = eval(n.args[0], env);
      return a.undefined() ? eval(n.args[1], env) : a;
    }
    case ValKind::call:
      return eval_call(n, env);
    case ValKind::cast:
      return eval_cast(n, env);
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
  if (op == BinaryOp::logical_and && a.constant() == 0) return of(0);
  if (op == BinaryOp::logical_or && a.constant() == 1) return of(1);
  const Known b = eval(n.args[1], env);
  if (b.undefined()) return b;
  if (!a.known() || !b.known()) return unknown();
  const Expr &x = a.value, &y = b.value;
  switch (op) {
    case BinaryOp::add:
      return simple(x + y);
    case BinaryOp::sub:
      return simple(x - y);
    case BinaryOp::mul:
      return simple(x * y);
    case BinaryOp::floor_div:
      return y.is(0) ? undefined() : simple(floor_div(x, y));
    case BinaryOp::mod:
      return y.is(0) ? undefined() : simple(mod(x, y));
    case BinaryOp::eq:
      return simple(at_least(x, y) * at_least(y, x));
    case BinaryOp::ne:
      return simple(Expr(1) - at_least(x, y) * at_least(y, x));
    case BinaryOp::lt:
      return simple(at_least(y, x + 1));
    case BinaryOp::le:
      return simple(at_least(y, x));
    case BinaryOp::gt:
      return simple(at_least(x, y + 1));
    case BinaryOp::ge:
      return simple(at_least(x, y));
    case BinaryOp::logical_and:
      return simple(x * y);
    case BinaryOp::logical_or:
      return simple(max(x, y));
    default:
      break;
  }
  const auto c = x.constant(), d = y.constant();
  if (!c || !d) return unknown();
  switch (op) {
    case BinaryOp::bit_and:
      return of(Expr(*c & *d));
    case BinaryOp::bit_or:
      return of(Expr(*c | *d));
    case BinaryOp::bit_xor:
      return of(Expr(*c ^ *d));
    default:
      return unknown();
  }
}

Known Evaluator::eval_call(const ValNode& n, Env& env) {
  std::vector<Expr> args;
  bool all_known = true;
  for (const Val& a : n.args) {
    const Known k = eval(a, env);
    if (k.undefined()) return k;
    all_known &= k.known();
    args.push_back(k.value);
  }
  if (!all_known) return unknown();
  switch (n.fn()) {
    case Fn::min:
    case Fn::max: {
      Expr e = args[0];
      for (size_t i = 1; i < args.size(); ++i) e = n.fn() == Fn::min ? min(e, args[i]) : max(e, args[i]);
      return simple(e);
    }
    case Fn::abs:
      return simple(select_nonneg(args[0], args[0], -args[0]));
    case Fn::sign:
      return simple(at_least(args[0], 1) - at_least(-1, args[0]));
    case Fn::tdiv:  // toward zero is toward minus infinity where both are not negative
      if (args[1].is(0)) return undefined();
      if (provably_le(0, args[0], ranges_) && provably_le(1, args[1], ranges_))
        return simple(floor_div(args[0], args[1]));
      if (auto a = args[0].constant(), b = args[1].constant(); a && b && *b != -1) return of(Expr(*a / *b));
      return unknown();
    default:
      return unknown();
  }
}

Known Evaluator::eval_cast(const ValNode& n, Env& env) {
  const Known a = eval(n.args[0], env);
  if (!a.known() || n.to.is_float() || n.args[0]->type.is_float()) return a.undefined() ? a : unknown();
  if (n.to.is_bool()) return simple(Expr(1) - at_least(a.value, 0) * at_least(0, a.value));
  if (auto c = a.constant())
    return of(Expr(n.saturate ? std::clamp(*c, n.to.min_value(), n.to.max_value()) : wrap_to(n.to, *c)));
  const Interval range = bounds(a.value, ranges_);
  const bool fits = n.to.bits == 64 || (range.lo >= n.to.min_value() && range.hi <= n.to.max_value());
  return fits ? a : unknown();
}

Known Evaluator::eval_reduce(const ValNode& n, Env& env) {
  std::optional<Expr> total;
  Known::State state = Known::State::known;
  const ReduceOp op = n.reduce_op();
  const bool complete = each_point(n.loops, env, false, [&] {
    if (state != Known::State::known) return;
    const Known x = eval(n.args[0], env);
    state = x.state;
    if (!x.known()) return;
    if (!total) {
      total = x.value;
      return;
    }
    switch (op) {
      case ReduceOp::sum:
        total = *total + x.value;
        break;
      case ReduceOp::prod:
      case ReduceOp::all:
        total = *total * x.value;
        break;
      case ReduceOp::max:
      case ReduceOp::any:
        total = max(*total, x.value);
        break;
      case ReduceOp::min:
        total = min(*total, x.value);
        break;
      case ReduceOp::argmax:
      case ReduceOp::argmin:
        state = Known::State::unknown;
    }
  });
  if (!complete || n.type.is_float()) return unknown();
  if (state != Known::State::known) return {state, {}};
  if (op == ReduceOp::argmax || op == ReduceOp::argmin) return unknown();
  if (total) return simple(*total);
  if (op == ReduceOp::sum || op == ReduceOp::any) return of(0);
  if (op == ReduceOp::prod || op == ReduceOp::all) return of(1);
  return unknown();
}

}  // namespace

std::vector<std::vector<std::optional<Expr>>> evaluate_on_exprs(
    const Kernel& k, const std::map<int, std::vector<std::optional<Expr>>>& inputs, const Ranges& ranges) {
  return Evaluator(k, inputs, ranges).run();
}

}  // namespace dlc
