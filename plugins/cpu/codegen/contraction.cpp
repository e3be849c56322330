#include "contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "dlc/base/checked.h"
#include "dlc/kernel/access.h"
#include "fuse_epilogue.h"
#include "lowering.h"

namespace dlc::cpu {

namespace {

using Names = std::map<std::string, Expr, std::less<>>;

// The reduction in v, and how many different ones there are. The same one may be used several times.
Val the_reduction(const Val& v, int& count) {
  Val found;
  const std::function<void(const Val&)> visit = [&](const Val& n) {
    if (n->kind == ValKind::reduce && !(found && val::structurally_equal(found, n))) {
      found = n;
      ++count;
    }
    for (const Val& a : n->args) visit(a);
  };
  visit(v);
  return found;
}

// A factor that is a read, perhaps converted, perhaps with a default outside its bounds.
struct Operand {
  Val read;
  Val outside;  // the default, or null
};
std::optional<Operand> operand(const Val& factor) {
  if (factor->kind == ValKind::read) return Operand{factor, nullptr};
  if (factor->kind == ValKind::cast && !factor->saturate && compute_type(factor->to) == factor->to)
    return operand(factor->args[0]);
  if (factor->kind == ValKind::orelse && factor->args[0]->kind == ValKind::read &&
      (factor->args[1]->kind == ValKind::real || factor->args[1]->kind == ValKind::integer))
    return Operand{factor->args[0], factor->args[1]};
  return std::nullopt;
}

// How a statement's loops fall into classes, for one choice of the m and the n operand.
struct Classes {
  Operand m_side, n_side;
  std::vector<Loop> batch, m, n;  // of the statement; n without the vector loop
  std::vector<Loop> k;            // of the reduction, in order of falling strides of the m operand
  Loop vector;
  Val reduction;
  // The innermost k loop walks the same elements as an m loop (columns of a kernel, columns of the image). Unrolling it
  // would keep elements in registers for the next step, which the accumulators need.
  bool k_overlaps_m = false;
  int64_t x_stride = 0;  // bytes of the m operand from one point of the last m loop to the next
};

int64_t constant_or(const Expr& e, int64_t otherwise) { return e.constant().value_or(otherwise); }

class Planner {
 public:
  Planner(const Kernel& k, const Target& target, const ContractionTile& tile) : target_(target), tile_(tile) {
    plan_.kernel = k;
  }

  Result<Plan> run() {
    std::vector<Stmt> body = std::move(plan_.kernel.body);
    plan_.kernel.body.clear();
    for (Stmt& s : body) DLC_CHECK(statement(s));
    return std::move(plan_);
  }

 private:
  void keep(const Stmt& s, std::string note) {
    int assigns = 0;
    walk({s}, [&](const Stmt& inner) { assigns += inner.kind == Stmt::Kind::assign; });
    plan_.kernel.body.push_back(s);
    plan_.schedules.resize(plan_.schedules.size() + static_cast<size_t>(assigns));
    plan_.notes.push_back(std::move(note));
  }

  Result<> statement(const Stmt& s) {
    if (s.kind == Stmt::Kind::seq) {
      keep(s, "the contraction skeleton does not match, because its points run in sequence");
      return {};
    }
    Stmt stmt = s;
    DLC_TRY(auto why, match(stmt));
    if (!why.empty()) {
      keep(s, "the contraction skeleton does not match, because " + why);
      return {};
    }
    return {};
  }

  Result<std::string> match(Stmt& s);
  std::string classify(const Lowered& l, const Operand& m_side, const Operand& n_side, Classes& c) const;
  Result<> pad(Stmt& s, Classes& c, const Lowered& l);
  Result<> emit(const Stmt& s, const Classes& c);
  void piece(const Stmt& s, const Classes& c, const std::string& split, int64_t start, int64_t panels, int64_t width,
             int vectors);
  void prefetch_next_panel(Schedule& schedule, const Classes& c, int packed, const Expr& tile_index,
                           int64_t m_tiles) const;
  int add_tensor(const std::string& name, DType dtype, std::vector<Expr> shape, Role role);
  void choose(const Classes& c, int64_t units, int& vectors, int64_t& rows, int64_t& cols) const;
  double cost(int64_t points, int vectors) const;

