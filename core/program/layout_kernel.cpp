#include "core/program/layout_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/kernel/rebuild.h"
#include "dlc/kernel/access.h"

namespace dlc::detail {

namespace {

using Names = std::map<std::string, Expr, std::less<>>;

bool is_zero(const Val& v) {  // what a halo is filled with, so that -0.0 is none
  return (v->kind == ValKind::real && v->real == 0 && !std::signbit(v->real)) ||
         (v->kind == ValKind::integer && v->integer == 0) || (v->kind == ValKind::index && v->index.is(0));
}

// A guarded read: `T[...] ?: default`.
bool is_guarded_read(const Val& v, int tensor) {
  return v->kind == ValKind::orelse && v->args[0]->kind == ValKind::read && v->args[0]->tensor == tensor;
}

// The loop that a channel index runs along, when the index is that loop plus a multiple of the block.
std::optional<std::string> split_loop(const Expr& index, int64_t block, const std::vector<Loop>& loops) {
  for (const Loop& l : loops) {
    if (!index.mentions(l.var)) continue;
    const std::vector<std::string> var{l.var};
    const auto a = affine(index, var);
    if (!a || !a->coefficients[0].is(1)) return std::nullopt;
    const auto extent = l.extent.constant();
    if (!extent || *extent % block != 0) return std::nullopt;
    // The rest must be whole blocks, whatever the other loops are.
    Ranges ranges;
    add_loop_ranges(loops, ranges);
    if (!simplify(mod(a->base, block), ranges).is(0)) return std::nullopt;
    return l.var;
  }
  return std::nullopt;
}

// Calls f(read or null, loops in scope, guard default or null, is_write) for every access of the kernel.
class Accesses {
 public:
  using Visit = std::function<void(const std::vector<Val>& indices, const std::vector<Loop>& loops, const Val& outside,
                                   bool write)>;

  static void of(const Kernel& k, int tensor, const Visit& f) { statements(k.body, {}, tensor, f); }

 private:
  static void statements(const std::vector<Stmt>& body, const std::vector<Loop>& loops, int tensor, const Visit& f) {
    for (const Stmt& s : body) {
      std::vector<Loop> inside = loops;
      inside.insert(inside.end(), s.loops.begin(), s.loops.end());
      if (s.kind == Stmt::Kind::seq) {
        statements(s.body, inside, tensor, f);
        continue;
      }
      if (s.tensor == tensor) f(s.indices, inside, nullptr, true);
      for (const Val& i : s.indices) value(i, inside, tensor, f);
      value(s.value, inside, tensor, f);
    }
  }

  static void value(const Val& v, const std::vector<Loop>& loops, int tensor, const Visit& f) {
    if (is_guarded_read(v, tensor)) {
      f(v->args[0]->args, loops, v->args[1], false);
      for (const Val& a : v->args[0]->args) value(a, loops, tensor, f);
      value(v->args[1], loops, tensor, f);
      return;
    }
    if (v->kind == ValKind::read && v->tensor == tensor) f(v->args, loops, nullptr, false);
    std::vector<Loop> inside = loops;
    if (v->kind == ValKind::reduce) inside.insert(inside.end(), v->loops.begin(), v->loops.end());
    for (const Val& a : v->args) value(a, inside, tensor, f);
  }
};

// ---- rewriting

class Rewriter {
 public:
  Rewriter(Kernel& k, std::map<int, Blocked> layouts, const Ranges& symbols)
      : k_(k), layouts_(std::move(layouts)), symbols_(symbols) {
    for (const auto& t : k.tensors) shapes_.push_back(t.shape);
    taken_ = names_in(k);
    for (const auto& [name, range] : symbols) taken_.insert(name);
  }

