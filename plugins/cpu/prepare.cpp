#include "plugins/cpu/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "dlc/interp/interp.h"
#include "dlc/program/layout.h"

namespace dlc::cpu {

namespace {

// Which tensors a kernel reads, writes or gives to its caller; constants and temporaries may have become unused.
std::vector<bool> used_tensors(const Kernel& k) {
  std::vector<bool> used(k.tensors.size(), false);
  const auto use = [&](int t) { used[static_cast<size_t>(t)] = true; };
  const auto use_value = [&](const Val& v) {
    walk(v, [&](const ValNode& n) {
      if (n.kind == ValKind::read) use(n.tensor);
    });
  };
  walk(k.body, [&](const Stmt& s) {
    if (s.kind != Stmt::Kind::assign) return;
    use(s.tensor);
    use_value(s.value);
    for (const Val& i : s.indices) use_value(i);
  });
  for (size_t t = 0; t < k.tensors.size(); ++t)
    if (k.tensors[t].role != Role::constant && k.tensors[t].role != Role::temp) use(static_cast<int>(t));
  for (size_t t = 0; t < k.tensors.size(); ++t)
    for (auto i = t; used[t] && k.tensors[i].view; i = static_cast<size_t>(k.tensors[i].view->base))
      use(k.tensors[i].view->base);
  return used;
}

// Removes tensors: every index goes through `moved`.
class Renumbering {
 public:
  explicit Renumbering(const std::vector<bool>& keep) {
    int next = 0;
    for (const bool k : keep) moved_.push_back(k ? next++ : -1);
  }

  void apply(Kernel& k, std::vector<Schedule>& schedules) const {
    for (size_t t = k.tensors.size(); t-- > 0;) {
      if (moved_[t] < 0)
        k.tensors.erase(k.tensors.begin() + static_cast<std::ptrdiff_t>(t));
      else if (auto& view = k.tensors[t].view)
        move(view->base);
    }
    for (int& t : k.inputs) move(t);
    for (int& t : k.outputs) move(t);
    statements(k.body);
    for (Schedule& s : schedules)
      for (Prefetch& p : s.prefetch) move(p.tensor);
  }

 private:
  void move(int& tensor) const {
    if (tensor >= 0) tensor = moved_[static_cast<size_t>(tensor)];
  }
  Val value(const Val& v) const {
    return rewrite(v, [&](const Val& n) -> Val {
      if (n->kind != ValKind::read || moved_[static_cast<size_t>(n->tensor)] == n->tensor) return nullptr;
      auto moved = std::make_shared<ValNode>(*n);
      move(moved->tensor);
      return moved;
    });
  }
  void statements(std::vector<Stmt>& body) const {
    for (Stmt& s : body) {
      move(s.tensor);
      if (s.value) s.value = value(s.value);
      for (Val& i : s.indices) i = value(i);
      statements(s.body);
    }
  }

  std::vector<int> moved_;
};

bool is_callers(const KernelTensor& t) { return t.role != Role::temp && !t.view; }

// The constant behind a buffer, which may be a view of one, as a tensor of the type that the kernel reads.
Result<Tensor> constant_behind(const Program& p, int buffer, const KernelTensor& wanted) {
  const auto wrong = [&] {
    return fail({}, fmt::format("'{}' is packed and is no constant of the program", wanted.name));
  };
  int64_t offset = 0;
  while (p.buffers[static_cast<size_t>(buffer)].alias) {
    const BufferAlias& a = *p.buffers[static_cast<size_t>(buffer)].alias;
    if (!a.byte_offset.constant()) return wrong();
    offset += *a.byte_offset.constant();
    buffer = a.base;
  }
  const Tensor* w = p.weight(p.buffers[static_cast<size_t>(buffer)].name);
  std::vector<int64_t> shape;
  for (const Expr& d : wanted.shape) shape.push_back(d.constant().value_or(-1));
  if (w == nullptr || offset < 0) return wrong();
  const auto owner = std::make_shared<Tensor>(*w);
  DLC_TRY(Tensor t, Tensor::wrap(wanted.dtype, std::move(shape), w->bytes() + offset, owner));
  if (t.byte_size() + static_cast<size_t>(offset) > w->byte_size()) return wrong();
  return t;
}

class Preparation {
 public:
  Preparation(Prepared& out, const Target& target, bool with_views)
      : out_(out), p_(out.program), target_(target), with_views_(with_views) {}

