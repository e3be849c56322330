// Reductions. The accumulators of all points of the register tile run through the loops together, as phis.
#include <bit>

#include "emitter.h"
#include "schedule.h"

namespace dlc::cpu {

namespace {

bool is_arg(const ValNode& r) { return r.reduce_op() == ReduceOp::argmax || r.reduce_op() == ReduceOp::argmin; }

}  // namespace

Rep Emitter::accumulator_rep(const ValNode& r) const {
  if (r.type.is_bool()) return Rep::b1;
  if (r.type.is_float()) return r.type == kF64 ? Rep::f64 : Rep::f32;
  const bool wraps = r.reduce_op() == ReduceOp::sum || r.reduce_op() == ReduceOp::prod;
  if (wraps) return r.to.bits <= 32 || l_->rep(&r) == Rep::i32 ? Rep::i32 : Rep::i64;  // exact modulo 2^32
  return r.to.min_value() >= INT32_MIN && r.to.max_value() <= INT32_MAX ? Rep::i32 : Rep::i64;
}

Emitter::Value* Emitter::identity(const ValNode& r, int lanes) {
  llvm::Type* element = type_of(accumulator_rep(r));
  llvm::Type* type = lanes > 1 ? llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes)) : element;
  const double infinity = std::numeric_limits<double>::infinity();
  double d = 0;
  int64_t i = 0;
  switch (r.reduce_op()) {
    case ReduceOp::prod:
    case ReduceOp::all:
      d = 1, i = 1;
      break;
    case ReduceOp::max:
      d = -infinity, i = r.to.is_int() ? r.to.min_value() : 0;
      break;
    case ReduceOp::min:
      d = infinity, i = r.to == kU64 ? -1 : r.to.is_int() ? r.to.max_value() : 1;
      break;
    default:
      break;
  }
  return r.type.is_float() ? llvm::ConstantFP::get(type, d)
                           : llvm::ConstantInt::get(type, static_cast<uint64_t>(i), true);
}

// The body's value as the accumulator takes it.
Emitter::Value* Emitter::narrow(const ValNode& r, Value* v) {
  if (!r.type.is_int()) return v;
  const ValNode* body = r.args[0].get();
  const bool saturates = r.reduce_op() == ReduceOp::max || r.reduce_op() == ReduceOp::min;
  if (saturates) {
    const Interval range = l_->range(body);
    if (r.to.bits < 64 && !(range.lo >= r.to.min_value() && range.hi <= r.to.max_value())) {
      if (r.to.bits >= 32) v = resize(v, Rep::i64);
      v = saturate(v, body->type, r.to);
    }
  }
  return resize(v, accumulator_rep(r));
}

Emitter::Value* Emitter::combine(const ValNode& r, Value* a, Value* b) {
  const bool is_float = r.type.is_float(), is_unsigned = r.type == kU64;
  const auto rounded = [&](Value* v) {  // a narrow accumulator is rounded at every step
    return r.to.is_narrow_float() ? decode(r.to, encode(r.to, v, kF32), Rep::f32) : v;
  };
  switch (r.reduce_op()) {
    case ReduceOp::sum:
      return is_float ? rounded(b_.CreateFAdd(a, b)) : b_.CreateAdd(a, b);
    case ReduceOp::prod:
      return is_float ? rounded(b_.CreateFMul(a, b)) : b_.CreateMul(a, b);
    case ReduceOp::any:
      return b_.CreateOr(a, b);
    case ReduceOp::all:
      return b_.CreateAnd(a, b);
    case ReduceOp::max:
    case ReduceOp::min: {
      const bool is_max = r.reduce_op() == ReduceOp::max;
      if (is_float) return float_min_max(a, rounded(b), is_max);
      if (r.type.is_bool()) return is_max ? b_.CreateOr(a, b) : b_.CreateAnd(a, b);
      const auto id = is_max ? (is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax)
                             : (is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin);
      return b_.CreateBinaryIntrinsic(id, a, b);
    }
    default:
      error("a reduction of unknown kind");
      return a;
  }
}

