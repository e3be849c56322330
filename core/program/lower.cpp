// Graph to program: a kernel per fusion group, a buffer per value between groups. A group that only renames elements
// (reshape, squeeze, the like) makes no call: its result is a view of its operand.
#include "core/program/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/program/buffers.h"
#include "dlc/program/program.h"

namespace dlc {

namespace {

class Lowering {
 public:
  Lowering(const Graph& g, Program& p) : g_(g), p_(p) {}

  Result<> run(std::vector<FusionGroup> groups) {
    p_.name = g_.name;
    p_.symbols = g_.symbols;
    for (const ValueId v : g_.inputs) {
      const int b = add(v, BufferKind::input);
      p_.buffers[static_cast<size_t>(b)].external_name = g_.value(v).name;
    }
    for (size_t i = 0; i < g_.outputs.size(); ++i) wanted_.emplace(g_.outputs[i], i);
    for (auto& group : groups) DLC_CHECK(this->group(group));
    DLC_CHECK(outputs());
    for (const StatePair& s : g_.states)
      p_.states.push_back({buffer_called(s.input, BufferKind::input), buffer_called(s.output, BufferKind::output)});
    return {};
  }

 private:
  int add(ValueId v, BufferKind kind) {
    ProgramBuffer b;
    b.name = g_.value(v).name;
    b.type = g_.value(v).type;
    b.kind = kind;
    p_.buffers.push_back(std::move(b));
    return buffer_[v] = static_cast<int>(p_.buffers.size()) - 1;
  }

  // Constants become buffers when they are first used: the weights are then in execution order.
  int use(ValueId v) {
    if (const auto it = buffer_.find(v); it != buffer_.end()) return it->second;
    const int b = add(v, BufferKind::constant);
    p_.weights.emplace_back(g_.value(v).name, *g_.value(v).constant);
    return b;
  }

  Result<> group(FusionGroup& group) {
    if (group.is_extern)
      return fail({{}, 0, 0, group.kernel.locations.empty() ? group.kernel.name : group.kernel.locations.front()},
                  fmt::format("{} has no kernel: it runs only through the interpreter", g_.node(group.nodes[0]).op));
    DLC_CHECK(guards(group));
    if (group.is_view && !wanted_.contains(group.outputs[0])) {
      const int base = use(group.inputs[0]);
      const bool is_constant = p_.buffers[static_cast<size_t>(base)].kind == BufferKind::constant;
      const int b = add(group.outputs[0], is_constant ? BufferKind::constant : BufferKind::temp);
      p_.buffers[static_cast<size_t>(b)].alias = BufferAlias{base, Expr(0)};
      return {};
    }
    Kernel& k = group.kernel;
    k.name = fmt::format("k{}_{}", p_.kernels.size(), g_.node(group.nodes[0]).op);
    Call c;
    c.kernel = static_cast<int>(p_.kernels.size());
    c.locations = k.locations;
    for (const ValueId v : group.inputs) c.buffers.push_back(use(v));
    for (const ValueId v : group.outputs)
      c.buffers.push_back(add(v, wanted_.contains(v) ? BufferKind::output : BufferKind::temp));
    p_.kernels.push_back(std::move(k));
    p_.calls.push_back(std::move(c));
    return {};
  }

  // Each with the node that assumes it. A view makes no call, and assumes as much.
  Result<> guards(const FusionGroup& group) {
    if (group.kernel.assumptions.empty()) return {};
    for (const NodeId n : group.nodes) {
      DLC_TRY(const Kernel k, g_.kernel(n));
      add_guards(p_.guards, g_.symbols, k.assumptions, g_.node(n).locations);
    }
    return {};
  }

  // An output that is an input, a constant, or given twice needs a copy of its own.
  Result<> outputs() {
    std::map<ValueId, int> seen;
    std::vector<int> order;
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      const ValueId v = g_.outputs[i];
      int b = use(v);
      if (p_.buffers[static_cast<size_t>(b)].kind != BufferKind::output || seen.contains(v)) {
        DLC_TRY(b, copy(v, b, unused(fmt::format("{}.out{}", g_.value(v).name, i))));
      }
      seen.emplace(v, b);
      p_.buffers[static_cast<size_t>(b)].external_name = g_.output_names[i];
      order.push_back(b);
    }
    return reorder(order);
  }

  // The name, or one like it that no value of the graph and no other buffer has.
  std::string unused(std::string name) const {
    while (g_.find(name) != kNoValue || std::ranges::count(p_.buffers, name, &ProgramBuffer::name) > 0) name += "_";
    return name;
  }