  Result<> run() {
    // Convolutions on blocks of one vector of channels match the contraction skeleton as they are.
    DLC_TRY(out_.blocked_buffers, assign_layouts(p_, {.block = target_.vector_bytes / 4}));
    if (with_views_) {
      DLC_TRY(out_.states_in_place, states_in_place(p_));
      DLC_TRY(out_.aliases, alias_sets(p_));
      place_replacements();
    }
    for (const Kernel& k : p_.kernels) {
      DLC_TRY(Plan plan, plan_contractions(k, target_));
      kept_.push_back(used_tensors(plan.kernel));
      plans_.push_back(std::move(plan));
    }
    for (const ProgramBuffer& b : p_.buffers) names_.insert(b.name);
    for (Call& c : p_.calls) DLC_CHECK(pass_packed(c));
    for (size_t i = 0; i < plans_.size(); ++i) {
      Plan& plan = plans_[i];
      Renumbering(kept_[i]).apply(plan.kernel, plan.schedules);
      p_.kernels[i] = std::move(plan.kernel);
      out_.schedules.push_back(std::move(plan.schedules));
      out_.notes.push_back(std::move(plan.notes));
    }
    order_constants();
    return verify(p_);
  }

 private:
  // A value in the place of one that is no longer needed becomes a temporary at the same offset. That it may lie there
  // is proved now, on kernels as they were lowered; the planned ones go through their points in another order, still
  // each on its own, which the text's proof does not see.
  void place_replacements() {
    std::vector<Expr> offsets(p_.buffers.size(), Expr(0));  // in the arena
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      ProgramBuffer& buffer = p_.buffers[b];
      offsets[b] = buffer.alias ? offsets[static_cast<size_t>(buffer.alias->base)] + buffer.alias->byte_offset
                   : buffer.kind == BufferKind::temp ? buffer.offset
                                                     : Expr(0);
      if (!buffer.alias || !buffer.alias->replaces || buffer.alias->keeps) continue;
      buffer.alias.reset();
      if (buffer.kind == BufferKind::temp) buffer.offset = offsets[b];
    }
  }

  // The call's buffers for the planned kernel: packed constants are new ones, one for all calls that pack the same.
  Result<> pass_packed(Call& c) {
    const auto kernel = static_cast<size_t>(c.kernel);
    const Plan& plan = plans_[kernel];
    const auto& tensors = plan.kernel.tensors;
    std::vector<int> all(tensors.size(), -1);  // of each tensor
    size_t next = 0;
    for (size_t t = 0; t < p_.kernels[kernel].tensors.size(); ++t)
      if (is_callers(tensors[t])) all[t] = c.buffers[next++];
    for (size_t i = 0; i < plan.packed.size(); ++i) {
      const PackedTensor& t = plan.packed[i];
      const int from = all[static_cast<size_t>(t.source)];
      const auto [made, is_new] = made_.emplace(std::tuple(kernel, i, from), static_cast<int>(p_.buffers.size()));
      all[static_cast<size_t>(t.packed)] = made->second;
      if (!is_new) continue;
      DLC_TRY(Tensor value, constant_behind(p_, from, tensors[static_cast<size_t>(t.source)]));
      const KernelTensor& to = tensors[static_cast<size_t>(t.packed)];
      ProgramBuffer b;
      b.name = unique(p_.buffers[static_cast<size_t>(from)].name + ".packed");
      b.type = {to.dtype, to.shape};
      b.kind = BufferKind::constant;
      p_.buffers.push_back(std::move(b));
      out_.packed.push_back({made->second, t.pack, std::move(value)});
    }
    c.buffers.clear();
    for (size_t t = 0; t < tensors.size(); ++t)
      if (kept_[kernel][t] && is_callers(tensors[t])) c.buffers.push_back(all[t]);
    return {};
  }

  std::string unique(const std::string& name) {
    std::string result = name;
    for (int i = 2; !names_.insert(result).second; ++i) result = name + std::to_string(i);
    return result;
  }