  Result<> run() {
    do find_splits();
    while (block_temps());
    for (const auto& [t, layout] : layouts_) {
      auto& tensor = k_.tensors[static_cast<size_t>(t)];
      tensor.shape = physical_shape(tensor.shape, layout);
    }
    statements(k_.body, symbols_);
    for (const auto& [t, layout] : layouts_)
      if (k_.tensors[static_cast<size_t>(t)].role == Role::output) fill_halo(t, layout);
    return verify(k_);
  }

 private:
  // Every loop that is the channel of a blocked tensor somewhere is split everywhere, by the same block.
  void find_splits() {
    for (const auto& [t, layout] : layouts_)
      Accesses::of(
          k_, t,
          [&, &layout = layout](const std::vector<Val>& indices, const std::vector<Loop>& loops, const Val&, bool) {
            const auto e = val::as_expr(indices[layout.channel]);
            if (!e) return;
            if (const auto var = split_loop(*e, layout.block, loops)) splits_.emplace(*var, layout.block);
          });
  }

  // A temporary that is written or read along a split loop gets blocks too, so that accumulators have the form of the
  // result they become. True when one was added.
  bool block_temps() {
    bool added = false;
    for (size_t t = 0; t < k_.tensors.size(); ++t) {
      const auto& tensor = k_.tensors[t];
      if (tensor.role != Role::temp || tensor.view || layouts_.contains(static_cast<int>(t))) continue;
      for (size_t d = 0; d < tensor.shape.size(); ++d) {
        int64_t block = 0;
        Accesses::of(k_, static_cast<int>(t),
                     [&](const std::vector<Val>& indices, const std::vector<Loop>&, const Val&, bool) {
                       const auto e = val::as_expr(indices[d]);
                       if (!e) return;
                       for (const auto& [var, b] : splits_)
                         if (e->mentions(var)) block = b;
                     });
        if (block == 0 || !demand_on(k_, static_cast<int>(t), d, block, symbols_).can_split) continue;
        Blocked layout;
        layout.channel = d;
        layout.block = block;
        layout.lo.assign(tensor.shape.size(), 0);
        layout.hi = layout.lo;
        layouts_.emplace(static_cast<int>(t), std::move(layout));
        added = true;
        break;
      }
    }
    return added;
  }

  // A name for what becomes of a loop, the same wherever the loop's name is, which nothing else in the kernel has.
  std::string fresh(const std::string& var, const std::string& suffix) {
    const auto [known, is_new] = fresh_.try_emplace(var + suffix);
    if (!is_new) return known->second;
    std::string name = known->first;
    while (!taken_.insert(name).second) name += "_";
    return known->second = name;
  }

  // loops with the split ones in two: the block's number in its place, its inside at the end. Loops of one point go:
  // they would only hide what kind of computation it is.
  std::vector<Loop> split(const std::vector<Loop>& loops, Names& names) {
    std::vector<Loop> out;
    std::vector<Loop> inside;
    for (const Loop& l : loops) {
      const auto s = splits_.find(l.var);
      const auto extent = l.extent.constant();
      if (extent == 1) {
        names.insert_or_assign(l.var, Expr(0));
        continue;
      }
      if (s == splits_.end() || !extent || *extent % s->second != 0) {
        names.erase(l.var);
        out.push_back(l);
        continue;
      }
      const std::string number = fresh(l.var, "_1");
      const std::string within = fresh(l.var, "_0");
      const bool one_block = *extent == s->second;
      if (!one_block) out.push_back({number, Expr(*extent / s->second)});
      inside.push_back({within, Expr(s->second)});
      names.insert_or_assign(l.var, (one_block ? Expr(0) : Expr::symbol(number) * s->second) + Expr::symbol(within));
    }
    out.insert(out.end(), inside.begin(), inside.end());
    return out;
  }

