#include "core/interp/contraction.h"

#include <algorithm>
#include <cstring>

#include "core/interp/group_split.h"
#include "core/interp/mac_kernels.h"
#include "core/interp/ops.h"

namespace dlc::interp {

namespace {

// Panels of at most kTileK x kTileV and kTileS x kTileK elements: they stay in the second-level cache.
constexpr int64_t kTileK = 256, kTileV = 256, kTileS = 1024;
// Shorter contractions do not pay for the panels.
constexpr int64_t kLeastV = 8, kLeastS = 4, kLeastMacs = 4096;

const Node* product_of(const Node& reduction) {
  const Node& body = reduction.args[0];
  const auto is_product = [](const Node& n) { return n.kind == NodeKind::binary && n.binary_op() == BinaryOp::mul; };
  if (is_product(body)) return &body;
  // Products in f32 summed in f64.
  const bool widens = body.kind == NodeKind::cast && body.ty == Ty::f64 && body.args[0].ty == Ty::f32;
  return widens && is_product(body.args[0]) ? &body.args[0] : nullptr;
}

bool is_contraction(const Node& n) {
  if (n.kind != NodeKind::reduce || n.reduce_op() != ReduceOp::sum || n.ty == Ty::u64) return false;
  if (n.to.is_narrow_float()) return false;  // rounds at every step
  return product_of(n) != nullptr;
}

Node index_node(const std::string& name, Slots& slots) {
  Node n;
  n.kind = NodeKind::index;
  n.ty = Ty::s64;
  n.expr = Expr::symbol(name);
  n.code = ExprCode(n.expr, slots);
  return n;
}

class Extractor {
 public:
  Extractor(Lowered& code, const StmtCode& s, const std::vector<LoopCode>& around)
      : code_(code), stmt_(s), around_(around) {}

  void visit(Node& n) {
    if (n.kind == NodeKind::reduce) {
      if (is_contraction(n)) extract(n);
      return;
    }
    for (Node& a : n.args) visit(a);
  }
  std::vector<Contraction> take() { return std::move(found_); }

 private:
  static bool has(const std::vector<int>& slots, int slot) { return std::ranges::count(slots, slot) > 0; }

  void extract(Node& n) {
    Node product = *product_of(n);
    const auto split = split_group(code_, stmt_.loops, product);
    if (split) product = split->product;
    const auto in_a = free_slots(product.args[0]), in_b = free_slots(product.args[1]);
    std::vector<LoopCode> batch, only_a, only_b;
    for (const LoopCode& l : stmt_.loops) {
      if (has(in_a, l.slot) && has(in_b, l.slot))
        batch.push_back(l);
      else if (has(in_a, l.slot))
        only_a.push_back(l);
      else if (has(in_b, l.slot))
        only_b.push_back(l);
    }
    // Lanes on the side of the innermost loop, where the scratch and most likely the result are contiguous.
    bool a_is_v = false;
    for (const LoopCode& l : stmt_.loops) {
      if (has(in_a, l.slot) != has(in_b, l.slot)) a_is_v = has(in_a, l.slot);
    }
    if (split) {  // group and inside lie side by side in the scratch, so that it has one dim for both
      batch.push_back(split->group);
      auto& side = split->first_uses_inside ? only_a : only_b;
      side.insert(side.begin(), split->inside);
      a_is_v = !split->first_uses_inside;
    }
    if (only_a.empty() || only_b.empty()) return;
    if (const auto v = constant_size(a_is_v ? only_a : only_b), s = constant_size(a_is_v ? only_b : only_a);
        !split && v && s && *v < kLeastV && *s > *v)
      a_is_v = !a_is_v;
    Contraction c;
    c.batch = batch;
    c.v = a_is_v ? only_a : only_b;
    c.s = a_is_v ? only_b : only_a;
    c.k = n.loops;
    auto outer = around_;
    outer.insert(outer.end(), batch.begin(), batch.end());
    const auto program = [&](const Node& factor, const std::vector<LoopCode>& first,
                             const std::vector<LoopCode>& last) {
      auto loops = first;
      loops.insert(loops.end(), last.begin(), last.end());
      return plan(code_, {.source = &stmt_,
                          .loops = &loops,
                          .around = &outer,
                          .value = &factor,
                          .tensor = -1,
                          .indices = nullptr,
                          .unit_loop = last.back().slot});
    };
    auto v = program(product.args[a_is_v ? 0 : 1], c.k, c.v);
    auto s = program(product.args[a_is_v ? 1 : 0], c.s, c.k);
    if (!v || !s) return;
    choose_types(n, product, *s, *v, c);
    c.s_program = std::move(*s);
    c.v_program = std::move(*v);
    set_panel_store(c.s_program, c.panel);
    set_panel_store(c.v_program, c.panel);
    n = scratch_read(n, c, split ? &split->loop : nullptr);
    found_.push_back(std::move(c));
  }

