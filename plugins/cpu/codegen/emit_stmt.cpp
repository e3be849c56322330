// Statements, and the loops of a schedule.
#include <algorithm>

#include "emitter.h"
#include "schedule.h"

namespace dlc::cpu {

void Emitter::error(std::string message) {
  if (error_.empty()) error_ = std::move(message);
}

void Emitter::statements(const std::vector<Stmt>& body, std::vector<Loop>& around) {
  for (const Stmt& s : body) {
    if (s.kind == Stmt::Kind::seq)
      seq(s, 0, around);
    else
      assign(s, around);
    // Elements may have changed: nothing read is known any more.
    for (Scope& scope : scopes_) scope.cells.clear(), scope.raw_cells.clear();
  }
}

void Emitter::seq(const Stmt& s, size_t depth, std::vector<Loop>& around) {
  if (depth == s.loops.size()) {
    statements(s.body, around);
    return;
  }
  std::vector<Value*> none;
  const Loop& loop = s.loops[depth];
  around.push_back(loop);
  OpenLoop open = open_loop(loop.var, b_.getInt64(0), expr(loop.extent), 1, s.step < 0, none);
  seq(s, depth + 1, around);
  close_loop(open, none);
  around.pop_back();
}

void Emitter::assign(const Stmt& s, const std::vector<Loop>& around) {
  const auto number = static_cast<size_t>(statement_++);
  auto lowered = Lowered::make(k_, s, around);
  if (!lowered) return error(std::string(lowered.error().message()));
  Schedule schedule;
  if (number < schedules_.size() && !schedules_[number].loops.empty()) {
    schedule = schedules_[number];
  } else {
    lowered->collapse_loops();
    schedule = choose_schedule(*lowered, target_);
  }
  l_ = &*lowered;
  schedule_ = &schedule;
  tile_ = {};
  parallel_loop_ = -1;
  grain_ = 1;
  if (around.empty()) steps_.back().extent = choose_parallel_loop();
  blocks_.clear();
  scopes_.push_back({});  // values of this statement
  hoist(l_->value());
  loops(0);
  scopes_.pop_back();
  l_ = nullptr;
  schedule_ = nullptr;
}

void Emitter::loops(size_t depth) {
  if (depth == schedule_->loops.size()) {
    store_tile();
    return;
  }
  const ScheduleLoop& s = schedule_->loops[depth];
  const Loop* loop = nullptr;
  for (const Loop& l : l_->loops())
    if (l.var == s.var) loop = &l;
  if (!loop) return error("the schedule names a loop " + s.var + " that the statement does not have");
  Value *lo = b_.getInt64(0), *hi = expr(loop->extent);
  if (const auto it = blocks_.find(s.var); it != blocks_.end()) std::tie(lo, hi) = it->second;
  if (static_cast<int>(depth) == parallel_loop_) {
    Value* grain = b_.getInt64(static_cast<uint64_t>(grain_));
    lo = b_.CreateNSWMul(function_->getArg(2), grain);
    hi = grain_ == 1
             ? function_->getArg(3)
             : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateNSWMul(function_->getArg(3), grain), hi);
  }
  std::vector<Value*> none;
  switch (s.kind) {
    case ScheduleLoop::Kind::block: {
      const auto outer = blocks_.find(s.var) == blocks_.end() ? std::nullopt : std::optional(blocks_[s.var]);
      OpenLoop open = open_loop(s.var + ".block", lo, hi, s.step, false, none);
      Value* end = b_.CreateBinaryIntrinsic(
          llvm::Intrinsic::smin, b_.CreateNSWAdd(open.counter, b_.getInt64(static_cast<uint64_t>(s.step))), hi);
      blocks_[s.var] = {open.counter, end};
      loops(depth + 1);
      blocks_.erase(s.var);
      if (outer) blocks_[s.var] = *outer;
      close_loop(open, none);
      break;
    }
    case ScheduleLoop::Kind::point: {
      OpenLoop open = open_loop(s.var, lo, hi, 1, false, none);
      hoist(l_->value());
      loops(depth + 1);
      close_loop(open, none);
      break;
    }
    case ScheduleLoop::Kind::tile:
    case ScheduleLoop::Kind::vector:
      tile_loop(depth, s, lo, hi);
      break;
  }
}

