#include "core/program/buffers.h"

#include <fmt/format.h>

#include <algorithm>

namespace dlc::detail {

namespace {

// Tensors by their new numbers.
void renumber(std::vector<Stmt>& body, const std::vector<int>& moved) {
  const auto value = [&](const Val& v) {
    return rewrite(v, [&](const Val& n) -> Val {
      if (n->kind != ValKind::read) return nullptr;
      auto node = std::make_shared<ValNode>(*n);
      node->tensor = moved[static_cast<size_t>(n->tensor)];
      return node;
    });
  };
  for (Stmt& s : body) {
    if (s.kind == Stmt::Kind::assign) {
      s.tensor = moved[static_cast<size_t>(s.tensor)];
      s.value = value(s.value);
      for (Val& i : s.indices) i = value(i);
    }
    renumber(s.body, moved);
  }
}

}  // namespace

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

Kernel& own_kernel(Program& p, Call& call) {
  const auto users = std::ranges::count(p.calls, call.kernel, &Call::kernel);
  if (users > 1) {
    Kernel copy = p.kernels[static_cast<size_t>(call.kernel)];
    copy.name = fmt::format("{}_v{}", copy.name, p.kernels.size());
    copy.locations = call.locations;
    call.kernel = static_cast<int>(p.kernels.size());
    p.kernels.push_back(std::move(copy));
  }
  return p.kernels[static_cast<size_t>(call.kernel)];
}

void drop_unused(Program& p, Call& call) {
  Kernel& k = p.kernels[static_cast<size_t>(call.kernel)];
  if (k.body.empty()) {
    call.kernel = -1;
    return;
  }
  std::vector<bool> used(k.tensors.size(), false);
  const auto use = [&](const Val& v) {
    walk(v, [&](const ValNode& n) {
      if (n.kind == ValKind::read) used[static_cast<size_t>(n.tensor)] = true;
    });
  };
  walk(k.body, [&](const Stmt& s) {
    if (s.kind != Stmt::Kind::assign) return;
    used[static_cast<size_t>(s.tensor)] = true;
    use(s.value);
    std::ranges::for_each(s.indices, use);
  });
  for (size_t t = k.tensors.size(); t-- > 0;)
    if (const auto& view = k.tensors[t].view; view && used[t]) used[static_cast<size_t>(view->base)] = true;
  const auto buffers = buffers_of(k, call);
  std::vector<int> moved(k.tensors.size(), -1);
  std::vector<KernelTensor> tensors;
  call.buffers.clear();
  for (size_t t = 0; t < k.tensors.size(); ++t) {
    if (!used[t]) continue;
    moved[t] = static_cast<int>(tensors.size());
    tensors.push_back(std::move(k.tensors[t]));
    if (buffers[t] >= 0) call.buffers.push_back(buffers[t]);
  }
  for (KernelTensor& t : tensors)
    if (t.view) t.view->base = moved[static_cast<size_t>(t.view->base)];
  k.tensors = std::move(tensors);
  for (auto* list : {&k.inputs, &k.outputs}) {
    for (int& t : *list)
      if (t >= 0) t = moved[static_cast<size_t>(t)];
    std::erase(*list, -1);
  }
  renumber(k.body, moved);
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
  // By depth: roots first, then what lies in them, and so on; stable, so that inputs and outputs keep their order: an
  // output in the place of an input counts as a root, since inputs come first.
  std::vector<int> depth(n, 0), order;
  for (size_t b = 0; b < n; ++b) {
    if (used[b]) order.push_back(static_cast<int>(b));
    for (const ProgramBuffer* i = &p.buffers[b]; i->alias && !i->alias->keeps; ++depth[b])
      i = &p.buffers[static_cast<size_t>(i->alias->base)];
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