Cell Emitter::finish(const ValNode& r, Value* acc, Value* ok) {
  if (!r.type.is_int()) return {acc, ok};
  const bool wraps = r.reduce_op() == ReduceOp::sum || r.reduce_op() == ReduceOp::prod;
  if (wraps && l_->rep(&r) == Rep::i64 && r.to.bits <= 32 && !r.to.is_signed())
    return {resize(r.to.bits == 32 ? acc : wrap(acc, r.to), Rep::i64, true), ok};
  if (wraps) acc = wrap(acc, r.to);
  return {resize(acc, l_->rep(&r)), ok};
}

// One step of all accumulators.
void Emitter::accumulate(const ValNode& r, VarSet dims, std::vector<Value*>& carried) {
  scopes_.push_back({});  // values of this copy of the body only
  const Val& body = r.args[0];
  const size_t n = points(dims);
  const bool carries_ok = l_->may_be_undefined(body.get());
  const bool fuses = r.reduce_op() == ReduceOp::sum && r.type.is_float() && !r.to.is_narrow_float() && !carries_ok &&
                     body->kind == ValKind::binary && body->binary_op() == BinaryOp::mul && body->type == r.type;
  if (fuses) {
    eval(body->args[1]);
    eval(body->args[0]);
  } else {
    eval(body);
  }
  for (size_t i = 0; i < n; ++i) {
    Value *acc = carried[i], *next = nullptr, *ok = nullptr;
    if (fuses) {
      Value *a = cell_at(body->args[0], dims, i).v, *b = cell_at(body->args[1], dims, i).v;
      if (is_vector(acc)) a = broadcast(a), b = broadcast(b);
      next = fma(a, b, acc);
    } else {
      const Cell& c = cell_at(body, dims, i);
      Value* v = narrow(r, c.v);
      if (is_vector(acc)) v = broadcast(v);
      next = combine(r, acc, v);
      ok = c.ok;
    }
    carried[i] = reduce_mask_ ? b_.CreateSelect(reduce_mask_, next, acc) : next;
    if (carries_ok && ok) {
      if (is_vector(carried[n + i])) ok = broadcast(ok);
      if (reduce_mask_) ok = b_.CreateOr(ok, b_.CreateNot(reduce_mask_));
      carried[n + i] = b_.CreateAnd(carried[n + i], ok);
    }
  }
  scopes_.pop_back();
}

int64_t Emitter::unroll_of(const Loop& loop) const {
  const auto n = loop.extent.constant();
  if (!n || *n <= 0) return 1;
  const int64_t limit = schedule_->unroll > 0 ? schedule_->unroll : *n <= 4 ? *n : 1;
  for (int64_t u = std::min(limit, *n); u > 1; --u)
    if (*n % u == 0) return u;
  return 1;
}

void Emitter::reduce_nest(const ValNode& r, size_t depth, VarSet dims, std::vector<Value*>& carried) {
  if (depth == r.loops.size()) {
    accumulate(r, dims, carried);
    return;
  }
  const Loop& loop = r.loops[depth];
  const bool innermost = depth + 1 == r.loops.size();
  const int64_t unroll = innermost ? unroll_of(loop) : 1;
  OpenLoop open = open_loop(loop.var, b_.getInt64(0), expr(loop.extent), unroll, false, carried);
  if (innermost) {
    prefetch();
    for (int64_t u = 0; u < unroll; ++u) {
      fixed_[loop.var] = u;
      accumulate(r, dims, carried);
    }
    fixed_.erase(loop.var);
  } else {
    hoist_bound(r.args[0]);
    reduce_nest(r, depth + 1, dims, carried);
  }
  close_loop(open, carried);
}

// Computes what `v` needs of the loops that are open, the register tile included.
void Emitter::hoist_bound(const Val& v) {
  if (!l_->computes(v.get())) return;
  if ((l_->vars(v.get()) & ~bound_vars()) == 0) {
    eval(v);
    return;
  }
  for (const Val& arg : v->args) hoist_bound(arg);
}

Cells Emitter::reduce(const Val& v) {
  if (is_arg(*v)) return reduce_position(v);
  const bool varies = tile_.lanes > 1 && (l_->vars(v.get()) & l_->bit(tile_.vector_var));
  if (!varies) {
    if (const int loop = vector_loop_of_reduction(*l_, *v); loop >= 0) return reduce_as_vectors(v, loop);
  }
  return reduce_in_place(v);
}

