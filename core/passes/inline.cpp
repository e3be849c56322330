// Inlining of element-wise temporaries:
//
//   T[i] = exp(X[i])             ->   Y[i] = exp(X[i]) + 1
//   Y[i] = T[i] + 1
//
// A temporary goes where that costs less than keeping it: it is read once, or recomputing it is cheap. Into a reduction
// goes nothing but a read, so that a contraction stays one.
#include <algorithm>

#include "dlc/kernel/access.h"
#include "dlc/passes/fuse.h"

namespace dlc {

namespace {

constexpr int kCheap = 8;          // operations that may be repeated instead of stored
constexpr int kCallCost = 16;      // of exp and its like
constexpr int kLargestTree = 400;  // nodes of a value after inlining

int cost(const Val& v) {
  int total = 0;
  walk(v, [&](const ValNode& n) {
    switch (n.kind) {
      case ValKind::unary:
      case ValKind::binary:
      case ValKind::select:
        ++total;
        break;
      case ValKind::call:
        total += n.fn() == Fn::min || n.fn() == Fn::max || n.fn() == Fn::abs ? 1 : kCallCost;
        break;
      default:
        break;
    }
  });
  return total;
}

int tree_size(const Val& v) {
  int total = 0;
  walk(v, [&](const ValNode&) { ++total; });
  return total;
}

bool is_read(const Val& v) { return v->kind == ValKind::read || (v->kind == ValKind::cast && is_read(v->args[0])); }

bool reads_tensor(const Val& v, int tensor) {
  bool found = false;
  walk(v, [&](const ValNode& n) { found |= n.kind == ValKind::read && n.tensor == tensor; });
  return found;
}

bool reads_tensor_in_reduction(const Val& v, int tensor) {
  bool found = false;
  walk(v, [&](const ValNode& n) { found |= n.kind == ValKind::reduce && reads_tensor(n.args[0], tensor); });
  return found;
}

// What is known of a temporary's only definition.
struct Definition {
  size_t statement = 0;
  std::vector<std::string> loops;  // by dim; empty for a dim of one element
  Val value;                       // as a read of the temporary gives it
};

class Inliner {
 public:
  Inliner(const Kernel& k, const Ranges& ranges) : k_(k), ranges_(ranges) {}

  Kernel run() {
    for (size_t t = 0; t < k_.tensors.size(); ++t)
      if (k_.tensors[t].role == Role::temp && !k_.tensors[t].view) inline_tensor(static_cast<int>(t));
    drop_unused();
    return std::move(k_);
  }

 private:
  std::optional<Definition> definition(int t) const {
    std::optional<Definition> found;
    for (size_t i = 0; i < k_.body.size(); ++i) {
      const Stmt& s = k_.body[i];
      if (s.kind == Stmt::Kind::seq) {
        bool written = false;
        walk(s.body, [&](const Stmt& inner) { written |= inner.kind == Stmt::Kind::assign && inner.tensor == t; });
        if (written) return std::nullopt;
        continue;
      }
      if (s.tensor != t) continue;
      if (found) return std::nullopt;
      found = Definition{.statement = i, .loops = {}, .value = s.value};
    }
    if (!found) return std::nullopt;
    const Stmt& s = k_.body[found->statement];
    const KernelTensor& tensor = k_.tensors[static_cast<size_t>(t)];
    for (size_t d = 0; d < s.indices.size(); ++d) {
      auto e = val::as_expr(s.indices[d]);
      if (e && e->is(0) && tensor.shape[d].is(1)) {
        found->loops.emplace_back();
        continue;
      }
      auto var = e ? e->as_symbol() : std::nullopt;
      auto loop = std::ranges::find_if(s.loops, [&](const Loop& l) { return var && l.var == *var; });
      if (loop == s.loops.end() || loop->extent != tensor.shape[d]) return std::nullopt;
      if (std::ranges::find(found->loops, *var) != found->loops.end()) return std::nullopt;
      found->loops.emplace_back(*var);
    }
    bool reduces = false;
    walk(s.value, [&](const ValNode& n) { reduces |= n.kind == ValKind::reduce; });
    if (reduces || reads_tensor(s.value, t)) return std::nullopt;
    found->value = val::cast(tensor.dtype, s.value);  // a store narrows; a cast says so where it is no store any more
    return found;
  }

  // Every read of t is at Exprs, in a statement of its own, and the definition may stand there.
  bool may_inline(int t, const Definition& d) const {
    int sites = 0;
    bool possible = true;
    for (size_t i = 0; i < k_.body.size(); ++i) {
      const Stmt& s = k_.body[i];
      if (s.kind == Stmt::Kind::seq) {
        walk(s.body, [&](const Stmt& inner) {
          if (inner.kind == Stmt::Kind::assign) possible &= !reads_tensor(inner.value, t);
          for (const Val& index : inner.indices) possible &= !reads_tensor(index, t);
        });
        continue;
      }
      for (const Val& index : s.indices) possible &= !reads_tensor(index, t);
      int here = 0;
      walk(s.value, [&](const ValNode& n) {
        if (n.kind != ValKind::read || n.tensor != t) return;
        ++here;
        for (const Val& a : n.args) possible &= val::as_expr(a).has_value();
      });
      if (here == 0) continue;
      sites += here;
      possible &= i > d.statement && tree_size(s.value) + here * tree_size(d.value) <= kLargestTree;
      if (reads_tensor_in_reduction(s.value, t)) possible &= is_read(d.value);
      possible &= inputs_survive(d, i);
    }
    return possible && (sites <= 1 || cost(d.value) <= kCheap);
  }