  // Constants in order of first use, behind all other buffers; those without use are dropped.
  void order_constants() {
    std::vector<int> order, moved(p_.buffers.size(), -1);
    const auto take = [&](int b) {
      if (moved[static_cast<size_t>(b)] >= 0) return;
      moved[static_cast<size_t>(b)] = static_cast<int>(order.size());
      order.push_back(b);
    };
    const std::function<void(int)> take_with_base = [&](int b) {
      if (const auto& a = p_.buffers[static_cast<size_t>(b)].alias) take_with_base(a->base);
      take(b);
    };
    for (size_t b = 0; b < p_.buffers.size(); ++b)
      if (p_.buffers[b].kind != BufferKind::constant) take_with_base(static_cast<int>(b));
    for (const Call& c : p_.calls)
      for (const int b : c.buffers) take_with_base(b);
    std::vector<ProgramBuffer> buffers;
    for (const int b : order) {
      buffers.push_back(std::move(p_.buffers[static_cast<size_t>(b)]));
      if (auto& a = buffers.back().alias) a->base = moved[static_cast<size_t>(a->base)];
    }
    p_.buffers = std::move(buffers);
    for (Call& c : p_.calls)
      for (int& b : c.buffers) b = moved[static_cast<size_t>(b)];
    for (PackedConstant& c : out_.packed) c.buffer = moved[static_cast<size_t>(c.buffer)];
    std::map<std::string, Tensor> values(p_.weights.begin(), p_.weights.end());
    p_.weights.clear();
    for (const ProgramBuffer& b : p_.buffers)
      if (const auto w = values.find(b.name); w != values.end() && b.kind == BufferKind::constant && !b.alias)
        p_.weights.emplace_back(b.name, std::move(w->second));
  }

  Prepared& out_;
  Program& p_;
  const Target& target_;
  const bool with_views_;
  std::vector<Plan> plans_;
  std::vector<std::vector<bool>> kept_;
  std::map<std::tuple<size_t, size_t, int>, int> made_;  // kernel, which of its packed tensors, from: the constant
  std::set<std::string> names_;
};

}  // namespace

std::vector<Unit> Prepared::units() const {
  std::vector<Unit> all;
  for (size_t i = 0; i < program.kernels.size(); ++i) all.push_back({&program.kernels[i], schedules[i]});
  return all;
}

bool Prepared::is_packed(int buffer) const {
  return std::ranges::find(packed, buffer, &PackedConstant::buffer) != packed.end();
}

size_t Prepared::constant_bytes(int buffer) const {
  const TensorType& type = program.buffers[static_cast<size_t>(buffer)].type;
  auto bytes = static_cast<size_t>(type.dtype.bytes());
  for (const Expr& d : type.shape) bytes *= static_cast<size_t>(d.constant().value_or(0));
  return bytes;
}

std::vector<int> Prepared::constants() const {
  std::vector<int> all;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::constant && !program.buffers[i].alias)
      all.push_back(static_cast<int>(i));
  return all;
}

Result<std::span<const std::byte>> Prepared::constant(int buffer, std::vector<std::byte>& memory) const {
  const auto c = std::ranges::find(packed, buffer, &PackedConstant::buffer);
  const size_t bytes = constant_bytes(buffer);
  if (c == packed.end()) {
    const std::string& name = program.buffers[static_cast<size_t>(buffer)].name;
    const Tensor* w = program.weight(name);
    if (w == nullptr) return fail({}, fmt::format("constant {} has no value", name));
    if (w->byte_size() != bytes) return fail({}, fmt::format("constant {} has another size", name));
    return std::span(w->bytes(), bytes);
  }
  if (memory.size() < bytes) memory.resize(bytes);
  const std::span to = std::span(memory).first(bytes);
  // Packing writes no element that the constant lacks: the last panel's rest is zero, not what was packed before.
  std::ranges::fill(to, std::byte{0});
  DLC_TRY(const PreparedKernel pack, PreparedKernel::prepare(c->kernel));
  std::vector<Buffer> buffers(c->kernel.tensors.size());
  buffers[static_cast<size_t>(c->kernel.inputs[0])] = {const_cast<std::byte*>(c->from.bytes()),
                                                       static_cast<int64_t>(c->from.byte_size())};
  buffers[static_cast<size_t>(c->kernel.outputs[0])] = {to.data(), static_cast<int64_t>(to.size())};
  DLC_CHECK(pack.run(buffers));
  return to;
}

Result<Prepared> prepare(Program program, const Target& target) {
  // Views are proved once more on the planned kernels; where that cannot be done, copies stay.
  Prepared out;
  out.program = program;
  if (Preparation(out, target, true).run()) return out;
  out = {};
  out.program = std::move(program);
  DLC_CHECK(Preparation(out, target, false).run());
  return out;
}

}  // namespace dlc::cpu