Cells Emitter::reduce_in_place(const Val& v) {
  const VarSet dims = dims_of(v.get());
  const size_t n = points(dims);
  const bool varies = tile_.lanes > 1 && (l_->vars(v.get()) & l_->bit(tile_.vector_var));
  const int lanes = varies ? tile_.lanes : 1;
  std::vector<Value*> carried(n, identity(*v, lanes));
  if (l_->may_be_undefined(v->args[0].get()))
    carried.resize(2 * n, lanes > 1 ? b_.CreateVectorSplat(static_cast<unsigned>(lanes), b_.getTrue()) : b_.getTrue());
  Value* mask = std::exchange(reduce_mask_, nullptr);
  hoist_bound(v->args[0]);
  reduce_nest(*v, 0, dims, carried);
  reduce_mask_ = mask;
  Cells out;
  for (size_t i = 0; i < n; ++i) out.push_back(finish(*v, carried[i], carried.size() > n ? carried[n + i] : nullptr));
  return out;
}

Emitter::Value* Emitter::first_lanes(Value* count) {
  auto* type = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(tile_.lanes));
  Value* n = b_.CreateVectorSplat(static_cast<unsigned>(tile_.lanes), b_.CreateTrunc(count, b_.getInt32Ty()));
  return b_.CreateICmpULT(b_.CreateStepVector(type), n);
}

void Emitter::reduce_vector_nest(const ValNode& r, size_t depth, int loop, VarSet dims, std::vector<Value*>& carried) {
  if (static_cast<int>(depth) == loop) ++depth;
  if (depth < r.loops.size()) {
    OpenLoop open = open_loop(r.loops[depth].var, b_.getInt64(0), expr(r.loops[depth].extent), 1, false, carried);
    hoist_bound(r.args[0]);
    reduce_vector_nest(r, depth + 1, loop, dims, carried);
    close_loop(open, carried);
    return;
  }
  const Loop& along = r.loops[static_cast<size_t>(loop)];
  TileDim& dim = tile_.dims.back();
  const int64_t lanes = tile_.lanes, step = dim.count * lanes;
  const auto n = along.extent.constant();
  Value* extent = expr(along.extent);
  Value* main_end = expr(along.extent - mod(along.extent, Expr(step)));
  if (!n || *n >= step) {
    OpenLoop open = open_loop(along.var, b_.getInt64(0), main_end, step, false, carried);
    accumulate(r, dims, carried);
    close_loop(open, carried);
  }
  if (n && *n % step == 0) return;
  // The rest, one vector at a time and only into the first accumulator of each point.
  const auto count = static_cast<size_t>(dim.count);
  std::vector<Value*> first;
  for (size_t i = 0; i < carried.size(); i += count) first.push_back(carried[i]);
  dim.count = 1;
  OpenLoop open = open_loop(along.var, main_end, extent, lanes, false, first);
  if (!n || *n % lanes != 0) {
    reduce_mask_ = first_lanes(b_.CreateSub(extent, open.counter));
    tile_.active = reduce_mask_;
  }
  accumulate(r, dims, first);
  reduce_mask_ = nullptr;
  tile_.active = nullptr;
  close_loop(open, first);
  dim.count = static_cast<int>(count);
  for (size_t i = 0; i < first.size(); ++i) carried[i * count] = first[i];
}

Cells Emitter::reduce_as_vectors(const Val& v, int loop) {
  const VarSet outer_dims = dims_of(v.get());
  const size_t n = points(outer_dims);
  hoist_bound(v->args[0]);
  const Tile saved = tile_;
  Value* mask = std::exchange(reduce_mask_, nullptr);
  const Loop& along = v->loops[static_cast<size_t>(loop)];
  const auto extent = along.extent.constant();
  tile_.vector_var = along.var;
  tile_.active = nullptr;
  tile_.lanes = lanes_for(*l_, *v, target_.vector_bytes);
  if (extent && *extent < tile_.lanes) tile_.lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(*extent)));
  int count = n >= 8 ? 1 : n >= 2 ? 2 : 4;
  while (extent && count > 1 && *extent < int64_t{count} * tile_.lanes) count /= 2;
  tile_.dims.push_back({along.var, count, tile_.lanes});
  const VarSet dims = outer_dims | VarSet{1} << (tile_.dims.size() - 1);

  const size_t total = n * static_cast<size_t>(count);
  std::vector<Value*> carried(total, identity(*v, tile_.lanes));
  if (l_->may_be_undefined(v->args[0].get())) carried.resize(2 * total, broadcast(b_.getTrue()));
  reduce_vector_nest(*v, 0, loop, dims, carried);

  Cells out;
  for (size_t i = 0; i < n; ++i) {
    Value *acc = nullptr, *ok = nullptr;
    for (size_t u = 0; u < static_cast<size_t>(count); ++u) {
      const size_t at = i * static_cast<size_t>(count) + u;
      acc = acc ? combine(*v, acc, carried[at]) : carried[at];
      if (carried.size() > total) ok = both(ok, carried[total + at]);
    }
    acc = horizontal(*v, acc);
    if (ok) ok = is_vector(ok) ? b_.CreateAndReduce(ok) : ok;
    out.push_back(finish(*v, acc, ok));
  }
  tile_ = saved;
  reduce_mask_ = mask;
  return out;
}

