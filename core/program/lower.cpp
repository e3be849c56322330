// Graph to program: a kernel per node, a buffer per value. A node that only renames elements (reshape, squeeze, the
// like) makes no call: its result is a view of its operand.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "dlc/program/program.h"

namespace dlc {

namespace {

Expr row_major(const std::vector<Expr>& index, const std::vector<Expr>& shape) {
  Expr at(0);
  for (size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + index[i];
  return at;
}

// The input tensor whose bytes are the output's, in the same order: Y[i...] = X[e...] with equal row-major addresses.
std::optional<int> viewed_tensor(const Kernel& k, const Ranges& symbols) {
  if (k.body.size() != 1 || k.outputs.size() != 1) return std::nullopt;
  const Stmt& s = k.body[0];
  if (s.kind != Stmt::Kind::assign || s.value->kind != ValKind::read) return std::nullopt;
  const auto& to = k.tensors[static_cast<size_t>(s.tensor)];
  const auto& from = k.tensors[static_cast<size_t>(s.value->tensor)];
  if (to.dtype != from.dtype || from.role == Role::temp || to.view || from.view) return std::nullopt;
  Ranges ranges = symbols;
  add_loop_ranges(s.loops, ranges);
  std::vector<Expr> write;
  std::vector<Expr> read;
  for (const auto& i : s.indices) {
    const auto e = val::as_expr(i);
    if (!e) return std::nullopt;
    write.push_back(*e);
  }
  for (const auto& i : s.value->args) {
    const auto e = val::as_expr(i);
    if (!e) return std::nullopt;
    read.push_back(*e);
  }
  Expr to_size(1);
  Expr from_size(1);
  for (const Expr& d : to.shape) to_size = to_size * d;
  for (const Expr& d : from.shape) from_size = from_size * d;
  if (!provably_eq(to_size, from_size, ranges)) return std::nullopt;
  const Expr difference = row_major(write, to.shape) - row_major(read, from.shape);
  if (!simplify(difference, ranges).is(0)) return std::nullopt;
  return s.value->tensor;
}

class Lowering {
 public:
  Lowering(const Graph& g, Program& p) : g_(g), p_(p) {}

  Result<> run() {
    p_.name = g_.name;
    p_.symbols = g_.symbols;
    for (const ValueId v : g_.inputs) {
      const int b = add(v, BufferKind::input);
      p_.buffers[static_cast<size_t>(b)].external_name = g_.value(v).name;
    }
    for (size_t i = 0; i < g_.outputs.size(); ++i) wanted_.emplace(g_.outputs[i], i);
    for (const NodeId n : g_.order()) DLC_CHECK(node(n));
    return outputs();
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

  Result<> node(NodeId n) {
    const Node& node = g_.node(n);
    DLC_TRY(Kernel k, g_.kernel(n));
    const bool is_output = wanted_.contains(node.outputs[0]);
    if (node.outputs.size() == 1 && !is_output) {
      if (const auto from = viewed_tensor(k, g_.symbols)) {
        const size_t operand = static_cast<size_t>(std::ranges::find(k.inputs, *from) - k.inputs.begin());
        const int base = use(node.inputs[operand]);
        const int b = add(node.outputs[0], p_.buffers[static_cast<size_t>(base)].kind == BufferKind::constant
                                               ? BufferKind::constant
                                               : BufferKind::temp);
        p_.buffers[static_cast<size_t>(b)].alias = BufferAlias{base, Expr(0)};
        return {};
      }
    }
    k.name = fmt::format("k{}_{}", p_.kernels.size(), node.op);
    k.locations = node.locations;
    Call c;
    c.kernel = static_cast<int>(p_.kernels.size());
    c.locations = node.locations;
    std::map<int, int> of_tensor;  // kernel tensor -> buffer
    for (size_t i = 0; i < k.inputs.size(); ++i)
      if (k.inputs[i] >= 0) of_tensor[k.inputs[i]] = use(node.inputs[i]);
    for (size_t i = 0; i < k.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      of_tensor[k.outputs[i]] = add(v, wanted_.contains(v) ? BufferKind::output : BufferKind::temp);
    }
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      if (k.tensors[t].role == Role::temp || k.tensors[t].view) continue;
      const auto it = of_tensor.find(static_cast<int>(t));
      if (it == of_tensor.end())
        return fail({{}, 0, 0, node.locations.empty() ? node.op : node.locations[0]},
                    fmt::format("kernel tensor {} belongs to no operand", k.tensors[t].name));
      c.buffers.push_back(it->second);
    }
    p_.kernels.push_back(std::move(k));
    p_.calls.push_back(std::move(c));
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
        DLC_TRY(b, copy(v, b, fmt::format("{}.out{}", g_.value(v).name, i)));
      }
      seen.emplace(v, b);
      p_.buffers[static_cast<size_t>(b)].external_name = g_.output_names[i];
      order.push_back(b);
    }
    return reorder(order);
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
      s.loops.push_back({fmt::format("i.{}", d), type.shape[d]});
      s.indices.push_back(val::index(Expr::symbol(s.loops.back().var)));
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
    return {};
  }

  const Graph& g_;
  Program& p_;
  std::map<ValueId, int> buffer_;
  std::map<ValueId, size_t> wanted_;
};

}  // namespace

Result<Program> lower_to_program(const Graph& g, int64_t align) {
  Program p;
  DLC_CHECK(Lowering(g, p).run());
  DLC_CHECK(plan_memory(p, align));
  DLC_CHECK(verify(p));
  return p;
}

}  // namespace dlc