// Whole tiles, then what is left: smaller tiles of a known size, or point by point; for the vector loop whole vectors,
// then one with a mask.
void Emitter::tile_loop(size_t depth, const ScheduleLoop& s, Value* lo, Value* hi) {
  const bool is_vector_loop = s.kind == ScheduleLoop::Kind::vector;
  const int64_t unit = is_vector_loop ? schedule_->lanes : 1;
  std::vector<Value*> none;
  if (is_vector_loop) {
    tile_.vector_var = s.var;
    tile_.lanes = schedule_->lanes;
  }
  // One loop over [from, to) with `count` units at a time; false when it is known to be empty.
  const auto run = [&](Value* from, Value* to, int64_t count, bool masked) {
    const auto* a = llvm::dyn_cast<llvm::ConstantInt>(from);
    const auto* b = llvm::dyn_cast<llvm::ConstantInt>(to);
    if (a && b && a->getSExtValue() >= b->getSExtValue()) return;
    OpenLoop open = open_loop(s.var, from, to, count * unit, false, none);
    tile_.dims.push_back({s.var, static_cast<int>(count), unit});
    if (masked)
      tile_.active = first_lanes(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(to, open.counter),
                                                          b_.getInt64(static_cast<uint64_t>(unit))));
    loops(depth + 1);
    tile_.active = nullptr;
    tile_.dims.pop_back();
    close_loop(open, none);
  };
  const auto aligned = [&](int64_t step) {
    return b_.CreateSub(hi, b_.CreateURem(b_.CreateSub(hi, lo), b_.getInt64(static_cast<uint64_t>(step))));
  };
  const auto constant = [](Value* v) -> std::optional<int64_t> {
    const auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
    return c ? std::optional(c->getSExtValue()) : std::nullopt;
  };
  const auto first = constant(lo), last = constant(hi);
  if (first && last && *last <= *first) return;
  Value* whole = aligned(s.step * unit);
  run(lo, whole, s.step, false);
  const auto whole_end = constant(whole);
  if (last && whole_end && *last == *whole_end) {
  } else if (!is_vector_loop) {
    // Inside blocks of whole tiles only the last block has a rest, and that is known.
    const auto extent = block_rest(s);
    if (last && whole_end)
      run(whole, hi, *last - *whole_end, false);
    else if (!extent)
      run(whole, hi, 1, false);
    else if (*extent > 0)
      run(whole, hi, *extent, false);
  } else {
    Value* vectors = aligned(unit);
    const auto vectors_end = constant(vectors);
    if (s.step > 1) {
      if (vectors_end && whole_end && *vectors_end > *whole_end)
        run(whole, vectors, (*vectors_end - *whole_end) / unit, false);
      else if (!vectors_end || !whole_end)
        run(whole, vectors, 1, false);
    }
    if (!(last && vectors_end && *last == *vectors_end)) run(vectors, hi, 1, unit > 1);
  }
  if (is_vector_loop) {
    tile_.vector_var.clear();
    tile_.lanes = 1;
  }
}

// What is left of the loop after whole tiles, when its range was only cut at multiples of the tile.
std::optional<int64_t> Emitter::block_rest(const ScheduleLoop& s) const {
  std::optional<int64_t> extent;
  for (const Loop& l : l_->loops())
    if (l.var == s.var) extent = l.extent.constant();
  if (!extent) return std::nullopt;
  for (const ScheduleLoop& other : schedule_->loops)
    if (other.var == s.var && other.kind == ScheduleLoop::Kind::block && other.step % s.step != 0) return std::nullopt;
  return *extent % s.step;
}

void Emitter::return_unless(Value* ok) {
  llvm::LLVMContext& context = module_.getContext();
  if (is_vector(ok)) {
    if (tile_.active) ok = b_.CreateOr(ok, b_.CreateNot(tile_.active));
    ok = b_.CreateAndReduce(ok);
  }
  auto* failed = llvm::BasicBlock::Create(context, "failed", function_);
  auto* fine = llvm::BasicBlock::Create(context, "fine", function_);
  b_.CreateCondBr(ok, fine, failed);
  b_.SetInsertPoint(failed);
  b_.CreateRet(b_.getInt64(static_cast<uint64_t>(statement_)));
  b_.SetInsertPoint(fine);
}

void Emitter::store_tile() {
  scopes_.push_back({});
  const Val& value = l_->value();
  const bool raw = l_->is_copy();
  const DType t = l_->store_type();
  const Access& a = l_->store();
  VarSet dims = 0;
  for (size_t d = 0; d < tile_.dims.size(); ++d) dims |= VarSet{1} << d;
  const size_t n = points(dims);

  const Cells values = eval(value, raw);
  Value* all_ok = nullptr;
  std::vector<Value*> stored(n);
  for (size_t i = 0; i < values.size(); ++i) all_ok = both(all_ok, values[i].ok);
  for (size_t i = 0; i < n; ++i) {
    all_ok = both(all_ok, check_at(a.checks, l_->store_indices(), dims, i));
    for (int d : a.dynamic) all_ok = both(all_ok, cell_at(l_->store_indices()[static_cast<size_t>(d)], dims, i).ok);
  }
  if (all_ok) return_unless(all_ok);
  Cells encoded;
  for (const Cell& c : values) encoded.push_back({raw ? c.v : encode(t, c.v, value->type)});
  const llvm::Align align(static_cast<uint64_t>(t.bytes()));
  for (size_t i = 0; i < n; ++i) {
    Value* v = encoded[project(dims, i, dims_of(value.get()))].v;
    const Expr offset = at(a.offset, point(dims, i));
    Value* dynamic = dynamic_offset(a, l_->store_indices(), dims, i);
    if (tile_.lanes == 1) {
      Value* p = pointer(a.root, offset);
      if (dynamic) p = b_.CreateGEP(b_.getInt8Ty(), p, dynamic);
      b_.CreateAlignedStore(v, p, align);
      continue;
    }
    v = broadcast(v);
    const auto form = affine(offset, std::span(&tile_.vector_var, 1));
    if (form && form->coefficients[0].is(t.bytes()) && !(dynamic && is_vector(dynamic))) {
      Value* p = pointer(a.root, offset);
      if (dynamic) p = b_.CreateGEP(b_.getInt8Ty(), p, dynamic);
      if (tile_.active)
        b_.CreateMaskedStore(v, p, align, tile_.active);
      else
        b_.CreateAlignedStore(v, p, align);
      continue;
    }
    Value* offsets = lanes_of(offset, b_.getInt64Ty());
    if (dynamic) offsets = b_.CreateAdd(offsets, broadcast(dynamic));
    Value* pointers = b_.CreateGEP(b_.getInt8Ty(), buffers_[static_cast<size_t>(a.root)], offsets);
    b_.CreateMaskedScatter(v, pointers, align, tile_.active ? tile_.active : broadcast(b_.getTrue()));
  }
  scopes_.pop_back();
}

void Emitter::prefetch() {
  for (const Prefetch& p : schedule_->prefetch) {
    Value* address = pointer(p.tensor, p.byte_offset);
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {address, b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
  }
}

}  // namespace dlc::cpu