  static std::optional<int64_t> constant_size(const std::vector<LoopCode>& loops) {
    int64_t n = 1;
    for (const LoopCode& l : loops) {
      if (!l.extent.is_constant()) return std::nullopt;
      n *= std::min<int64_t>(l.extent.constant(), 1 << 20);
    }
    return n;
  }

  // Panels of 32-bit integers where the sum is kept in no more bits, so that it may wrap, or where products fit.
  static void choose_types(const Node& n, const Node& product, const Program& s, const Program& v, Contraction& c) {
    if (n.ty != Ty::s64) {
      c.panel = product.ty;
      c.acc = n.ty;
      return;
    }
    const bool narrow = s.value_ty == Ty::s32 && v.value_ty == Ty::s32;
    const bool wraps = n.to.bits <= 32;
    c.panel = narrow && (wraps || largest(s) <= INT32_MAX / std::max<int64_t>(1, largest(v))) ? Ty::s32 : Ty::s64;
    c.acc = c.panel == Ty::s32 && wraps ? Ty::s32 : Ty::s64;
  }
  // Of a factor in 32 bits.
  static int64_t largest(const Program& p) {
    const Interval& r = p.regs[static_cast<size_t>(p.value)].range;
    return std::max(-r.lo, r.hi);
  }

  static void set_panel_store(Program& p, Ty panel) {
    p.put = reinterpret_cast<void (*)()>(store_rows(element(panel), p.value_ty, false));
  }
  static Elem element(Ty t) {
    return t == Ty::f32 ? Elem::f32 : t == Ty::f64 ? Elem::f64 : t == Ty::s32 ? Elem::s32 : Elem::s64;
  }

  // `whole` stands for the last batch loop and the first s loop when they came from splitting it.
  Node scratch_read(const Node& reduction, Contraction& c, const LoopCode* whole) {
    TensorCode t;
    t.elem = element(c.acc);
    t.dtype = t.elem == Elem::f32 ? kF32 : t.elem == Elem::f64 ? kF64 : t.elem == Elem::s32 ? kS32 : kS64;
    Node read;
    read.kind = NodeKind::read;
    read.ty = reduction.ty;
    std::vector<LoopCode> dims = c.batch;
    if (whole) dims.back() = *whole;
    dims.insert(dims.end(), c.s.begin() + (whole ? 1 : 0), c.s.end());
    dims.insert(dims.end(), c.v.begin(), c.v.end());
    for (const LoopCode& l : dims) {
      t.shape.push_back(l.extent);
      read.args.push_back(index_node(code_.slots.name(l.slot), code_.slots));
    }
    c.scratch = static_cast<int>(code_.tensors.size());
    read.tensor = c.scratch;
    code_.tensors.push_back(std::move(t));
    if (!reduction.to.is_int()) return read;
    Node cast;  // wraps to what the sum is kept in
    cast.kind = NodeKind::cast;
    cast.ty = reduction.ty;
    cast.to = reduction.to;
    cast.args.push_back(std::move(read));
    return cast;
  }

