#include "core/interp/plan.h"

#include <algorithm>
#include <set>

#include "core/interp/builder.h"
#include "core/interp/lanes.h"

namespace dlc::interp {

std::optional<Program> Builder::build() {
  if (!extents_are_fixed()) return std::nullopt;
  name_loops(*task_.around);
  name_loops(*task_.loops);
  const Lanes lanes = choose_lanes(code_, task_);
  std::vector<LoopCode> lane_loops;
  for (int slot : {lanes.row, lanes.col})
    for (const LoopCode& l : *task_.loops)
      if (l.slot == slot) lane_loops.push_back(l);
  for (const LoopCode& l : *task_.loops)
    if (l.slot != lanes.row && l.slot != lanes.col) p_.loops.push_back(l);
  p_.outer = static_cast<int>(p_.loops.size());
  open({});
  for (int i = 0; i < p_.outer; ++i) open({p_.loops[static_cast<size_t>(i)].slot});
  p_.loops.insert(p_.loops.end(), lane_loops.begin(), lane_loops.end());
  open({lanes.row, lanes.col});
  row_ = lanes.row;
  col_ = lanes.col;
  for (const Level& l : levels_) p_.blocks.push_back(std::unique_ptr<Block>(l.block));

  p_.source = task_.source;
  p_.value = emit(*task_.value);
  p_.value_ty = reg(p_.value).ty;
  p_.value_uniform = reg(p_.value).uniform;
  if (task_.tensor >= 0) {
    const TensorCode& t = code_.tensors[static_cast<size_t>(task_.tensor)];
    p_.store = access(task_.tensor, *task_.indices);
    p_.put = reinterpret_cast<void (*)()>(store_rows(t.elem, p_.value_ty, is_odd_width(t.dtype)));
  }
  if (!ok_) return std::nullopt;
  return std::move(p_);
}

Builder::Cut Builder::cut_above(int level) {
  const auto first = levels_.begin() + level + 1;
  Cut c{{first, levels_.end()}, pins_};
  levels_.erase(first, levels_.end());
  std::erase_if(pins_, [&](const Pin& p) { return p.to > level; });
  return c;
}

void Builder::name_loops(const std::vector<LoopCode>& loops) {
  for (const LoopCode& l : loops) {
    loop_slots_.insert(l.slot);
    ranges_[code_.slots.name(l.slot)] =
        l.extent.is_constant() ? Range(0, std::max<int64_t>(0, l.extent.constant() - 1)) : Range(0, Interval::kPosInf);
  }
}

bool Builder::extents_are_fixed() const {
  std::set<int> bound;
  std::vector<const std::vector<LoopCode>*> all{task_.around, task_.loops};
  collect_loops(*task_.value, all);
  if (task_.indices)
    for (const Node& n : *task_.indices) collect_loops(n, all);
  for (const auto* loops : all)
    for (const LoopCode& l : *loops) bound.insert(l.slot);
  for (const auto* loops : all)
    for (const LoopCode& l : *loops)
      for (const int s : l.extent.slots())
        if (bound.contains(s)) return false;
  return true;
}

int Builder::emit_reduce(const Node& n) {
  name_loops(n.loops);
  p_.inner_loops.insert(p_.inner_loops.end(), n.loops.begin(), n.loops.end());
  const auto slots = free_slots(n);
  const int level = level_of(slots);
  const bool uniform = !varies(slots);

  // Inside, only levels up to `level` exist.
  Cut cut = cut_above(level);
  const int row = row_, col = col_;

  auto nest = std::make_unique<Nest>();
  nest->op = n.reduce_op();
  nest->to = n.to;
  nest->own_lanes = uniform;
  if (uniform) {
    const Lanes lanes = choose_lanes(code_, n);
    for (const int slot : {lanes.row, lanes.col})
      for (const LoopCode& l : n.loops)
        if (l.slot == slot) nest->lanes.push_back(l);
    for (const LoopCode& l : n.loops)
      if (l.slot != lanes.row && l.slot != lanes.col) nest->loops.push_back(l);
    for (const LoopCode& l : nest->loops) open({l.slot});
    open({lanes.row, lanes.col});
    row_ = lanes.row;
    col_ = lanes.col;
  } else {
    nest->loops = n.loops;
    for (const LoopCode& l : nest->loops) open({l.slot});
  }
  const auto first = static_cast<size_t>(level) + 1;
  for (size_t i = first; i < levels_.size(); ++i) nest->blocks.push_back(std::unique_ptr<Block>(levels_[i].block));

  const bool is_arg = nest->op == ReduceOp::argmax || nest->op == ReduceOp::argmin;
  int body = emit(n.args[0]);
  const bool wraps_in_32 = nest->op == ReduceOp::sum || nest->op == ReduceOp::prod;
  const bool keeps_32 = is_arg || (fits_s32(type_range(nest->to)) && (wraps_in_32 || fits_s32(reg(body).range)));
  if (reg(body).ty == Ty::s32 && !keeps_32) body = as(body, Ty::s64);
  const Ty ty = reg(body).ty;
  nest->body = body;
  nest->body_uniform = reg(body).uniform;
  nest->acc = new_reg(ty, false, level);
  if (is_arg) {
    nest->best = new_reg(Ty::s64, false, level);
    nest->position_slot = n.loops[0].slot;
  }
  restore(level, std::move(cut));
  row_ = row;
  col_ = col;
  Instr i;
  i.fn = reduce_op(ty);
  i.nest = std::move(nest);
  if (is_arg) return place(std::move(i), Ty::s64, uniform, level);
  return place(std::move(i), ty, uniform, level, n.ty == Ty::s64 ? type_range(n.to) : kUnknown);
}

namespace {

void collect_free(const Node& n, std::set<int>& out) {
  std::set<int> inner;
  for (const Node& a : n.args) collect_free(a, inner);
  if (n.kind == NodeKind::index) inner.insert(n.code.slots().begin(), n.code.slots().end());
  for (const LoopCode& l : n.loops) inner.erase(l.slot);
  for (const LoopCode& l : n.loops) inner.insert(l.extent.slots().begin(), l.extent.slots().end());
  out.insert(inner.begin(), inner.end());
}

}  // namespace

std::vector<int> free_slots(const Node& n) {
  std::set<int> r;
  collect_free(n, r);
  return {r.begin(), r.end()};
}

std::optional<Program> plan(const Lowered& code, const Task& task) { return Builder(code, task).build(); }

}  // namespace dlc::interp
