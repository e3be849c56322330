#include "core/kernel/doubles.h"

namespace dlc {

namespace {

Val doubled(const Val& v) {
  if (!v) return v;
  ValNode n = *v;
  if (n.type.is_float()) n.type = kF64;
  if (n.to.is_float()) n.to = kF64;
  for (Val& a : n.args) a = doubled(a);
  return std::make_shared<const ValNode>(std::move(n));
}

void double_all(std::vector<Stmt>& body) {
  for (Stmt& s : body) {
    s.value = doubled(s.value);
    for (Val& i : s.indices) i = doubled(i);
    double_all(s.body);
  }
}

}  // namespace

Kernel in_doubles(Kernel k) {
  for (KernelTensor& t : k.tensors)
    if (t.dtype.is_float()) t.dtype = kF64;
  double_all(k.body);
  return k;
}

}  // namespace dlc
