#include "core/graph/value_inference.h"

namespace dlc {

namespace {

bool may_be_known(const TensorType& t) {
  if (!t.dtype.is_int() && !t.dtype.is_bool()) return false;
  int64_t elements = 1;
  for (const Expr& d : t.shape) {
    auto c = d.constant();
    if (!c || *c < 0 || *c > ValueInference::kMaxElements) return false;
    elements *= *c;
    if (elements > ValueInference::kMaxElements) return false;
  }
  return true;
}

}  // namespace

const std::vector<std::optional<Expr>>& ValueInference::elements(ValueId v) {
  static const std::vector<std::optional<Expr>> kNothing;
  if (v == kNoValue || !may_be_known(g_.value(v).type)) return kNothing;
  // Producers first, without recursion: a chain may be as long as the graph.
  std::vector<ValueId> stack{v};
  while (!stack.empty()) {
    const ValueId top = stack.back();
    const Value& value = g_.value(top);
    if (found_.contains(top)) {
      stack.pop_back();
      continue;
    }
    auto& unknown = found_.try_emplace(top).first->second;
    if (value.constant) {
      const bool is_u64 = value.type.dtype == kU64;  // its bits as an s64: from 2^63 on no number that an Expr has
      for (int64_t i = 0; i < value.constant->elements(); ++i) {
        const int64_t x = value.constant->get_int(i);
        unknown.push_back(is_u64 && x < 0 ? std::nullopt : std::optional(Expr(x)));
      }
    }
    if (value.constant || value.producer == kNoNode) {
      stack.pop_back();
      continue;
    }
    found_.erase(top);
    bool ready = true;
    for (ValueId in : g_.node(value.producer).inputs)
      if (in != kNoValue && may_be_known(g_.value(in).type) && !found_.contains(in)) {
        stack.push_back(in);
        ready = false;
      }
    if (ready) infer_node(value.producer);
  }
  return found_.at(v);
}

void ValueInference::infer_node(NodeId n) {
  const Node& node = g_.node(n);
  for (ValueId v : node.outputs) found_.try_emplace(v);
  auto kernel = g_.kernel(n);
  if (!kernel) return;
  std::map<int, std::vector<std::optional<Expr>>> inputs;
  // kernel.inputs has an entry for every operand, absent ones too, in the order of node.inputs.
  for (size_t i = 0; i < kernel->inputs.size() && i < node.inputs.size(); ++i) {
    if (kernel->inputs[i] < 0 || node.inputs[i] == kNoValue) continue;
    if (auto known = found_.find(node.inputs[i]); known != found_.end()) inputs[kernel->inputs[i]] = known->second;
  }
  auto results = evaluate_on_exprs(*kernel, inputs, g_.symbols);
  for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
    if (may_be_known(g_.value(node.outputs[i]).type)) found_[node.outputs[i]] = std::move(results[i]);
}

std::optional<std::vector<Expr>> ValueInference::known(ValueId v) {
  const auto& found = elements(v);
  if (v == kNoValue || !may_be_known(g_.value(v).type)) return std::nullopt;
  int64_t count = 1;
  for (const Expr& d : g_.value(v).type.shape) count *= *d.constant();
  if (found.size() != static_cast<size_t>(count)) return std::nullopt;
  std::vector<Expr> all;
  for (const auto& e : found) {
    if (!e) return std::nullopt;
    all.push_back(*e);
  }
  return all;
}

}  // namespace dlc