  Result<int> copy(ValueId v, int from, std::string name) {
    Kernel k;
    k.name = fmt::format("k{}_copy", p_.kernels.size());
    const TensorType& type = g_.value(v).type;
    const bool is_constant = p_.buffers[static_cast<size_t>(from)].kind == BufferKind::constant;
    k.tensors.push_back({"X", type.dtype, type.shape, is_constant ? Role::constant : Role::input, {}});
    k.tensors.push_back({"Y", type.dtype, type.shape, Role::output, {}});
    k.inputs = {0};
    k.outputs = {1};
    Stmt s;
    s.tensor = 1;
    for (size_t d = 0; d < type.shape.size(); ++d) {
      std::string var = fmt::format("i.{}", d);
      while (p_.symbols.contains(var)) var += "_";
      s.indices.push_back(val::index(Expr::symbol(var)));
      s.loops.push_back({std::move(var), type.shape[d]});
    }
    s.value = val::read(0, type.dtype, s.indices);
    k.body.push_back(std::move(s));
    ProgramBuffer b;
    b.name = std::move(name);
    b.type = type;
    b.kind = BufferKind::output;
    p_.buffers.push_back(std::move(b));
    const int to = static_cast<int>(p_.buffers.size()) - 1;
    p_.calls.push_back({static_cast<int>(p_.kernels.size()), {from, to}, {}});
    p_.kernels.push_back(std::move(k));
    return to;
  }

  const std::string& buffer_called(const std::string& name, BufferKind kind) const {
    return std::ranges::find_if(p_.buffers, [&](const auto& b) { return b.kind == kind && b.external_name == name; })
        ->name;
  }

  // Output buffers stand in the order of the graph's outputs: results are returned in buffer order.
  Result<> reorder(const std::vector<int>& order) {
    std::vector<int> slots(order);
    std::ranges::sort(slots);
    std::vector<int> moved(p_.buffers.size());
    for (size_t i = 0; i < moved.size(); ++i) moved[i] = static_cast<int>(i);
    std::vector<ProgramBuffer> buffers = p_.buffers;
    for (size_t i = 0; i < order.size(); ++i) {
      buffers[static_cast<size_t>(slots[i])] = p_.buffers[static_cast<size_t>(order[i])];
      moved[static_cast<size_t>(order[i])] = slots[i];
    }
    p_.buffers = std::move(buffers);
    for (auto& c : p_.calls)
      for (int& b : c.buffers) b = moved[static_cast<size_t>(b)];
    for (auto& b : p_.buffers)
      if (b.alias) b.alias->base = moved[static_cast<size_t>(b.alias->base)];
    views_last();
    return {};
  }

  // A view stands after what it is a view of; an output that moved may have overtaken its views.
  void views_last() {
    const auto overtaken = [&](const ProgramBuffer& b) { return b.alias && &p_.buffers[at(b.alias->base)] > &b; };
    if (std::ranges::none_of(p_.buffers, overtaken)) return;
    std::vector<int> order;
    for (const bool views : {false, true})
      for (size_t i = 0; i < p_.buffers.size(); ++i)
        if (p_.buffers[i].alias.has_value() == views) order.push_back(static_cast<int>(i));
    std::vector<ProgramBuffer> buffers;
    std::vector<int> moved(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      buffers.push_back(p_.buffers[at(order[i])]);
      moved[at(order[i])] = static_cast<int>(i);
    }
    p_.buffers = std::move(buffers);
    for (auto& c : p_.calls)
      for (int& b : c.buffers) b = moved[at(b)];
    for (auto& b : p_.buffers)
      if (b.alias) b.alias->base = moved[at(b.alias->base)];
  }

  static size_t at(int index) { return static_cast<size_t>(index); }

  const Graph& g_;
  Program& p_;
  std::map<ValueId, int> buffer_;
  std::map<ValueId, size_t> wanted_;
};

}  // namespace

Result<Program> detail::lower_groups(const Graph& g, std::vector<FusionGroup> groups, int64_t align) {
  Program p;
  DLC_CHECK(Lowering(g, p).run(std::move(groups)));
  detail::order_buffers(p);  // a view of an output that was moved behind it
  share_kernels(p);
  DLC_CHECK(plan_memory(p, align));
  DLC_CHECK(verify(p));
  return p;
}

Result<Program> lower_to_program(const Graph& g, const FusionOptions& options, int64_t align) {
  DLC_TRY(auto groups, fuse(g, options));
  return detail::lower_groups(g, std::move(groups), align);
}

}  // namespace dlc
