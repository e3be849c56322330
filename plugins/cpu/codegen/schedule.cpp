#include "schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace dlc::cpu {

namespace {

// How well v's reads go along `var` as the vector loop: contiguous reads count for it, gathers against it, and those
// inside reductions count four times.
int read_score(const Lowered& l, const Val& v, std::string_view var, int weight) {
  int score = 0;
  const VarSet bit = l.bit(var);
  if (!(l.vars(v.get()) & bit)) return 0;
  if (v->kind == ValKind::read) {
    const Access& a = l.access(v.get());
    bool gather = false;
    for (int d : a.dynamic) gather |= (l.vars(v->args[static_cast<size_t>(d)].get()) & bit) != 0;
    const auto stride = l.stride(a, var);
    const int bytes = l.kernel().tensors[static_cast<size_t>(v->tensor)].dtype.bytes();
    score += weight * (gather || !stride ? -3 : *stride == bytes ? 1 : *stride == 0 ? 0 : -2);
    for (int d : a.dynamic) score += read_score(l, v->args[static_cast<size_t>(d)], var, weight);
    return score;
  }
  for (const Val& arg : v->args) score += read_score(l, arg, var, v->kind == ValKind::reduce ? 4 * weight : weight);
  return score;
}

bool has_only_vector_calls(const Lowered& l, const Val& v, VarSet bit) {
  if (!(l.vars(v.get()) & bit)) return true;
  if (v->kind == ValKind::call && !has_vector_form(v->fn(), v->type)) return false;
  if (v->kind == ValKind::call && v->args[0]->type == kF64 && !has_vector_form(v->fn(), kF64)) return false;
  if (v->kind == ValKind::binary && v->binary_op() == BinaryOp::mod && v->type.is_float()) return false;
  return std::ranges::all_of(v->args, [&](const Val& a) { return has_only_vector_calls(l, a, bit); });
}

void collect_reductions(const Val& v, std::vector<const ValNode*>& out) {
  if (v->kind == ValKind::reduce) out.push_back(v.get());
  for (const Val& a : v->args) collect_reductions(a, out);
}

// The largest divisor of n up to `limit`; `limit` itself when n is not known, or when only tiny divisors exist.
int64_t tile_count(const Expr& n, int64_t limit) {
  const auto c = n.constant();
  if (!c) return limit;
  if (*c <= limit) return std::max<int64_t>(*c, 1);
  for (int64_t d = limit; d > limit / 2; --d)
    if (*c % d == 0) return d;
  return limit;
}

// A product of two reads, which is what register tiles in two directions pay for.
const ValNode* product_body(const ValNode& reduce) {
  const Val& body = reduce.args[0];
  return reduce.reduce_op() == ReduceOp::sum && body->kind == ValKind::binary && body->binary_op() == BinaryOp::mul
             ? body.get()
             : nullptr;
}

}  // namespace

bool has_vector_form(Fn fn, DType type) {
  switch (fn) {
    case Fn::exp:
    case Fn::log:
    case Fn::tanh:
    case Fn::erf:
      return type == kF32;
    case Fn::sqrt:
    case Fn::rsqrt:
    case Fn::abs:
    case Fn::sign:
    case Fn::floor:
    case Fn::ceil:
    case Fn::round:
    case Fn::trunc:
    case Fn::min:
    case Fn::max:
    case Fn::is_nan:
    case Fn::is_inf:
      return true;
    default:
      return type.is_int() && fn != Fn::pow;
  }
}

int lanes_for(const Lowered& l, const ValNode& v, int vector_bytes) {
  int width = 1;
  const std::function<void(const ValNode&)> visit = [&](const ValNode& n) {
    if (l.rep(&n) != Rep::b1) width = std::max(width, std::max(4, bytes_of(l.rep(&n))));
    for (const Val& a : n.args)
      if (!(n.kind == ValKind::read && val::as_expr(a))) visit(*a);
  };
  visit(v);
  return std::max(1, vector_bytes / std::max(width, 4));
}

int vector_loop_of_reduction(const Lowered& l, const ValNode& v) {
  if (v.reduce_op() == ReduceOp::argmax || v.reduce_op() == ReduceOp::argmin) return -1;
  int best = -1, best_score = 0;
  for (size_t i = 0; i < v.loops.size(); ++i) {
    const Loop& loop = v.loops[i];
    const auto n = loop.extent.constant();
    if (n && *n < 8) continue;
    bool bound_by_others = false;  // a triangular loop nest keeps its order
    for (const Loop& other : v.loops)
      bound_by_others |= other.extent.mentions(loop.var) || (l.vars(loop.extent) & l.bit(other.var));
    if (bound_by_others || !has_only_vector_calls(l, v.args[0], l.bit(loop.var))) continue;
    const int score = read_score(l, v.args[0], loop.var, 1);
    if (score > best_score) best = static_cast<int>(i), best_score = score;
  }
  return best;
}