// Halves the vector until one element is left.
Emitter::Value* Emitter::horizontal(const ValNode& r, Value* v) {
  if (!is_vector(v)) return v;
  for (int n = static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements()) / 2; n >= 1;
       n /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < n; ++i) low.push_back(i), high.push_back(n + i);
    v = combine(r, b_.CreateShuffleVector(v, low), b_.CreateShuffleVector(v, high));
  }
  return b_.CreateExtractElement(v, uint64_t{0});
}

// The first position of the best value; a NaN beats everything but an earlier NaN.
Cells Emitter::reduce_position(const Val& v) {
  const VarSet dims = dims_of(v.get());
  const size_t n = points(dims);
  const Val& body = v->args[0];
  const bool varies = tile_.lanes > 1 && (l_->vars(v.get()) & l_->bit(tile_.vector_var));
  const auto shaped = [&](Value* x) {
    return varies ? b_.CreateVectorSplat(static_cast<unsigned>(tile_.lanes), x) : x;
  };
  llvm::Type *value_type = type_of(l_->rep(body.get())), *index_type = type_of(l_->rep(v.get()));
  // Per point: best value, its position, whether all were defined.
  std::vector<Value*> carried;
  for (size_t i = 0; i < n; ++i) carried.push_back(shaped(llvm::Constant::getNullValue(value_type)));
  for (size_t i = 0; i < n; ++i)
    carried.push_back(shaped(llvm::ConstantInt::get(index_type, static_cast<uint64_t>(-1), true)));
  for (size_t i = 0; i < n; ++i) carried.push_back(shaped(b_.getTrue()));
  Value* mask = std::exchange(reduce_mask_, nullptr);
  hoist_bound(body);
  const Loop& loop = v->loops.front();
  OpenLoop open = open_loop(loop.var, b_.getInt64(0), expr(loop.extent), 1, false, carried);
  eval(body);
  Value* position = shaped(b_.CreateSExtOrTrunc(open.counter, index_type));
  for (size_t i = 0; i < n; ++i) {
    const Cell& c = cell_at(body, dims, i);
    Value *best = carried[i], *at = carried[n + i], *x = varies ? broadcast(c.v) : c.v;
    const BinaryOp op = v->reduce_op() == ReduceOp::argmax ? BinaryOp::gt : BinaryOp::lt;
    Value* better = compare(op, body->type, x, best);
    if (body->type.is_float()) better = b_.CreateAnd(b_.CreateOr(better, is_nan(x)), b_.CreateNot(is_nan(best)));
    better = b_.CreateOr(better, b_.CreateICmpSLT(at, integer(0, at)));
    carried[i] = b_.CreateSelect(better, x, best);
    carried[n + i] = b_.CreateSelect(better, position, at);
    if (c.ok) carried[2 * n + i] = b_.CreateAnd(carried[2 * n + i], varies ? broadcast(c.ok) : c.ok);
  }
  close_loop(open, carried);
  reduce_mask_ = mask;
  Cells out;
  for (size_t i = 0; i < n; ++i) {
    Value *at = carried[n + i], *ok = nullptr;
    if (l_->may_be_undefined(body.get())) ok = carried[2 * n + i];
    if (open.may_be_empty) ok = both(ok, b_.CreateICmpSGE(at, integer(0, at)));
    out.push_back({at, ok});
  }
  return out;
}

}  // namespace dlc::cpu