  Lowered& code_;
  const StmtCode& stmt_;
  const std::vector<LoopCode>& around_;
  std::vector<Contraction> found_;
};

// Calls f(first flat point, count) for boxes of at most `limit` points that cover the loops, each box in `box`.
template <class F>
bool for_tiles(const std::vector<LoopCode>& loops, const std::vector<int64_t>& extents, int64_t limit,
               std::vector<LoopRange>& box, F&& f, size_t depth = 0, int64_t first = 0) {
  int64_t all = 1, inner = 1;
  for (size_t i = depth; i < loops.size(); ++i) {
    all *= extents[i];
    if (i > depth) inner *= extents[i];
  }
  const auto range = [&](size_t i) -> LoopRange& { return box[static_cast<size_t>(loops[i].slot)]; };
  if (depth == loops.size()) return f(first, int64_t{1});
  if (inner > limit) {
    for (int64_t i = 0; i < extents[depth]; ++i) {
      range(depth) = {i, i + 1};
      if (!for_tiles(loops, extents, limit, box, f, depth + 1, (first + i) * extents[depth + 1])) return false;
    }
    return true;
  }
  for (size_t i = depth + 1; i < loops.size(); ++i) range(i) = {0, extents[i]};
  const int64_t step = all <= limit ? extents[depth] : std::max<int64_t>(1, limit / inner);
  for (int64_t i = 0; i < extents[depth]; i += step) {
    range(depth) = {i, std::min(extents[depth], i + step)};
    if (!f((first + i) * inner, (range(depth).end - i) * inner)) return false;
  }
  return true;
}

int64_t product(const std::vector<int64_t>& v) {
  int64_t r = 1;
  for (int64_t x : v)
    if (__builtin_mul_overflow(r, x, &r)) return INT64_MAX;
  return r;
}

// Distances between points of the loops in a row-major array with elements `unit` bytes apart.
void add_strides(const std::vector<LoopCode>& loops, const std::vector<int64_t>& extents, int64_t unit,
                 std::vector<BoundTerm>& out) {
  for (size_t i = loops.size(); i-- > 0;) {
    out.push_back({loops[i].slot, unit});
    unit *= extents[i];
  }
}

}  // namespace

std::vector<Contraction> extract_contractions(Lowered& code, const StmtCode& s, const std::vector<LoopCode>& around,
                                              Node& value) {
  Extractor e(code, s, around);
  e.visit(value);
  return e.take();
}

std::unique_ptr<BoundContraction> BoundContraction::bind(const Contraction& c, RunState& run,
                                                         const std::vector<LoopCode>& around, Arena& arena) {
  auto b = std::unique_ptr<BoundContraction>(new BoundContraction(c));
  b->run_ = &run;
  const auto extents = [&](const std::vector<LoopCode>& loops, std::vector<int64_t>& out) {
    for (const LoopCode& l : loops) out.push_back(std::max<int64_t>(0, l.extent.evaluate(run.env.data()).value_or(0)));
    return product(out);
  };
  const int64_t batches = extents(c.batch, b->batch_extents_);
  b->s_total_ = extents(c.s, b->s_extents_);
  b->v_total_ = extents(c.v, b->v_extents_);
  b->k_total_ = extents(c.k, b->k_extents_);
  const int64_t macs = product({b->s_total_, b->v_total_, b->k_total_});
  if (b->v_total_ < kLeastV || b->s_total_ < kLeastS || macs < kLeastMacs || batches < 1) return nullptr;

  auto outer = around;
  outer.insert(outer.end(), c.batch.begin(), c.batch.end());
  auto sf = interp::bind(c.s_program, run, outer, arena), vf = interp::bind(c.v_program, run, outer, arena);
  if (!sf || !vf) return nullptr;
  b->s_frame_ = *sf;
  b->v_frame_ = *vf;

  const int64_t size = size_of(c.panel), acc_size = size_of(c.acc);
  const int64_t tile_k = std::min(kTileK, b->k_total_);
  b->v_stride_ = (std::min(kTileV, b->v_total_) + kLanePadding - 1) / kLanePadding * kLanePadding;
  b->s_stride_ = tile_k;
  // Whole vectors are multiplied: what pads the last one is zero, or values of an earlier tile.
  b->v_panel_ = std::make_unique<std::byte[]>(static_cast<size_t>(tile_k * b->v_stride_ * size));
  b->s_panel_ =
      std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(std::min(kTileS, b->s_total_) * tile_k * size));
  add_strides(c.k, b->k_extents_, b->v_stride_ * size, b->v_strides_);
  add_strides(c.v, b->v_extents_, size, b->v_strides_);
  add_strides(c.s, b->s_extents_, b->s_stride_ * size, b->s_strides_);
  add_strides(c.k, b->k_extents_, size, b->s_strides_);
  b->box_.resize(run.env.size());
  b->panel_memory_.dtype = c.panel == Ty::f32 ? kF32 : c.panel == Ty::f64 ? kF64 : c.panel == Ty::s32 ? kS32 : kS64;

