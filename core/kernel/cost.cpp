// Work and traffic of a kernel, as Exprs over its dims.
#include <algorithm>

#include "dlc/kernel/access.h"
#include "typing.h"

namespace dlc {

namespace {

Expr points(const std::vector<Loop>& loops) {
  Expr n = 1;
  for (const Loop& l : loops) n = n * l.extent;
  return n;
}

bool has_read(const Val& v) { return v->kind == ValKind::read || std::ranges::any_of(v->args, has_read); }

// Operations of v when it is evaluated `times` times.
Expr operations(const Val& v, const Expr& times) {
  if (v->kind == ValKind::read) return 0;  // index arithmetic is not counted
  if (v->kind == ValKind::reduce) {
    const Expr inside = times * points(v->loops);
    return operations(v->args[0], inside) + inside;
  }
  const bool counts = (v->kind == ValKind::binary || v->kind == ValKind::call) && has_read(v);
  Expr n = 0;
  if (counts) n = v->kind == ValKind::call && v->args.size() > 1 ? times * static_cast<int>(v->args.size() - 1) : times;
  for (const Val& a : v->args) n += operations(a, times);
  return n;
}

Expr contraction_points(const Val& v, const Expr& times) {
  const Expr inside = v->kind == ValKind::reduce ? times * points(v->loops) : times;
  if (v->kind == ValKind::reduce && contraction(v)) return inside;
  Expr n = 0;
  for (const Val& a : v->args) n += contraction_points(a, inside);
  return n;
}

template <class Count>
Expr total(const std::vector<Stmt>& body, const Expr& times, Count count) {
  Expr n = 0;
  for (const Stmt& s : body) {
    const Expr here = times * points(s.loops);
    n += s.kind == Stmt::Kind::seq ? total(s.body, here, count) : count(s.value, here);
  }
  return n;
}

}  // namespace

Expr elements(const std::vector<Expr>& shape) {
  Expr n = 1;
  for (const Expr& d : shape) n = n * d;
  return n;
}

Expr flops(const Kernel& k) { return total(k.body, 1, operations); }
Expr macs(const Kernel& k) { return total(k.body, 1, contraction_points); }

Expr bytes(const Kernel& k) {
  Expr n = 0;
  for (const KernelTensor& t : k.tensors)
    if (t.role != Role::temp && !t.view) n += elements(t.shape) * t.dtype.bytes();
  return n;
}

}  // namespace dlc
