#include "core/interp/lanes.h"

#include <algorithm>
#include <limits>

#include "core/interp/plan.h"

namespace dlc::interp {

namespace {

// Nanoseconds, roughly: to start an instruction, to start a row of a load, and per lane by kind of stride.
constexpr double kStart = 8, kRow = 3, kNone = 0.15, kUnit = 0.25, kStrided = 0.8, kGather = 2.5, kReduceStart = 60;
constexpr int64_t kUnknownExtent = 16;

int64_t extent_of(const LoopCode& l) { return l.extent.is_constant() ? l.extent.constant() : kUnknownExtent; }

struct Read {
  int tensor;
  const std::vector<Node>* indices;
  double times;  // per point of the statement
};

class Cost {
 public:
  explicit Cost(const Lowered& code) : code_(code) {}

  void collect(const Node& n, double times) {
    nodes_ += times;
    if (n.kind == NodeKind::read) reads_.push_back({n.tensor, &n.args, times});
    for (const LoopCode& l : n.loops) times *= static_cast<double>(std::max<int64_t>(1, extent_of(l)));
    for (const Node& a : n.args) collect(a, times);
  }
  void add_store(int tensor, const std::vector<Node>& indices) { reads_.push_back({tensor, &indices, 1}); }

  // Per point of the statement, with these lanes (-1: none).
  double with_lanes(int col, int64_t width, int64_t height) const {
    const double lanes = static_cast<double>(width * height);
    double cost = nodes_ * kStart / lanes;
    for (const Read& r : reads_)
      cost += r.times * (lane_cost(r, col) + (height > 1 ? kRow / static_cast<double>(width) : 0));
    return cost;
  }
  double lane_cost(const Read& r, int slot) const {
    int64_t stride = 0;
    for (size_t d = 0; d < r.indices->size(); ++d) {
      const Node& n = (*r.indices)[d];
      if (slot < 0 || !std::ranges::count(free_slots(n), slot)) continue;
      if (n.kind != NodeKind::index) return kGather;
      const std::string name = code_.slots.name(slot);
      const auto form = affine(n.expr, std::span(&name, 1));
      if (!form) return kGather;
      const auto c = form->coefficients[0].constant();
      const auto s = byte_stride(r.tensor, d);
      if (!c || !s) return kStrided;
      stride += *c * *s;
    }
    const int bytes = code_.tensors[static_cast<size_t>(r.tensor)].dtype.bytes();
    return stride == 0 ? kNone : stride == bytes ? kUnit : kStrided;
  }
  bool empty() const { return reads_.empty(); }

 private:
  std::optional<int64_t> byte_stride(int tensor, size_t dim) const {
    const TensorCode& t = code_.tensors[static_cast<size_t>(tensor)];
    if (t.base >= 0)
      return t.byte_strides[dim].is_constant() ? std::optional(t.byte_strides[dim].constant()) : std::nullopt;
    int64_t stride = t.dtype.bytes();
    for (size_t d = dim + 1; d < t.shape.size(); ++d) {
      if (!t.shape[d].is_constant()) return std::nullopt;
      stride *= t.shape[d].constant();
    }
    return stride;
  }

  const Lowered& code_;
  std::vector<Read> reads_;
  double nodes_ = 0;
};

struct Choice {
  Lanes lanes;
  double cost = std::numeric_limits<double>::infinity();
};

// The best column among the loops; the innermost other loop gives rows when the column is short.
Choice best(const Cost& cost, const std::vector<LoopCode>& loops, bool allow_rows) {
  Choice r;
  for (size_t c = loops.size(); c-- > 0;) {
    const int64_t width = std::clamp<int64_t>(extent_of(loops[c]), 1, kStrip);
    int row = -1;
    int64_t height = 1;
    for (size_t k = loops.size(); allow_rows && row < 0 && k-- > 0;) {
      if (k == c || extent_of(loops[k]) == 1 || width > kStrip / 2) continue;
      row = loops[k].slot;
      height = std::clamp<int64_t>(extent_of(loops[k]), 1, kStrip / width);
    }
    const double t = cost.with_lanes(loops[c].slot, width, height);
    if (t < r.cost) r = {{row, loops[c].slot}, t};
  }
  return r;
}

const Node* first_reduction(const Node& n) {
  if (n.kind == NodeKind::reduce) return &n;
  for (const Node& a : n.args)
    if (const Node* r = first_reduction(a)) return r;
  return nullptr;
}

Choice best_inside(const Lowered& code, const Node& reduction) {
  Cost cost(code);
  cost.collect(reduction.args[0], 1);
  const bool is_arg = reduction.reduce_op() == ReduceOp::argmax || reduction.reduce_op() == ReduceOp::argmin;
  return best(cost, reduction.loops, !is_arg);
}

}  // namespace

Lanes choose_lanes(const Lowered& code, const Node& reduction) { return best_inside(code, reduction).lanes; }

Lanes choose_lanes(const Lowered& code, const Task& task) {
  Cost cost(code);
  cost.collect(*task.value, 1);
  if (task.tensor >= 0) cost.add_store(task.tensor, *task.indices);
  if (task.unit_loop >= 0) {
    const Choice c = best(cost, *task.loops, true);
    Lanes lanes{-1, task.unit_loop};
    for (const LoopCode& l : *task.loops) {
      if (l.slot == task.unit_loop && extent_of(l) > kStrip / 2) return lanes;
      if (l.slot != task.unit_loop && extent_of(l) > 1) lanes.row = l.slot;
    }
    return c.lanes.col == task.unit_loop ? c.lanes : lanes;
  }
  const Choice outside = best(cost, *task.loops, true);
  const Node* reduction = first_reduction(*task.value);
  if (reduction == nullptr) return outside.lanes;
  const Choice inside = best_inside(code, *reduction);
  double points = 1;
  for (const LoopCode& l : reduction->loops) points *= static_cast<double>(std::max<int64_t>(1, extent_of(l)));
  const double alone = kReduceStart + inside.cost * points;
  return alone < outside.cost ? Lanes{} : outside.lanes;
}

}  // namespace dlc::interp
