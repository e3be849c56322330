// Common subexpressions: nodes with the same op, inputs and attributes become one; so do small equal constants.
//
//   %1 = relu(%x)          ->
//   %2 = relu(%x)              %1 = relu(%x)
//   %3 = add(%1, %2)           %3 = add(%1, %1)
#include <algorithm>
#include <unordered_map>

#include "core/graph/text.h"
#include "core/passes/passes.h"

namespace dlc {

namespace {

constexpr size_t kLargestConstant = 4096;  // bytes that are compared; weights are not worth reading

std::string constant_key(const Tensor& t) {
  return detail::type_text(t) + std::string(reinterpret_cast<const char*>(t.bytes()), t.byte_size());
}

std::string node_key(const Node& n) {
  std::string key = n.op;
  for (ValueId v : n.inputs) key += " " + std::to_string(v);
  for (const auto& attr : n.attrs) key += ", " + detail::attribute_text(attr);
  for (const auto& body : n.bodies) key += " body " + std::to_string(reinterpret_cast<uintptr_t>(body.get()));
  return key;
}

void merge_locations(Node& into, const Node& from) {
  for (const auto& l : from.locations)
    if (std::ranges::find(into.locations, l) == into.locations.end()) into.locations.push_back(l);
}

}  // namespace

Result<> cse(Graph& g, PassContext& context) {
  std::vector<ValueId> same_as(
      g.value_count());  // every use is looked up here instead of rewriting the graph each time
  for (size_t v = 0; v < same_as.size(); ++v) same_as[v] = static_cast<ValueId>(v);
  const auto merge = [&](ValueId from, ValueId to) {
    same_as[static_cast<size_t>(from)] = to;
    ++context.counts["merged"];
  };

  std::unordered_map<std::string, ValueId> constants;
  for (size_t i = 0; i < g.value_count(); ++i) {
    const auto v = static_cast<ValueId>(i);
    const auto& constant = g.value(v).constant;
    if (!constant || constant->byte_size() > kLargestConstant) continue;
    auto [known, fresh] = constants.emplace(constant_key(*constant), v);
    if (!fresh) merge(v, known->second);
  }

  std::unordered_map<std::string, NodeId> nodes;
  std::vector<NodeId> duplicates;
  for (NodeId id : g.order()) {
    Node& n = g.node(id);
    for (ValueId& v : n.inputs)
      if (v != kNoValue) v = same_as[static_cast<size_t>(v)];
    auto [known, fresh] = nodes.emplace(node_key(n), id);
    if (fresh) continue;
    Node& first = g.node(known->second);
    merge_locations(first, n);
    for (size_t r = 0; r < n.outputs.size(); ++r) merge(n.outputs[r], first.outputs[r]);
    duplicates.push_back(id);
  }
  for (ValueId& v : g.outputs) v = same_as[static_cast<size_t>(v)];
  for (NodeId id : duplicates) g.erase(id);
  return {};
}

}  // namespace dlc