  void statements(std::vector<Stmt>& body, const Ranges& outer, const Names& outer_names = {}) {
    for (Stmt& s : body) {
      Names names = outer_names;
      if (s.kind == Stmt::Kind::seq)  // its order is what it means: its loops stay as they are
        for (const Loop& l : s.loops) names.erase(l.var);
      else
        s.loops = split(s.loops, names);
      Ranges ranges = outer;
      add_loop_ranges(s.loops, ranges);
      if (s.kind == Stmt::Kind::seq) {
        statements(s.body, ranges, names);
        continue;
      }
      for (Val& i : s.indices) i = value(i, names, ranges);
      if (const auto l = layouts_.find(s.tensor); l != layouts_.end())
        s.indices = physical(s.indices, l->second, ranges);
      s.value = value(s.value, names, ranges);
    }
  }

  std::vector<Val> physical(const std::vector<Val>& indices, const Blocked& b, const Ranges& ranges) {
    std::vector<Val> out;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr e = val::as_expr(indices[d]).value_or(Expr(0));
      if (d == b.channel)
        out.push_back(val::index(simplify(floor_div(e, b.block), ranges)));
      else
        out.push_back(val::index(e + b.lo[d]));
    }
    const Expr channel = val::as_expr(indices[b.channel]).value_or(Expr(0));
    out.push_back(val::index(simplify(mod(channel, b.block), ranges)));
    return out;
  }

  Val value(const Val& v, const Names& names, const Ranges& ranges) {
    if (v->kind == ValKind::index) return val::index(simplify(substitute(v->index, names), ranges));
    if (v->kind == ValKind::reduce) {
      const ReduceOp op = v->reduce_op();
      Names inner = names;
      // A position is the value of its loop, which stays as it is.
      const bool is_position = op == ReduceOp::argmax || op == ReduceOp::argmin;
      if (is_position) inner.erase(v->loops.front().var);
      std::vector<Loop> loops = is_position ? v->loops : split(v->loops, inner);
      Ranges inside = ranges;
      add_loop_ranges(loops, inside);
      Val body = value(v->args[0], inner, inside);
      return val::reduce(op, v->to, std::move(loops), std::move(body));
    }
    if (v->kind == ValKind::orelse && v->args[0]->kind == ValKind::read)
      if (const auto l = layouts_.find(v->args[0]->tensor); l != layouts_.end())
        return guarded(v, l->second, names, ranges);
    if (v->args.empty()) return v;
    std::vector<Val> args;
    for (const Val& a : v->args) args.push_back(value(a, names, ranges));
    if (v->kind == ValKind::read) {
      const auto l = layouts_.find(v->tensor);
      return read(v->tensor, l == layouts_.end() ? args : physical(args, l->second, ranges));
    }
    return rebuild(*v, std::move(args));
  }

  Val read(int tensor, std::vector<Val> indices) {
    return val::read(tensor, k_.tensors[static_cast<size_t>(tensor)].dtype, std::move(indices));
  }

  // Inside halo and tensor the read needs no guard when the default is the fill; otherwise the bounds are tested.
  Val guarded(const Val& v, const Blocked& b, const Names& names, const Ranges& ranges) {
    const int tensor = v->args[0]->tensor;
    const auto& shape = shapes_[static_cast<size_t>(tensor)];
    std::vector<Val> indices;
    for (const Val& i : v->args[0]->args) indices.push_back(value(i, names, ranges));
    const Val outside = value(v->args[1], names, ranges);
    const Val inside = read(tensor, physical(indices, b, ranges));
    Val condition;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr e = val::as_expr(indices[d]).value_or(Expr(0));
      const int64_t lo = is_zero(outside) ? b.lo[d] : 0;
      const int64_t hi = is_zero(outside) ? b.hi[d] : 0;
      const auto require = [&](Val c) {
        condition = condition ? val::binary(BinaryOp::logical_and, condition, std::move(c)) : std::move(c);
      };
      if (!provably_le(Expr(-lo), e, ranges)) require(val::binary(BinaryOp::ge, val::index(e), val::integer(-lo)));
      if (!provably_lt(e, shape[d] + hi, ranges))
        require(val::binary(BinaryOp::lt, val::index(e), val::index(shape[d] + hi)));
    }
    return condition ? val::select(condition, inside, outside) : inside;
  }

