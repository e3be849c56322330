#include "dlc/graph/graph.h"

#include <algorithm>
#include <queue>

#include "core/graph/kernel_cache.h"
#include "dlc/graph/control.h"

namespace dlc {

Graph::Graph() : cache_(std::make_shared<detail::KernelCache>()) {}

TensorType type_of(const Tensor& t) { return {t.dtype(), {t.shape().begin(), t.shape().end()}}; }

ValueId Graph::add_input(std::string name, TensorType type) {
  const auto v = static_cast<ValueId>(values_.size());
  name = unique_name(name);
  names_.emplace(name, v);
  values_.push_back({.name = std::move(name), .type = std::move(type)});
  inputs.push_back(v);
  return v;
}

ValueId Graph::add_constant(std::string name, Tensor value) {
  const auto v = static_cast<ValueId>(values_.size());
  name = unique_name(name);
  names_.emplace(name, v);
  values_.push_back({.name = std::move(name), .type = type_of(value), .constant = std::move(value)});
  return v;
}

Result<NodeId> Graph::add_node(std::string op, std::vector<ValueId> inputs, Attrs attrs,
                               std::vector<std::string> locations, const std::string& result_name) {
  Node n{.op = std::move(op),
         .inputs = std::move(inputs),
         .outputs = {},
         .attrs = std::move(attrs),
         .locations = std::move(locations)};
  DLC_TRY(auto kernel, shared_kernel(n));
  return insert(std::move(n), result_types(*kernel), result_name);
}

Result<NodeId> Graph::add_control(Node n, std::vector<TensorType> results, const std::string& result_name) {
  n.outputs.clear();
  DLC_CHECK(check_control(*this, n, results));
  return insert(std::move(n), std::move(results), result_name);
}

Result<NodeId> Graph::add_copy(const Graph& from, NodeId n, std::vector<ValueId> inputs) {
  const Node& old = from.node(n);
  if (old.bodies.empty()) return add_node(old.op, std::move(inputs), old.attrs, old.locations);
  Node copy = old;
  copy.inputs = std::move(inputs);
  std::vector<TensorType> types;
  for (const ValueId v : old.outputs) types.push_back(from.value(v).type);
  return add_control(std::move(copy), std::move(types));
}

NodeId Graph::insert(Node n, std::vector<TensorType> types, const std::string& result_name) {
  const auto id = static_cast<NodeId>(nodes_.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const auto v = static_cast<ValueId>(values_.size());
    std::string name = result_name.empty() ? std::to_string(v)
                       : i == 0            ? result_name
                                           : result_name + "." + std::to_string(i);
    name = unique_name(name);
    names_.emplace(name, v);
    values_.push_back(
        {.name = std::move(name), .type = std::move(types[i]), .producer = id, .result = static_cast<int>(i)});
    n.outputs.push_back(v);
  }
  nodes_.push_back(std::move(n));
  return id;
}

std::vector<NodeId> Graph::order() const {
  std::vector<int> waiting(nodes_.size(), 0);  // inputs made by live nodes not yet in the order
  std::vector<std::vector<NodeId>> next(nodes_.size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  size_t live = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].erased) continue;
    ++live;
    for (ValueId v : nodes_[i].inputs) {
      if (v == kNoValue) continue;
      const NodeId p = value(v).producer;
      if (p == kNoNode || node(p).erased) continue;
      next[static_cast<size_t>(p)].push_back(static_cast<NodeId>(i));
      ++waiting[i];
    }
    if (waiting[i] == 0) ready.push(static_cast<NodeId>(i));
  }
  std::vector<NodeId> order;
  order.reserve(live);
  while (!ready.empty()) {
    const NodeId n = ready.top();
    ready.pop();
    order.push_back(n);
    for (NodeId m : next[static_cast<size_t>(n)])
      if (--waiting[static_cast<size_t>(m)] == 0) ready.push(m);
  }
  return order;  // shorter than the number of live nodes when there is a cycle, which verify() reports
}

std::vector<NodeId> Graph::users(ValueId v) const {
  std::vector<NodeId> users;
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].erased && std::ranges::find(nodes_[i].inputs, v) != nodes_[i].inputs.end())
      users.push_back(static_cast<NodeId>(i));
  return users;
}

std::vector<std::vector<NodeId>> Graph::all_users() const {
  std::vector<std::vector<NodeId>> users(values_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].erased) continue;
    for (ValueId v : nodes_[i].inputs) {
      if (v == kNoValue) continue;
      auto& u = users[static_cast<size_t>(v)];
      if (u.empty() || u.back() != static_cast<NodeId>(i)) u.push_back(static_cast<NodeId>(i));
    }
  }
  return users;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (auto& n : nodes_)
    if (!n.erased) std::ranges::replace(n.inputs, from, to);
  std::ranges::replace(outputs, from, to);
}

void Graph::erase(NodeId n) {
  Node& dead = node(n);
  dead.erased = true;
  dead.inputs.clear();
  for (ValueId v : dead.outputs) names_.erase(value(v).name);
}

void Graph::release(ValueId constant) {
  names_.erase(value(constant).name);
  value(constant).constant.reset();
}

std::string Graph::unique_name(std::string_view wish) const {
  if (wish.empty()) wish = "v";
  if (!names_.contains(wish)) return std::string(wish);
  for (int64_t i = 1;; ++i) {
    std::string name = std::string(wish) + "_" + std::to_string(i);
    if (!names_.contains(name)) return name;
  }
}

