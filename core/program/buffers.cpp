#include "core/program/buffers.h"

#include <algorithm>

namespace dlc::detail {

std::vector<int> buffers_of(const Kernel& k, const Call& call) {
  std::vector<int> buffers(k.tensors.size(), -1);
  size_t next = 0;
  for (size_t t = 0; t < k.tensors.size() && next < call.buffers.size(); ++t)
    if (k.tensors[t].role != Role::temp && !k.tensors[t].view) buffers[t] = call.buffers[next++];
  return buffers;
}

int root_of(const Program& p, int b) {
  while (p.buffers[static_cast<size_t>(b)].alias) b = p.buffers[static_cast<size_t>(b)].alias->base;
  return b;
}

int family_of(const Program& p, int b) {
  for (auto a = p.buffers[static_cast<size_t>(b)].alias; a && !a->replaces; a = p.buffers[static_cast<size_t>(b)].alias)
    b = a->base;
  return b;
}

bool writes(const Program& p, const Call& call, int b) {
  const Kernel& k = p.kernels[static_cast<size_t>(call.kernel)];
  const auto buffers = buffers_of(k, call);
  for (size_t t = 0; t < buffers.size(); ++t)
    if (k.tensors[t].role == Role::output && buffers[t] >= 0 && family_of(p, buffers[t]) == family_of(p, b))
      return true;
  return false;
}

Uses uses_of(const Program& p) {
  Uses uses;
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const Kernel& k = p.kernels[static_cast<size_t>(p.calls[c].kernel)];
    const auto buffers = buffers_of(k, p.calls[c]);
    for (size_t t = 0; t < buffers.size(); ++t)
      if (buffers[t] >= 0)
        uses[family_of(p, buffers[t])].push_back(
            {c, buffers[t], static_cast<int>(t), k.tensors[t].role == Role::output});
  }
  return uses;
}

Expr bytes_of(const TensorType& t) {
  Expr n(t.dtype.bytes());
  for (const Expr& d : t.shape) n = n * d;
  return n;
}

Expr offset_in_family(const Program& p, int b) {
  Expr offset(0);
  for (auto a = p.buffers[static_cast<size_t>(b)].alias; a && !a->replaces;
       a = p.buffers[static_cast<size_t>(b)].alias) {
    offset += a->byte_offset;
    b = a->base;
  }
  return offset;
}

void order_buffers(Program& p) {
  const size_t n = p.buffers.size();
  std::vector<bool> used(n, false);
  for (size_t b = 0; b < n; ++b) used[b] = p.buffers[b].kind != BufferKind::temp;
  for (const Call& c : p.calls)
    for (const int b : c.buffers) used[static_cast<size_t>(b)] = true;
  for (size_t b = 0; b < n; ++b)  // what a used buffer lies in
    for (int i = static_cast<int>(b); used[b] && p.buffers[static_cast<size_t>(i)].alias;) {
      i = p.buffers[static_cast<size_t>(i)].alias->base;
      used[static_cast<size_t>(i)] = true;
    }
  // By depth: roots first, then what lies in them, and so on; stable, so that inputs and outputs keep their order.
  std::vector<int> depth(n, 0), order;
  for (size_t b = 0; b < n; ++b) {
    if (used[b]) order.push_back(static_cast<int>(b));
    for (auto a = p.buffers[b].alias; a; a = p.buffers[static_cast<size_t>(a->base)].alias) ++depth[b];
  }
  const auto declared_before_base = [&](int b) {
    const auto& a = p.buffers[static_cast<size_t>(b)].alias;
    return a && a->base > b;
  };
  if (std::ranges::any_of(order, declared_before_base))
    std::ranges::stable_sort(order, {}, [&](int b) { return depth[static_cast<size_t>(b)]; });
  std::vector<int> place(n, -1);
  std::vector<ProgramBuffer> buffers;
  for (const int b : order) {
    place[static_cast<size_t>(b)] = static_cast<int>(buffers.size());
    buffers.push_back(std::move(p.buffers[static_cast<size_t>(b)]));
  }
  for (auto& b : buffers)
    if (b.alias) b.alias->base = place[static_cast<size_t>(b.alias->base)];
  p.buffers = std::move(buffers);
  for (Call& c : p.calls)
    for (int& b : c.buffers) b = place[static_cast<size_t>(b)];
}

}  // namespace dlc::detail