Schedule choose_schedule(const Lowered& l, const Target& target) {
  Schedule s;
  const std::vector<Loop>& loops = l.loops();
  std::vector<const ValNode*> reductions;
  collect_reductions(l.value(), reductions);

  // The vector loop.
  int vector = -1, best_score = -1;
  for (size_t i = 0; i < loops.size(); ++i) {
    const Loop& loop = loops[i];
    const auto n = loop.extent.constant();
    if (n && *n < 4) continue;
    const auto stride = l.stride(l.store(), loop.var);
    bool usable = stride && *stride == l.store_type().bytes();
    for (const Loop& other : loops) usable &= !other.extent.mentions(loop.var);
    for (int d : l.store().dynamic)
      usable &= !(l.vars(l.store_indices()[static_cast<size_t>(d)].get()) & l.bit(loop.var));
    for (const ValNode* r : reductions)
      for (const Loop& other : r->loops) usable &= !other.extent.mentions(loop.var);
    if (!usable || !has_only_vector_calls(l, l.value(), l.bit(loop.var))) continue;
    const int score = read_score(l, l.value(), loop.var, 1);
    if (score > best_score) vector = static_cast<int>(i), best_score = score;
  }
  if (vector >= 0) {
    s.lanes =
        l.is_copy() ? target.vector_bytes / l.store_type().bytes() : lanes_for(l, *l.value(), target.vector_bytes);
    if (const auto n = loops[static_cast<size_t>(vector)].extent.constant(); n && *n < s.lanes)
      s.lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(*n)));
  }
  const VarSet vector_bit = vector >= 0 ? l.bit(loops[static_cast<size_t>(vector)].var) : 0;

  // The loop beside it that is unrolled, so that several accumulators are in flight and loads are shared.
  int beside = -1;
  int64_t beside_count = 1, vector_count = 1;
  if (!reductions.empty()) {
    const ValNode& r = *reductions.front();
    const ValNode* product = product_body(r);
    for (int i = static_cast<int>(loops.size()) - 1; i >= 0; --i) {
      const Loop& loop = loops[static_cast<size_t>(i)];
      if (i == vector || loop.extent.is(1) || !(l.vars(&r) & l.bit(loop.var))) continue;
      bool bounds_others = false;
      for (const Loop& other : loops) bounds_others |= other.extent.mentions(loop.var);
      for (const ValNode* n : reductions)
        for (const Loop& other : n->loops) bounds_others |= other.extent.mentions(loop.var);
      if (bounds_others) continue;
      if (beside < 0) beside = i;
      if (!product) break;
      const VarSet a = l.vars(product->args[0].get()), b = l.vars(product->args[1].get()), bit = l.bit(loop.var);
      const bool shares = ((a & bit) && (b & vector_bit) && !(a & vector_bit) && !(b & bit)) ||
                          ((b & bit) && (a & vector_bit) && !(b & vector_bit) && !(a & bit));
      if (!shares) continue;
      beside = i;
      const Expr& n = loops[static_cast<size_t>(vector)].extent;
      const int64_t vectors = n.constant() ? *n.constant() / s.lanes : 2;
      vector_count = vectors >= 2 ? 2 : 1;
      beside_count = tile_count(loop.extent, target.registers >= 32 ? (vector_count == 2 ? 14 : 24) : 6);
      break;
    }
    if (beside >= 0 && beside_count == 1) {
      const bool row_reduction = vector < 0 && vector_loop_of_reduction(l, r) >= 0;
      beside_count = row_reduction && !product ? 1
                                               : tile_count(loops[static_cast<size_t>(beside)].extent,
                                                            target.registers >= 32 ? (vector >= 0 ? 14 : 8) : 4);
    }
  }

  for (int i = 0; i < static_cast<int>(loops.size()); ++i)
    if (i != vector && i != beside)
      s.loops.push_back({loops[static_cast<size_t>(i)].var, ScheduleLoop::Kind::point, 1});
  if (beside >= 0)
    s.loops.push_back({loops[static_cast<size_t>(beside)].var,
                       beside_count > 1 ? ScheduleLoop::Kind::tile : ScheduleLoop::Kind::point, beside_count});
  if (vector >= 0)
    s.loops.push_back({loops[static_cast<size_t>(vector)].var, ScheduleLoop::Kind::vector, vector_count});
  return s;
}

Schedule default_schedule(const Kernel& k, const Stmt& assign, const Target& target) {
  auto l = Lowered::make(k, assign, {});
  if (!l) return {};
  l->collapse_loops();
  return choose_schedule(*l, target);
}

std::string to_string(const Schedule& s) {
  std::string out;
  for (const ScheduleLoop& l : s.loops) {
    static constexpr const char* kNames[] = {"", " tile ", " vector ", " block "};
    out += (out.empty() ? "" : ", ") + l.var + kNames[static_cast<int>(l.kind)];
    if (l.kind == ScheduleLoop::Kind::vector)
      out += fmt::format("{}x{}", l.step, s.lanes);
    else if (l.kind != ScheduleLoop::Kind::point)
      out += std::to_string(l.step);
  }
  if (s.unroll > 1) out += fmt::format("; unroll {}", s.unroll);
  return out;
}

}  // namespace dlc::cpu