void Graph::rename(ValueId v, std::string_view wish) {
  names_.erase(value(v).name);
  value(v).name = unique_name(wish);
  names_.emplace(value(v).name, v);
}

ValueId Graph::find(std::string_view name) const {
  auto it = names_.find(name);
  return it == names_.end() ? kNoValue : it->second;
}

Result<std::vector<Operand>> group_operands(const Record& record, std::span<const std::optional<TensorType>> inputs,
                                            const Loc& where) {
  const auto& infos = record.operands();
  std::vector<Operand> operands;
  size_t next = 0;
  for (const auto& info : infos) {
    if (info.variadic) {
      Operand rest{.types = {}, .present = true};
      for (; next < inputs.size(); ++next) {
        if (!inputs[next])
          return fail(where, record.name() + ": operand " + info.name + " is a list and cannot have an absent entry");
        rest.types.push_back(*inputs[next]);
      }
      if (rest.types.empty())
        return fail(where, record.name() + ": operand " + info.name + " needs at least one tensor");
      operands.push_back(std::move(rest));
      continue;
    }
    const bool given = next < inputs.size() && inputs[next];
    if (!given && !info.optional)
      return fail(where, record.name() + ": operand " + info.name + " is missing", "it is not optional");
    operands.push_back(given ? Operand::of(*inputs[next]) : Operand::absent());
    ++next;
  }
  if (next < inputs.size())
    return fail(where, record.name() + " takes " + std::to_string(infos.size()) + " operands, got " +
                           std::to_string(inputs.size()));
  return operands;
}

namespace {

Loc location(const Node& n) {
  Loc where;
  for (const auto& l : n.locations) where.node += (where.node.empty() ? "" : ", ") + l;
  return where;
}

Result<const Record*> record_of(const Graph& g, const Node& n) {
  const RecordSet& set = g.record_set();
  if (const Record* r = set.find(n.op)) return r;
  const std::string near = nearest(n.op, set.names());
  return fail(location(n), "no op is called '" + n.op + "'", near.empty() ? "" : "did you mean '" + near + "'?");
}

Result<std::vector<Operand>> operands_of(const Graph& g, const Record& record, const Node& n) {
  std::vector<std::optional<TensorType>> types;
  for (ValueId v : n.inputs) types.push_back(v == kNoValue ? std::nullopt : std::optional(g.value(v).type));
  return group_operands(record, types, location(n));
}

// Of a node that has bodies.
Kernel signature_of(const Graph& g, const Node& n) {
  Kernel k;
  k.name = n.op;
  const auto add = [&](ValueId v, Role role) {
    const TensorType& type = g.value(v).type;
    const auto index = static_cast<int>(k.tensors.size());
    k.tensors.push_back({"t" + std::to_string(index), type.dtype, type.shape, role, {}});
    return index;
  };
  for (const ValueId v : n.inputs) k.inputs.push_back(v == kNoValue ? -1 : add(v, Role::input));
  for (const ValueId v : n.outputs) k.outputs.push_back(add(v, Role::output));
  return k;
}

}  // namespace

bool Graph::is_extern(NodeId n) const {
  const Record* record = record_set().find(node(n).op);
  return !node(n).bodies.empty() || (record != nullptr && record->is_extern());
}

Result<std::vector<Operand>> Graph::operands(NodeId n) const {
  if (!node(n).bodies.empty()) {
    std::vector<Operand> all;
    for (const ValueId v : node(n).inputs)
      all.push_back(v == kNoValue ? Operand::absent() : Operand::of(value(v).type));
    return all;
  }
  DLC_TRY(const Record* record, record_of(*this, node(n)));
  return operands_of(*this, *record, node(n));
}

Result<std::shared_ptr<const Kernel>> Graph::shared_kernel(const Node& n) const {
  if (!n.bodies.empty()) return std::make_shared<const Kernel>(signature_of(*this, n));
  DLC_TRY(const Record* record, record_of(*this, n));
  DLC_TRY(auto operands, operands_of(*this, *record, n));
  auto key = detail::instantiation_key(n.op, operands, n.attrs, symbols);
  if (key) *key += std::to_string(reinterpret_cast<uintptr_t>(records.get()));  // the same name may mean another op
  if (key)
    if (auto known = cache_->find(*key)) return known;
  DLC_TRY(auto kernel, record_set().instantiate(*record, operands, n.attrs, symbols, location(n)));
  auto shared = std::make_shared<const Kernel>(std::move(kernel));
  if (key) cache_->insert(*key, shared);
  return shared;
}

Result<Kernel> Graph::kernel(NodeId n) const {
  DLC_TRY(auto shared, shared_kernel(node(n)));
  Kernel kernel = *shared;
  kernel.locations = node(n).locations;
  return kernel;
}

Result<std::vector<TensorType>> Graph::infer(NodeId n) const {
  if (!node(n).bodies.empty()) {
    std::vector<TensorType> given;
    for (const ValueId v : node(n).outputs) given.push_back(value(v).type);
    DLC_CHECK(check_control(*this, node(n), given));
    return given;
  }
  DLC_TRY(auto shared, shared_kernel(node(n)));
  return result_types(*shared);
}

}  // namespace dlc