  const TensorCode& scratch = run.code->tensors[static_cast<size_t>(c.scratch)];
  Memory& m = run.tensors[static_cast<size_t>(c.scratch)];
  m.elem = scratch.elem;
  m.dtype = scratch.dtype;
  for (const ExprCode& d : scratch.shape) m.shape.push_back(d.evaluate(run.env.data()).value_or(0));
  const int64_t bytes = product({product(m.shape), acc_size});
  if (bytes > Tensor::max_bytes()) return nullptr;
  b->scratch_ = std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
  if (!b->scratch_) return nullptr;
  m.data = b->scratch_.get();
  m.strides.resize(m.shape.size());
  for (size_t d = m.shape.size(), stride = static_cast<size_t>(acc_size); d-- > 0;) {
    m.strides[d] = static_cast<int64_t>(stride);
    stride *= static_cast<size_t>(m.shape[d]);
  }
  return b;
}

bool BoundContraction::run() { return batch(0, 0); }

bool BoundContraction::batch(size_t depth, int64_t offset) {
  if (depth == plan_.batch.size()) return dispatch(offset * s_total_ * v_total_);
  for (int64_t i = 0; i < batch_extents_[depth]; ++i) {
    run_->slot(plan_.batch[depth].slot) = i;
    if (!batch(depth + 1, offset * batch_extents_[depth] + i)) return false;
  }
  return true;
}

bool BoundContraction::dispatch(int64_t offset) {
  const MacKernels& k = mac_kernels();
  switch (plan_.panel) {
    case Ty::s32:
      return plan_.acc == Ty::s64 ? multiply(offset, k.s32_to_s64) : multiply(offset, k.s32);
    case Ty::s64:
      return multiply(offset, k.s64);
    case Ty::f64:
      return multiply(offset, k.f64);
    default:
      return plan_.acc == Ty::f64 ? multiply(offset, k.f32_to_f64) : multiply(offset, k.f32);
  }
}

template <class Panel, class Acc>
bool BoundContraction::multiply(int64_t offset, void (*kernel)(const Panel*, int64_t, int64_t, const Panel*, int64_t,
                                                               int64_t, int64_t, Acc*, int64_t)) {
  auto* c = reinterpret_cast<Acc*>(scratch_.get()) + offset;
  std::fill_n(c, s_total_ * v_total_, Acc{0});
  const auto* s_panel = reinterpret_cast<const Panel*>(s_panel_.get());
  const auto* v_panel = reinterpret_cast<const Panel*>(v_panel_.get());
  return for_tiles(plan_.s, s_extents_, kTileS, box_, [&](int64_t s0, int64_t s_count) {
    return for_tiles(plan_.k, k_extents_, kTileK, box_, [&](int64_t, int64_t k_count) {
      if (!fill(plan_.s_program, s_frame_, s_panel_.get(), s_strides_)) return false;
      return for_tiles(plan_.v, v_extents_, kTileV, box_, [&](int64_t v0, int64_t v_count) {
        if (!fill(plan_.v_program, v_frame_, v_panel_.get(), v_strides_)) return false;
        kernel(s_panel, s_stride_, s_count, v_panel, v_stride_, v_count, k_count, c + s0 * v_total_ + v0, v_total_);
        return true;
      });
    });
  });
}

// Evaluates a factor over the tile in box_.
bool BoundContraction::fill(const Program& p, Frame& f, std::byte* panel, const std::vector<BoundTerm>& strides) {
  BoundAccess to;
  to.memory = &panel_memory_;
  to.proven = true;
  std::vector<BoundTerm> terms = strides;
  to.terms = terms.data();
  to.n_terms = static_cast<int>(terms.size());
  to.data = panel;
  const size_t lanes = p.loops.size() - static_cast<size_t>(p.outer);
  for (const BoundTerm& t : strides) {
    to.base -= box_[static_cast<size_t>(t.slot)].begin * t.coefficient;
    if (lanes >= 1 && t.slot == p.loops.back().slot) to.col = t.coefficient;
    if (lanes == 2 && t.slot == p.loops[p.loops.size() - 2].slot) to.row = t.coefficient;
  }
  std::vector<LoopRange> ranges;
  for (const LoopCode& l : p.loops) ranges.push_back(box_[static_cast<size_t>(l.slot)]);
  return for_strips(p, f, ranges.data(), [&](int64_t, int64_t) { return !f.odd && store_strip(p, f, to); });
}

}  // namespace dlc::interp