  int lanes(DType t) const { return target_.vector_bytes / (t == kF64 ? 8 : 4); }

  const Target& target_;
  ContractionTile tile_;
  Plan plan_;
  std::vector<std::string> packed_vars_;  // variables of the packed tensor's leading dims
};

Result<std::string> Planner::match(Stmt& s) {
  int count = 0;
  const Val reduction = the_reduction(s.value, count);
  if (count != 1) return std::string(count == 0 ? "it has no reduction" : "it has several reductions");
  const auto c = contraction(reduction);
  if (!c) return std::string("it is no sum of products of two reads");
  if (!c->scales.empty() || !c->conditions.empty())
    return std::string("its products have further factors or conditions");
  const auto lhs = operand(c->lhs.factor), rhs = operand(c->rhs.factor);
  if (!lhs || !rhs) return std::string("a factor is more than a read");
  DLC_TRY(auto l, Lowered::make(plan_.kernel, s, {}));
  if (!l.store().checks.empty() || !l.store().dynamic.empty())
    return std::string("its stores depend on data or may be out of bounds");
  Classes classes;
  classes.reduction = reduction;
  std::string why = classify(l, *lhs, *rhs, classes);
  if (!why.empty()) {
    Classes other;
    other.reduction = reduction;
    if (std::string why_not = classify(l, *rhs, *lhs, other); !why_not.empty()) return why;
    classes = other;
  }
  if (!l.access(classes.m_side.read.get()).checks.empty()) {
    if (!classes.m_side.outside) return std::string("the operand that is read in place may be out of bounds");
    for (const Check& check : l.access(classes.m_side.read.get()).checks) {
      const Interval range = bounds(check.index, l.ranges());
      if (range.lo == Interval::kNegInf || range.hi == Interval::kPosInf || !check.extent.constant())
        return "the padded index " + to_string(check.index) + " has no constant bounds";
    }
    DLC_CHECK(pad(s, classes, l));
  }
  DLC_CHECK(emit(s, classes));
  return std::string();
}

std::string Planner::classify(const Lowered& l, const Operand& m_side, const Operand& n_side, Classes& c) const {
  const Access &out = l.store(), &a = l.access(m_side.read.get()), &b = l.access(n_side.read.get());
  if (!a.dynamic.empty() || !b.dynamic.empty()) return "an operand's index depends on data";
  if (!b.checks.empty() || n_side.outside) return "the operand to be packed may be out of bounds";
  const VarSet in_a = l.vars(m_side.read.get()), in_b = l.vars(n_side.read.get());
  c.m_side = m_side;
  c.n_side = n_side;
  bool found = false;
  for (const Loop& loop : l.loops()) {
    const VarSet bit = l.bit(loop.var);
    const auto stride = l.stride(out, loop.var);
    if (!stride) return "its stores are not affine in " + loop.var;
    if (*stride == 0 && !loop.extent.is(1)) return "loop " + loop.var + " is not in the result";
    const bool contiguous = *stride == l.store_type().bytes() && !loop.extent.is(1);
    if ((in_b & bit) && !(in_a & bit)) {
      if (!loop.extent.constant()) return "the extent of " + loop.var + " is no constant, so nothing can be packed";
      if (contiguous && !found) {
        c.vector = loop;
        found = true;
      } else {
        c.n.push_back(loop);
      }
    } else if (in_a & in_b & bit) {
      c.batch.push_back(loop);
    } else {
      c.m.push_back(loop);
    }
  }
  if (!found) return "no loop of the operand to be packed is the result's contiguous one";
  for (const Loop& loop : c.reduction->loops) {
    if (!loop.extent.constant()) return "the extent of " + loop.var + " is no constant, so nothing can be packed";
    if (!(in_b & l.bit(loop.var))) return "reduction loop " + loop.var + " is in one operand only";
    c.k.push_back(loop);
  }
  for (const Loop& loop : c.batch)
    if (!loop.extent.constant()) return "the extent of " + loop.var + " is no constant, so nothing can be packed";
  for (const Loop& loop : c.m)
    if (!l.stride(a, loop.var)) return "the operand that is read in place is not affine in " + loop.var;
  std::ranges::stable_sort(c.k, std::greater{}, [&](const Loop& loop) { return l.stride(a, loop.var).value_or(0); });
  // Loops of one point come first: they are no part of the tile.
  const auto by_out = [&](const Loop& loop) {
    return loop.extent.is(1) ? Interval::kPosInf : l.stride(out, loop.var).value_or(0);
  };
  std::ranges::stable_sort(c.m, std::greater{}, by_out);
  std::ranges::stable_sort(c.n, std::greater{}, by_out);
  const int64_t k_stride = c.k.empty() ? 0 : l.stride(a, c.k.back().var).value_or(0);
  for (const Loop& loop : c.m) {
    const int64_t m_stride = l.stride(a, loop.var).value_or(0);
    if (m_stride <= 0 || k_stride <= 0 || loop.extent.is(1)) continue;
    c.k_overlaps_m |= (k_stride % m_stride == 0 && k_stride / m_stride < constant_or(loop.extent, 128)) ||
                      (m_stride % k_stride == 0 && m_stride / k_stride < 4);
  }
  if (!c.m.empty()) c.x_stride = l.stride(a, c.m.back().var).value_or(0);
  return "";
}

int Planner::add_tensor(const std::string& name, DType dtype, std::vector<Expr> shape, Role role) {
  std::string unique = name;
  for (int i = 2; plan_.kernel.find(unique) >= 0; ++i) unique = name + "_" + std::to_string(i);
  plan_.kernel.tensors.push_back({unique, dtype, std::move(shape), role, std::nullopt});
  return static_cast<int>(plan_.kernel.tensors.size()) - 1;
}

// Copies the m operand into a temporary that covers every index the statement reads.
Result<> Planner::pad(Stmt& s, Classes& c, const Lowered& l) {
  const Val& read = c.m_side.read;
  const KernelTensor source = plan_.kernel.tensors[static_cast<size_t>(read->tensor)];
  std::vector<Expr> shape, low;
  Stmt copy;
  std::vector<Val> from;
  for (size_t d = 0; d < read->args.size(); ++d) {
    low.push_back(0);
    shape.push_back(source.shape[d]);
    for (const Check& check : l.access(read.get()).checks) {
      if (check.dim != static_cast<int>(d)) continue;
      const Interval range = bounds(check.index, l.ranges());
      low.back() = std::min<int64_t>(range.lo, 0);
      shape.back() = Expr(std::max(range.hi + 1, *source.shape[d].constant())) - low.back();
    }
    const std::string var = "pad" + std::to_string(d);
    copy.loops.push_back({var, shape.back()});
    from.push_back(val::index(Expr::symbol(var) + low.back()));
    copy.indices.push_back(val::index(Expr::symbol(var)));
  }
  const int padded = add_tensor(source.name + "_padded", source.dtype, shape, Role::temp);
  copy.tensor = padded;
  copy.value = val::orelse(val::read(read->tensor, source.dtype, from), c.m_side.outside);
  keep(copy, "the halo of " + source.name);
  std::vector<Val> indices;
  for (size_t d = 0; d < read->args.size(); ++d) indices.push_back(val::index(*val::as_expr(read->args[d]) - low[d]));
  const Val padded_read = val::read(padded, source.dtype, indices);
  s.value = rewrite(s.value, [&](const Val& v) -> Val {
    const bool is_padded = v->kind == ValKind::orelse && val::structurally_equal(v->args[0], read);
    return is_padded ? padded_read : nullptr;
  });
  int count = 0;
  c.reduction = the_reduction(s.value, count);
  c.m_side = {padded_read, nullptr};
  return {};
}

// Cycles of one k step of a tile: multiply-adds at two a cycle, or loads at two a cycle, or the latency of one chain,
// and what a step costs besides. With one vector per row every multiply-add has a load of its own.
double Planner::cost(int64_t points, int vectors) const {
  const double fmas = static_cast<double>(points) * vectors / 2.0;
  const double loads = (static_cast<double>(points) * (vectors == 1 ? 1.25 : 1.0) + vectors) / 2.0;
  return std::max({fmas, loads, 4.0}) + 0.7;
}

void Planner::choose(const Classes& c, int64_t units, int& vectors, int64_t& rows, int64_t& cols) const {
  const int64_t x = c.m.empty() ? 1 : constant_or(c.m.back().extent, 128);
  const int64_t y = c.m.size() < 2 ? 1 : constant_or(c.m[c.m.size() - 2].extent, 128);
  // A product that is not fused with its sum, or not of floats, needs registers of its own.
  const bool fused = target_.has("fma") && c.reduction->type.is_float();
  const int64_t registers = target_.registers - (fused ? 1 : 5);
  // Rows of the tile that fall into one set of the first-level cache throw each other out before all of their line is
  // used: strides that are multiples of large powers of two want few rows.
  const int64_t stride = c.x_stride;
  const auto conflicts = [&](int64_t points) {
    const int64_t period = std::gcd<int64_t>(std::max<int64_t>(stride, 1), 4096);
    return stride >= 64 && points * period > 4096 * 8;
  };
  double best = 0;
  for (int v = 1; v <= 4 && v <= units; ++v) {
    if (tile_.vectors && v != std::min<int64_t>(tile_.vectors, units)) continue;
    for (int64_t r = 1; r <= std::min<int64_t>(y, 4); ++r) {
      if (tile_.rows && r != std::min(tile_.rows, y)) continue;
      for (int64_t u = 1; u <= std::min<int64_t>(x, 28); ++u) {
        if (tile_.cols && u != std::min(tile_.cols, x)) continue;
        const bool given = tile_.vectors && tile_.rows && tile_.cols;
        if (r * u * v + v + 1 > registers && !given) continue;
        double total = 0;
        for (int64_t n : {v * (units / v), units % v}) {
          if (n == 0) continue;
          const int width = static_cast<int>(std::min<int64_t>(v, n));
          const double panels = static_cast<double>(n / width);
          const auto rows_of = [&](int64_t height, double times) {
            return times *
                   (static_cast<double>(x / u) * cost(height * u, width) + (x % u ? cost(height * (x % u), width) : 0));
          };
          total += panels * (rows_of(r, static_cast<double>(y / r)) + (y % r ? rows_of(y % r, 1) : 0));
        }
        if (conflicts(u)) total *= 1.2;
        if (best == 0 || total < best - 1e-9) best = total, vectors = v, rows = r, cols = u;
      }
    }
  }
}

Result<> Planner::emit(const Stmt& s, const Classes& c) {
  // The loop that is split into panels: the vector loop itself, or, when that is one vector long (channels in blocks),
  // the next n loop.
  const int64_t unit = lanes(c.reduction->type), n = *c.vector.extent.constant();
  const bool blocked = n == unit && !c.n.empty();
  const Loop& split = blocked ? c.n.back() : c.vector;
  const int64_t extent = *split.extent.constant(), width = blocked ? 1 : unit;
  const int64_t units = (extent + width - 1) / width;
  int vectors = 1;
  int64_t rows = 1, cols = 1;
  choose(c, units, vectors, rows, cols);
  tile_.rows = rows;
  tile_.cols = cols;
  const int64_t panels = extent / (vectors * width), rest = extent - panels * vectors * width;
  if (panels > 0) piece(s, c, split.var, 0, panels, vectors * width, vectors);
  if (rest > 0) piece(s, c, split.var, panels * vectors * width, 1, rest, static_cast<int>((rest + width - 1) / width));
  return {};
}

// One statement over `panels` panels of `width` points of the split loop, from `start`.
void Planner::piece(const Stmt& s, const Classes& c, const std::string& split, int64_t start, int64_t panels,
                    int64_t width, int vectors) {
  const bool blocked = split != c.vector.var;
  const int64_t unit = lanes(c.reduction->type);
  const std::string outer = split + "_p", inner = split + "_i";
  const Expr moved = Expr(start) + Expr::symbol(outer) * Expr(width) + Expr::symbol(inner);
  const Names names{{split, moved}};
  const int64_t stored = blocked ? vectors * unit : ceil_div(width, unit) * unit;

  Stmt stmt = s;
  stmt.loops.clear();
  for (const Loop& loop : s.loops) {
    if (loop.var == split) {
      stmt.loops.push_back({outer, Expr(panels)});
      stmt.loops.push_back({inner, Expr(width)});
    } else {
      stmt.loops.push_back(loop);
    }
  }
  for (Val& i : stmt.indices) i = substitute(i, names);

  // The packed operand, its elements in the order they are used.
  const Val& b = c.n_side.read;
  const KernelTensor source = plan_.kernel.tensors[static_cast<size_t>(b->tensor)];
  std::vector<Expr> shape;
  std::vector<Val> at;
  Stmt pack;
  std::vector<std::string>& vars = packed_vars_;
  vars.clear();
  const auto along = [&](const std::string& var, const Expr& n) {
    vars.push_back(var);
    shape.push_back(n);
    at.push_back(val::index(Expr::symbol(var)));
    pack.loops.push_back({var, n});
  };
  for (const Loop& loop : c.batch) along(loop.var, loop.extent);
  for (const Loop& loop : c.n)
    if (loop.var != split) along(loop.var, loop.extent);
  along(outer, Expr(panels));
  for (const Loop& loop : c.k) along(loop.var, loop.extent);
  shape.push_back(Expr(stored));
  pack.loops.push_back({inner, Expr(width)});
  if (blocked) {
    pack.loops.push_back(c.vector);
    at.push_back(val::index(Expr::symbol(inner) * Expr(unit) + Expr::symbol(c.vector.var)));
  } else {
    at.push_back(val::index(Expr::symbol(inner)));
  }
  const bool constant = source.role == Role::constant;
  const int packed = add_tensor(source.name + "_packed", source.dtype, shape, constant ? Role::constant : Role::temp);
  pack.tensor = packed;
  pack.indices = at;
  pack.value = substitute(b, names);
  if (constant) {
    PackedTensor p;
    p.source = b->tensor;
    p.packed = packed;
    p.pack.name = plan_.kernel.name + "_pack_" + source.name;
    p.pack.tensors = {source, plan_.kernel.tensors[static_cast<size_t>(packed)]};
    p.pack.tensors[0].role = Role::input;
    p.pack.tensors[1].role = Role::output;
    p.pack.inputs = {0};
    p.pack.outputs = {1};
    pack.tensor = 1;
    pack.value = val::read(0, source.dtype, pack.value->args);
    p.pack.body = {pack};
    plan_.packed.push_back(std::move(p));
  } else {
    keep(pack, "packs " + source.name);
  }
  const Val packed_read = val::read(packed, source.dtype, at);
  // One node for every use of the sum, so that it is computed once: a read without indices stands for it meanwhile.
  const Val stand_in = val::read(packed, c.reduction->type, {});
  const Val body = rewrite(c.reduction->args[0], [&](const Val& v) {
    return v->kind == ValKind::read && val::structurally_equal(v, b) ? packed_read : nullptr;
  });
  const Val sum = substitute(val::reduce(c.reduction->reduce_op(), c.reduction->to, c.k, body), names);
  stmt.value = rewrite(s.value, [&](const Val& v) { return v->kind == ValKind::reduce ? stand_in : nullptr; });
  stmt.value = rewrite(substitute(stmt.value, names), [&](const Val& v) {
    return v->kind == ValKind::read && v->tensor == packed && v->args.empty() ? sum : nullptr;
  });

  // The schedule.
  Schedule schedule;
  using Kind = ScheduleLoop::Kind;
  schedule.lanes = static_cast<int>(unit);
  schedule.unroll = tile_.unroll ? tile_.unroll : c.k_overlaps_m ? 1 : 4;
  for (const Loop& loop : c.batch) schedule.loops.push_back({loop.var, Kind::point, 1});
  const Loop* x = c.m.empty() ? nullptr : &c.m.back();
  const Loop* y = c.m.size() < 2 ? nullptr : &c.m[c.m.size() - 2];
  const Loop* outermost_m = nullptr;
  for (const Loop& loop : c.m)
    if (!loop.extent.is(1)) {
      outermost_m = &loop;
      break;
    }
  // One pass over the panels walks a part of the m operand that stays in the second-level cache.
  const int64_t block_bytes = tile_.block_bytes ? tile_.block_bytes : target_.l2_bytes * 3 / 4;
  int64_t outermost_block = 0;
  if (outermost_m && panels > 1) {
    int64_t bytes = 1;
    const KernelTensor& a = plan_.kernel.tensors[static_cast<size_t>(c.m_side.read->tensor)];
    for (const Expr& d : a.shape) bytes *= constant_or(d, 128);
    for (const Loop& loop : c.batch) bytes /= std::max<int64_t>(1, constant_or(loop.extent, 1));
    bytes *= a.dtype.bytes();
    const int64_t count = constant_or(outermost_m->extent, 128);
    const int64_t step = outermost_m == x ? tile_.cols : outermost_m == y ? tile_.rows : 1;
    const int64_t per_point = std::max<int64_t>(1, bytes / count);
    const int64_t block = std::max<int64_t>(step, block_bytes / per_point / step * step);
    if (block < count) {
      schedule.loops.push_back({outermost_m->var, Kind::block, block});
      outermost_block = block;
    }
  }
  for (const Loop& loop : c.n)
    if (loop.var != split) schedule.loops.push_back({loop.var, Kind::point, 1});
  schedule.loops.push_back({outer, Kind::point, 1});
  Expr tile_index = 0;
  int64_t m_tiles = 1;
  for (const Loop& loop : c.m) {
    const int64_t count = &loop == x ? tile_.cols : &loop == y ? tile_.rows : 1;
    schedule.loops.push_back({loop.var, count > 1 ? Kind::tile : Kind::point, count});
    // Which tile of the block this is: the prefetch below goes on from where the previous one stopped.
    int64_t tiles = ceil_div(constant_or(loop.extent, 128), count);
    Expr index = floor_div(Expr::symbol(loop.var), Expr(count));
    if (&loop == outermost_m && outermost_block) {
      tiles = outermost_block / count;
      index = mod(index, Expr(tiles));
    }
    tile_index = tile_index * Expr(tiles) + index;
    m_tiles *= tiles;
  }
  if (blocked) schedule.loops.push_back({inner, Kind::tile, width});
  schedule.loops.push_back({blocked ? c.vector.var : inner, Kind::vector, blocked ? 1 : vectors});

  if (tile_.prefetch) prefetch_next_panel(schedule, c, packed, tile_index, m_tiles);
  plan_.kernel.body.push_back(stmt);
  plan_.schedules.push_back(schedule);
  plan_.notes.push_back(fmt::format("contraction, tile {}x{}x{} of {} lanes: {}", tile_.rows, tile_.cols, vectors, unit,
                                    to_string(schedule)));
}

// All tiles that use one panel together fetch the next one, a line at a time: weights are used once in a network, and
// without this every panel would be waited for.
void Planner::prefetch_next_panel(Schedule& schedule, const Classes& c, int packed, const Expr& tile_index,
                                  int64_t m_tiles) const {
  const KernelTensor& p = plan_.kernel.tensors[static_cast<size_t>(packed)];
  int64_t unroll = std::min(schedule.unroll, *c.k.back().extent.constant());
  while (unroll > 1 && *c.k.back().extent.constant() % unroll != 0) --unroll;
  if (64 % unroll != 0) return;
  // Leading dims count panels, then k, then the panel's width.
  const size_t panel_dims = p.shape.size() - 1 - c.k.size();
  Expr panel = 0, step = 0;
  int64_t k_count = 1;
  const auto& loops = packed_vars_;
  for (size_t d = 0; d < panel_dims; ++d) panel = panel * p.shape[d] + Expr::symbol(loops[d]);
  for (const Loop& loop : c.k) {
    step = step * loop.extent + Expr::symbol(loop.var);
    k_count *= *loop.extent.constant();
  }
  const int64_t panel_bytes = k_count * *p.shape.back().constant() * p.dtype.bytes();
  const int64_t lines = ceil_div(panel_bytes, 64), per_tile = ceil_div(lines, m_tiles);
  const int64_t iterations = k_count / unroll, per_iteration = ceil_div(per_tile, iterations);
  if (per_tile * 8 < iterations || per_iteration > 8)
    return;  // so many tiles that the panel is cheap, or so few that it cannot help
  for (int64_t i = 0; i < per_iteration; ++i)
    schedule.prefetch.push_back({packed, (panel + 1) * Expr(panel_bytes) + tile_index * Expr(per_tile * 64) +
                                             step * Expr(64 / unroll * per_iteration) + Expr(64 * i)});
}

}  // namespace

Result<Plan> plan_contractions(const Kernel& k, const Target& target, const ContractionTile& tile) {
  return Planner(fuse_epilogues(k), target, tile).run();
}

}  // namespace dlc::cpu