  // What the definition reads is not written again before statement `until`.
  bool inputs_survive(const Definition& d, size_t until) const {
    bool survive = true;
    const auto written = [&](const Stmt& s) {
      if (s.kind == Stmt::Kind::assign) survive &= !reads_tensor(d.value, s.tensor);
    };
    for (size_t i = d.statement + 1; i < until; ++i) walk(std::vector<Stmt>{k_.body[i]}, written);
    return survive;
  }

  void inline_tensor(int t) {
    const auto d = definition(t);
    if (!d || !may_inline(t, *d)) return;
    for (Stmt& s : k_.body)
      if (s.kind == Stmt::Kind::assign && reads_tensor(s.value, t)) s.value = inlined(s, t, *d);
    k_.body.erase(k_.body.begin() + static_cast<std::ptrdiff_t>(d->statement));
  }

  Val inlined(const Stmt& s, int t, const Definition& d) const {
    const auto& shape = k_.tensors[static_cast<size_t>(t)].shape;
    Known known{.ranges = ranges_, .nonnegative = {}};
    add_loop_ranges(s.loops, known.ranges);
    bool guard = false;
    for (const ReadSite& site : reads(s.value, known))
      if (site.read->tensor == t) guard |= !provably_in_bounds(site.access, shape, site.known);
    return rewrite(s.value, [&](const Val& v) -> Val {
      if (v->kind != ValKind::read || v->tensor != t) return nullptr;
      std::map<std::string, Expr, std::less<>> at;
      for (size_t i = 0; i < d.loops.size(); ++i)
        if (!d.loops[i].empty()) at.emplace(d.loops[i], *val::as_expr(v->args[i]));
      const Val value = substitute(d.value, at);
      if (!guard) return value;
      Val inside = val::boolean(true);
      for (size_t i = 0; i < shape.size(); ++i) {
        const Val zero = val::index(0), end = val::index(shape[i]);
        inside = val::binary(BinaryOp::logical_and, inside, val::binary(BinaryOp::ge, v->args[i], zero));
        inside = val::binary(BinaryOp::logical_and, inside, val::binary(BinaryOp::lt, v->args[i], end));
      }
      return val::select(inside, value, val::undef(value->type));
    });
  }

  void drop_unused() {
    std::vector<bool> used(k_.tensors.size(), false);
    for (size_t t = 0; t < k_.tensors.size(); ++t) used[t] = k_.tensors[t].role != Role::temp;
    const auto use = [&](const Val& v) {
      walk(v, [&](const ValNode& n) {
        if (n.kind == ValKind::read) used[static_cast<size_t>(n.tensor)] = true;
      });
    };
    walk(k_.body, [&](const Stmt& s) {
      if (s.kind != Stmt::Kind::assign) return;
      used[static_cast<size_t>(s.tensor)] = true;
      use(s.value);
      for (const Val& i : s.indices) use(i);
    });
    std::vector<int> place(k_.tensors.size(), -1);
    std::vector<KernelTensor> kept;
    for (size_t t = 0; t < k_.tensors.size(); ++t)
      if (used[t]) {
        place[t] = static_cast<int>(kept.size());
        kept.push_back(std::move(k_.tensors[t]));
      }
    k_.tensors = std::move(kept);
    renumber(k_.body, place);
    for (int& t : k_.inputs)
      if (t >= 0) t = place[static_cast<size_t>(t)];
    for (int& t : k_.outputs) t = place[static_cast<size_t>(t)];
  }

  static void renumber(std::vector<Stmt>& body, const std::vector<int>& place);

  Kernel k_;
  const Ranges& ranges_;
};

void Inliner::renumber(std::vector<Stmt>& body, const std::vector<int>& place) {
  const auto moved = [&](const Val& v) {
    return rewrite(v, [&](const Val& n) -> Val {
      if (n->kind != ValKind::read || place[static_cast<size_t>(n->tensor)] == n->tensor) return nullptr;
      auto copy = std::make_shared<ValNode>(*n);
      copy->tensor = place[static_cast<size_t>(n->tensor)];
      return copy;
    });
  };
  for (Stmt& s : body) {
    if (s.kind == Stmt::Kind::seq) {
      renumber(s.body, place);
      continue;
    }
    s.tensor = place[static_cast<size_t>(s.tensor)];
    s.value = moved(s.value);
    for (Val& i : s.indices) i = moved(i);
  }
}

}  // namespace

Kernel inline_temporaries(const Kernel& k, const Ranges& ranges) { return Inliner(k, ranges).run(); }

}  // namespace dlc
