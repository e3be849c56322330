#include "fuse_epilogue.h"

#include <algorithm>
#include <set>

#include "dlc/kernel/access.h"

namespace dlc::cpu {

namespace {

std::set<int> tensors_read(const Stmt& s) {
  std::set<int> r;
  const auto collect = [&](const Val& v) {
    walk(v, [&](const ValNode& n) {
      if (n.kind == ValKind::read) r.insert(n.tensor);
    });
  };
  if (s.value) collect(s.value);
  for (const Val& i : s.indices) collect(i);
  for (const Stmt& inner : s.body) r.merge(tensors_read(inner));
  return r;
}

std::set<int> tensors_written(const Stmt& s) {
  std::set<int> r;
  walk({s}, [&](const Stmt& inner) {
    if (inner.kind == Stmt::Kind::assign) r.insert(inner.tensor);
  });
  return r;
}

// The loops that index a statement's target, when each of its dims is one loop of full extent.
bool covers_target(const Kernel& k, const Stmt& s) {
  const auto& shape = k.tensors[static_cast<size_t>(s.tensor)].shape;
  if (s.indices.size() != s.loops.size()) return false;
  for (size_t d = 0; d < s.indices.size(); ++d) {
    const auto e = val::as_expr(s.indices[d]);
    if (!e || !(*e == Expr::symbol(s.loops[d].var)) || !(s.loops[d].extent == shape[d])) return false;
  }
  return true;
}

bool is_view_or_base(const Kernel& k, int tensor) {
  if (k.tensors[static_cast<size_t>(tensor)].view) return true;
  return std::ranges::any_of(k.tensors, [&](const KernelTensor& t) { return t.view && t.view->base == tensor; });
}

// The read of `tensor` in v, outside reductions; null when there is none, or reads of different elements.
Val only_read(const Val& v, int tensor) {
  Val found;
  bool ambiguous = false;
  const std::function<void(const Val&, bool)> visit = [&](const Val& n, bool reduced) {
    if (n->kind == ValKind::read && n->tensor == tensor) {
      ambiguous |= reduced || (found && !val::structurally_equal(found, n));
      found = n;
    }
    for (const Val& a : n->args) visit(a, reduced || n->kind == ValKind::reduce);
  };
  visit(v, false);
  return ambiguous ? nullptr : found;
}

// Puts the value of `producer` in place of its read in `consumer`; false when it cannot be.
bool inline_into(const Kernel& k, const Stmt& producer, Stmt& consumer) {
  const Val read = only_read(consumer.value, producer.tensor);
  if (!read) return false;
  for (const Val& i : consumer.indices)
    if (only_read(i, producer.tensor)) return false;
  std::map<std::string, Expr, std::less<>> names;
  std::set<std::string, std::less<>> used;
  for (size_t d = 0; d < read->args.size(); ++d) {
    const auto e = val::as_expr(read->args[d]);
    if (e && e->is(0) && producer.loops[d].extent.is(1)) {
      names[producer.loops[d].var] = *e;
      continue;
    }
    const auto var = e ? e->as_symbol() : std::nullopt;
    if (!var || !used.insert(std::string(*var)).second) return false;
    const auto loop = std::ranges::find(consumer.loops, *var, &Loop::var);
    if (loop == consumer.loops.end() || !(loop->extent == producer.loops[d].extent)) return false;
    names[producer.loops[d].var] = *e;
  }
  for (const Loop& loop : consumer.loops)  // each sum is needed at one point only
    if (!used.contains(loop.var) && !loop.extent.is(1)) return false;
  // Reduction loops with names of their own.
  std::set<std::string> taken;
  for (const Loop& l : consumer.loops) taken.insert(l.var);
  walk(consumer.value, [&](const ValNode& n) {
    for (const Loop& l : n.loops) taken.insert(l.var);
  });
  const Val& sum = producer.value;
  std::vector<Loop> loops;
  std::map<std::string, Expr, std::less<>> renamed = names;
  for (const Loop& l : sum->loops) {
    std::string var = l.var;
    while (taken.contains(var)) var += "_r";
    taken.insert(var);
    renamed[l.var] = Expr::symbol(var);
    loops.push_back({var, substitute(l.extent, names)});
  }
  Val value = val::reduce(sum->reduce_op(), sum->to, loops, substitute(sum->args[0], renamed));
  const DType stored = k.tensors[static_cast<size_t>(producer.tensor)].dtype;
  if (!(stored == value->type)) value = val::cast(stored, value);
  consumer.value = rewrite(consumer.value, [&](const Val& v) {
    return v->kind == ValKind::read && v->tensor == producer.tensor ? value : nullptr;
  });
  return true;
}

}  // namespace

Kernel fuse_epilogues(const Kernel& k) {
  Kernel out = k;
  for (size_t i = 0; i < out.body.size();) {
    const Stmt producer = out.body[i];
    const bool candidate = producer.kind == Stmt::Kind::assign && producer.value->kind == ValKind::reduce &&
                           contraction(producer.value) &&
                           out.tensors[static_cast<size_t>(producer.tensor)].role == Role::temp &&
                           !is_view_or_base(out, producer.tensor) && covers_target(out, producer);
    size_t readers = 0, writers = 0, reader = 0;
    for (size_t j = 0; candidate && j < out.body.size(); ++j) {
      if (tensors_read(out.body[j]).contains(producer.tensor)) ++readers, reader = j;
      if (tensors_written(out.body[j]).contains(producer.tensor)) ++writers;
    }
    bool done = false;
    if (candidate && readers == 1 && writers == 1 && reader > i && out.body[reader].kind == Stmt::Kind::assign) {
      bool overwritten = false;  // something the sum reads, before its value is used
      const std::set<int> needs = tensors_read(producer);
      for (size_t j = i + 1; j < reader; ++j)
        for (int t : tensors_written(out.body[j])) overwritten |= needs.contains(t) || is_view_or_base(out, t);
      done = !overwritten && inline_into(out, producer, out.body[reader]);
    }
    if (done)
      out.body.erase(out.body.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  return out;
}

}  // namespace dlc::cpu
