// Builds a Program: emits a value's tree as instructions, each at its loop level. Used by plan() alone.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "core/interp/ops.h"
#include "core/interp/plan.h"
#include "core/interp/ranges.h"

namespace dlc::interp {

class Builder {
 public:
  Builder(const Lowered& code, const Task& task) : code_(code), task_(task) {}

  std::optional<Program> build();

 private:
  struct Level {
    Block* block;
    std::vector<int> slots;
  };

  struct Pin {
    int from, to;
  };
  // Levels above one, taken off while code is built that only sees the lower ones.
  struct Cut {
    std::vector<Level> levels;
    std::vector<Pin> pins;
  };

  // ---- loops and levels ----

  Cut cut_above(int level);
  void restore(int level, Cut c) {
    levels_.resize(static_cast<size_t>(level) + 1);
    levels_.insert(levels_.end(), c.levels.begin(), c.levels.end());
    pins_ = std::move(c.pins);
  }

  void open(std::vector<int> slots) { levels_.push_back({new Block, std::move(slots)}); }

  void name_loops(const std::vector<LoopCode>& loops);

  // Every extent must follow from the parameters alone.
  bool extents_are_fixed() const;
  static void collect_loops(const Node& n, std::vector<const std::vector<LoopCode>*>& out) {
    if (!n.loops.empty()) out.push_back(&n.loops);
    for (const Node& a : n.args) collect_loops(a, out);
  }

  int level_of(int slot) const {
    for (size_t i = levels_.size(); i-- > 0;)
      if (std::ranges::count(levels_[i].slots, slot)) return static_cast<int>(i);
    return 0;
  }
  int level_of(const std::vector<int>& slots) const {
    int level = 0;
    for (int s : slots) level = std::max(level, level_of(s));
    return pinned(level);
  }
  // Inside the side of a branch, what would run at the branch's own level runs in the side's block.
  int pinned(int level) const {
    for (const Pin& p : pins_)
      if (level == p.from) level = p.to;
    return level;
  }
  bool is_lane(int slot) const { return slot >= 0 && (slot == row_ || slot == col_); }
  bool varies(const std::vector<int>& slots) const {
    return std::ranges::any_of(slots, [&](int s) { return is_lane(s); });
  }

  // ---- registers and instructions ----

  const RegInfo& reg(int r) const { return p_.regs[static_cast<size_t>(r)]; }

  int new_reg(Ty ty, bool uniform, int level, Interval range = kUnknown) {
    p_.regs.push_back({ty, uniform, level, range});
    return static_cast<int>(p_.regs.size()) - 1;
  }

  // Appends an instruction of up to three operands at the level where all of them exist.
  int add(Instr::Fn fn, Ty ty, std::initializer_list<int> operands, Interval range = kUnknown, Instr i = {});

  int place(Instr i, Ty ty, bool uniform, int level, Interval range = kUnknown);

  // r in type ty; only s32 and s64 stand for each other.
  int as(int r, Ty ty) {
    if (reg(r).ty == ty) return r;
    return add(convert_op(reg(r).ty, ty), ty, {r}, reg(r).range);
  }

  // The type two integer registers of a node of type ty are computed in, for a result of this range.
  Ty work_type(Ty ty, std::initializer_list<int> operands, const Interval& range) const;

  // ---- values ----

  int emit(const Node& n);

  int emit_constant(const Node& n);

  std::vector<std::string> names_of(const std::vector<int>& slots) const {
    std::vector<std::string> r;
    for (int s : slots) r.push_back(code_.slots.name(s));
    return r;
  }
  std::vector<int> slots_of(const Expr& e) const;
  std::vector<int> loop_slots_of(const Expr& e) const {
    auto r = slots_of(e);
    std::erase_if(r, [&](int s) { return !loop_slots_.contains(s); });
    return r;
  }
  ExprCode code_of(const Expr& e) const { return ExprCode(e, code_.slots); }
  // e = base + sum of terms over `slots`, coefficients over parameters only.
  std::optional<std::vector<Term>> terms_of(const Expr& e, const std::vector<int>& slots, Expr& base) const;
  std::vector<int> lanes_in(std::vector<int> slots) const {
    std::erase_if(slots, [&](int s) { return !is_lane(s); });
    return slots;
  }

  int emit_index(const Expr& e);

  // A product of symbols that is not affine in the lanes (x * x) is multiplied out.
  int emit_product_of_symbols(const Expr& e);

  int emit_atom(const Atom& a);

  int arithmetic(BinaryOp op, int a, int b);
  int extreme(Fn fn, int a, int b);

  int emit_unary(const Node& n);

  int emit_binary(const Node& n);

  static bool is_cheap(const Node& n) {
    return n.kind == NodeKind::constant || n.kind == NodeKind::index || n.kind == NodeKind::undef;
  }

  int emit_select(const Node& n);

  // One condition for all lanes: only the side it chooses is computed.
  int emit_branch(const Node& n, int condition);

  Interval hull(int a, int b) const {
    return {std::min(reg(a).range.lo, reg(b).range.lo), std::max(reg(a).range.hi, reg(b).range.hi)};
  }

  int emit_orelse(const Node& n);

  int emit_call(const Node& n);

  int emit_cast(const Node& n);

  // ---- memory ----

  int access(int tensor, const std::vector<Node>& indices);

  bool index_dim(const Expr& e, int tensor, size_t d, AccessDim& dim) const;
  const std::vector<ExprCode>& tensor_shape(int tensor) const {
    return code_.tensors[static_cast<size_t>(tensor)].shape;
  }

  int emit_read(const Node& n);

  // ---- reductions ----

  int emit_reduce(const Node& n);

  const Lowered& code_;
  const Task& task_;
  Program p_;
  std::vector<Level> levels_;
  std::vector<Pin> pins_;
  std::set<int> loop_slots_;
  Ranges ranges_;
  int row_ = -1, col_ = -1;
  bool ok_ = true;
};

}  // namespace dlc::interp