  // For each padded dim, the slabs before and behind; dims before it are taken without their halo, those after it
  // whole, so that every element of the halo is written once.
  void fill_halo(int tensor, const Blocked& b) {
    const auto& t = k_.tensors[static_cast<size_t>(tensor)];
    const auto& logical = shapes_[static_cast<size_t>(tensor)];
    for (size_t d = 0; d < logical.size(); ++d)
      for (const bool behind : {false, true}) {
        const int64_t thickness = behind ? b.hi[d] : b.lo[d];
        if (thickness == 0) continue;
        Stmt s;
        s.tensor = tensor;
        for (size_t e = 0; e < t.shape.size(); ++e) {
          const std::string var = fresh("halo", std::to_string(e));
          Expr extent = t.shape[e];
          Expr offset(0);
          if (e == d) {
            extent = Expr(thickness);
            offset = behind ? logical[e] + b.lo[e] : Expr(0);
          } else if (e < d && e != b.channel) {
            extent = logical[e];
            offset = Expr(b.lo[e]);
          }
          s.loops.push_back({var, extent});
          s.indices.push_back(val::index(Expr::symbol(var) + offset));
        }
        s.value = compute_type(t.dtype).is_float() ? val::real(0, compute_type(t.dtype)) : val::integer(0);
        k_.body.push_back(std::move(s));
      }
  }

  Kernel& k_;
  std::map<int, Blocked> layouts_;
  const Ranges& symbols_;
  std::vector<std::vector<Expr>> shapes_;  // before
  std::map<std::string, int64_t, std::less<>> splits_;
  std::set<std::string> taken_;               // names of loops and symbols
  std::map<std::string, std::string> fresh_;  // by the name a loop would like
};

}  // namespace

std::vector<Expr> physical_shape(const std::vector<Expr>& shape, const Blocked& b) {
  std::vector<Expr> out;
  for (size_t d = 0; d < shape.size(); ++d)
    out.push_back(d == b.channel ? floor_div(shape[d], b.block) : shape[d] + b.lo[d] + b.hi[d]);
  out.emplace_back(b.block);
  return out;
}

Demand demand_on(const Kernel& k, int tensor, size_t channel, int64_t block, const Ranges& symbols) {
  const auto& shape = k.tensors[static_cast<size_t>(tensor)].shape;
  Demand d;
  d.lo.assign(shape.size(), 0);
  d.hi.assign(shape.size(), 0);
  Accesses::of(k, tensor,
               [&](const std::vector<Val>& indices, const std::vector<Loop>& loops, const Val& outside, bool write) {
                 Ranges ranges = symbols;
                 add_loop_ranges(loops, ranges);
                 for (size_t i = 0; i < indices.size(); ++i) {
                   const auto e = val::as_expr(indices[i]);
                   if (!e || (write && !e->as_symbol() && !e->constant())) {
                     d.can_split = false;
                     return;
                   }
                   if (i == channel) {
                     if (!split_loop(*e, block, loops)) d.can_split = false;
                     continue;
                   }
                   if (!outside || !is_zero(outside)) continue;
                   const Interval low = bounds(*e, ranges);
                   const Interval high = bounds(*e - shape[i] + 1, ranges);
                   if (low.lo == Interval::kNegInf || high.hi == Interval::kPosInf) {
                     d.can_split = false;
                     return;
                   }
                   d.lo[i] = std::max(d.lo[i], std::max<int64_t>(0, -low.lo));
                   d.hi[i] = std::max(d.hi[i], std::max<int64_t>(0, high.hi));
                 }
               });
  return d;
}

Result<Kernel> apply_layouts(const Kernel& k, const std::map<int, Blocked>& layouts, const Ranges& symbols) {
  Kernel out = k;
  DLC_CHECK(Rewriter(out, layouts, symbols).run());
  return out;
}

}  // namespace dlc::detail
