// Bodies of nodes inside a model: subgraphs of control flow, functions. Both are imported where they are used, once for
// each use. And values that the structure of the graph depends on.
#include <fmt/format.h>

#include <algorithm>

#include "core/graph/bind.h"
#include "dlc/base/checked.h"
#include "frontends/onnx/importer.h"

namespace dlc::onnx_frontend {

namespace {

constexpr int kMaxDepth = 32;                       // of bodies in bodies
constexpr int64_t kMaxElements = int64_t{1} << 26;  // of a value that is computed while importing

// Whether a value of these extents may be computed while importing.
bool is_small(const TensorType& type) {
  int64_t n = 1;
  for (const Expr& d : type.shape) {
    const auto extent = d.constant();
    const auto product = extent ? checked_mul(n, *extent) : std::nullopt;
    if (!product || *product > kMaxElements) return false;
    n = *product;
  }
  return true;
}

// Counts levels and drops the scope again, whatever happens.
template <class Scopes>
class ScopeGuard {
 public:
  ScopeGuard(Scopes& scopes, int& depth) : scopes_(scopes), depth_(depth), size_(scopes.size()) { ++depth_; }
  ~ScopeGuard() {
    --depth_;
    scopes_.resize(size_);
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Scopes& scopes_;
  int& depth_;
  size_t size_;
};

}  // namespace

constexpr int64_t kMaxSteps = int64_t{1} << 18;
constexpr size_t kMaxNodes = size_t{1} << 18;
constexpr size_t kMaxErrors = 1000;

Result<> Importer::spend(int64_t steps, const Loc& where) {
  if (steps > kMaxSteps - steps_)
    return fail(where,
                fmt::format("the model, with its loops unrolled and its functions written out, has more than {} "
                            "nodes",
                            kMaxSteps),
                "shorten the loops, or export the model without them");
  steps_ += steps;
  return {};
}

bool Importer::is_spent() const {
  return steps_ >= kMaxSteps || graph().node_count() >= kMaxNodes || refused_.diagnostics.size() >= kMaxErrors;
}

Result<> Importer::check_nodes(const Loc& where) const {
  if (graph().node_count() < kMaxNodes) return {};
  return fail(where,
              fmt::format("the model, with its loops unrolled and its functions written out, has more than {} "
                          "nodes",
                          kMaxNodes),
              "shorten the loops, or export the model without them");
}

std::string Importer::unique_name(const std::string& wish) {
  if (!wish.empty() && graph().find(wish) == kNoValue) return wish;
  for (int64_t& i = used_[wish];;)
    if (std::string name = fmt::format("{}_{}", wish, ++i); graph().find(name) == kNoValue) return name;
}

Expr Importer::fresh_symbol(const std::string& wish, int64_t most) {
  std::string name = wish;
  for (int64_t& i = used_["symbol " + wish]; graph().symbols.contains(name) || !taken_symbols_.insert(name).second;)
    name = fmt::format("{}_{}", wish, ++i);
  graph().symbols[name] = Range(0, most);
  return Expr::symbol(name);
}

ValueId Importer::add_bundle(Bundle b) {
  bundles_.push_back(std::move(b));
  return -1 - static_cast<ValueId>(bundles_.size());
}

const Bundle* Importer::bundle(ValueId v) const {
  return v < kNoValue ? &bundles_[static_cast<size_t>(-2 - v)] : nullptr;
}

std::string_view Importer::other_kind(ValueId v) const {
  if (v == kNoValue) return "absent";
  const Bundle* b = bundle(v);
  return b == nullptr ? "" : b->present ? "a sequence" : "an absent optional value";
}

Result<std::vector<ValueId>> Importer::inlined(const onnx::GraphProto& body, std::vector<ValueId> arguments,
                                               const Loc& where, std::optional<Assumption> assumption) {
  const ScopeGuard guard(scopes_, depth_);
  if (depth_ > kMaxDepth) return fail(where, "bodies are nested too deeply");
  DLC_CHECK(spend(1, where));
  if (static_cast<size_t>(body.input_size()) != arguments.size())
    return fail(where, fmt::format("the body takes {} values, {} are given", body.input_size(), arguments.size()));
  scopes_.push_back(
      {.values = {}, .level = level(), .assumption = std::move(assumption), .checked = {}, .declared = {}, .dims = {}});
  declare(body);
  DLC_CHECK(import_initializers(body));
  for (size_t i = 0; i < arguments.size(); ++i)
    DLC_CHECK(define(body.input(static_cast<int>(i)).name(), arguments[i], where));
  DLC_CHECK(import_nodes(body.node()));
  std::vector<ValueId> results;
  for (const auto& v : body.output()) {
    DLC_TRY(const ValueId r, lookup(v.name(), where));
    results.push_back(r);
  }
  if (scopes_.back().checked.empty())  // nothing from around it is used here: the results are checked
    for (ValueId& r : results) {
      DLC_TRY(r, assumed(r, scopes_.back()));
    }
  return results;
}

// An attribute of a node in a function's body that names an attribute of the call gets its value, or is dropped.
static onnx::NodeProto bound(const onnx::NodeProto& node, const onnx::NodeProto& call) {
  onnx::NodeProto out = node;
  out.clear_attribute();
  for (const auto& a : node.attribute()) {
    if (a.ref_attr_name().empty()) {
      auto* copy = out.add_attribute();
      *copy = a;
      if (a.has_g())
        for (auto& inner : *copy->mutable_g()->mutable_node()) inner = bound(inner, call);
      continue;
    }
    const auto given = std::ranges::find(call.attribute(), a.ref_attr_name(), &onnx::AttributeProto::name);
    if (given == call.attribute().end()) continue;
    auto* copy = out.add_attribute();
    *copy = *given;
    copy->set_name(a.name());
  }
  return out;
}

Result<std::vector<ValueId>> Importer::call(const Function& function, const onnx::NodeProto& node,
                                            std::vector<ValueId> inputs, const Loc& where) {
  const onnx::FunctionProto& f = *function.proto;
  const ScopeGuard guard(scopes_, depth_);
  if (depth_ > kMaxDepth) return fail(where, "functions call each other too deeply");
  if (inputs.size() > static_cast<size_t>(f.input_size()))
    return fail(where,
                fmt::format("function '{}' takes {} values, {} are given", f.name(), f.input_size(), inputs.size()));
  const auto outer = opsets_;
  scopes_.push_back(
      {.values = {}, .sealed = true, .level = level(), .assumption = {}, .checked = {}, .declared = {}, .dims = {}});
  for (int i = 0; i < f.input_size(); ++i)
    DLC_CHECK(
        define(f.input(i), static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)] : kNoValue, where));
  DLC_CHECK(import_opsets(f.opset_import()));
  onnx::NodeProto call = node;  // with the attributes that are not given
  for (const auto& a : function.defaults)
    if (std::ranges::find(node.attribute(), a.name(), &onnx::AttributeProto::name) == node.attribute().end())
      *call.add_attribute() = a;
  for (int i = 0; i < f.node_size(); ++i) DLC_CHECK(import_node(bound(f.node(i), call), i));
  std::vector<ValueId> results;
  for (const auto& name : f.output()) {
    DLC_TRY(const ValueId r, lookup(name, where));
    results.push_back(r);
  }
  opsets_ = outer;
  return results;
}

// What `v` is computed from, as far back as to constants and to what was computed before.
Importer::Sources Importer::sources_of(ValueId v) const {
  Sources sources;
  std::set<ValueId> seen{kNoValue};
  std::vector<ValueId> stack{v};
  while (!stack.empty()) {
    const ValueId top = stack.back();
    stack.pop_back();
    if (!seen.insert(top).second || levels_.back().evaluated.contains(top)) continue;
    const Value& value = graph().value(top);
    if (value.constant) continue;
    if (value.producer == kNoNode) {
      sources.inputs.push_back(top);
      continue;
    }
    if (!sources.nodes.insert(value.producer).second) continue;
    for (const ValueId in : graph().node(value.producer).inputs) stack.push_back(in);
  }
  return sources;
}

const Tensor* Importer::given_tensor(ValueId input) const {
  const auto it = level() > 0 ? options_.given.end() : options_.given.find(graph().value(input).name);
  return it == options_.given.end() || it->second.sequence || it->second.tensors.size() != 1
             ? nullptr
             : it->second.tensors.data();
}

bool Importer::can_fix(ValueId v) const {
  return std::ranges::all_of(sources_of(v).inputs, [&](ValueId in) { return given_tensor(in) != nullptr; });
}

Result<> Importer::fix_input(ValueId input, const Loc& where) {
  const Tensor& t = *given_tensor(input);
  Value& value = graph().value(input);
  Bindings dims;
  const bool same = t.dtype() == value.type.dtype && bind_shape("input", value.type, t.shape(), graph().symbols, dims);
  if (!same)
    return fail(where, fmt::format("input '{}' is {}, the model takes {}", value.name, to_string(t.dtype(), t.shape()),
                                   to_string(value.type)));
  value.constant = t;
  value.type = type_of(t);
  std::erase(graph().inputs, input);
  return {};
}

// Small results on the way are kept: in a loop whose condition depends on its state, every trip asks again.
Result<Tensor> Importer::fixed_value(ValueId v, const Loc& where) {
  const auto at_hand = [&](ValueId x) -> const Tensor* {
    const auto it = evaluated().find(x);
    if (it != evaluated().end()) return &it->second;
    return graph().value(x).constant ? &*graph().value(x).constant : nullptr;
  };
  if (const Tensor* t = at_hand(v)) return *t;
  const Sources sources = sources_of(v);
  for (const ValueId in : sources.inputs)
    if (given_tensor(in) == nullptr)
      return fail(where, fmt::format("depends on the input '{}'", graph().value(in).name));
  for (const ValueId in : sources.inputs) DLC_CHECK(fix_input(in, where));
  if (!sources.inputs.empty()) levels_.back().known.emplace(graph());
  if (const Tensor* t = at_hand(v)) return *t;
  Graph part;
  part.symbols = graph().symbols;
  std::map<ValueId, ValueId> to{{kNoValue, kNoValue}};
  std::vector<const Node*> made;          // by the part's nodes
  for (const NodeId n : sources.nodes) {  // a node's inputs are older than the node
    const Node& node = graph().node(n);
    if (!node.bodies.empty()) return fail(where, "depends on control flow that runs when the model runs");
    std::vector<ValueId> in;
    for (const ValueId i : node.inputs) {
      if (!to.contains(i)) to[i] = part.add_constant(graph().value(i).name, *at_hand(i));
      in.push_back(to.at(i));
    }
    DLC_TRY(const NodeId copy, part.add_node(node.op, std::move(in), node.attrs, node.locations));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId result = part.node(copy).outputs[i];
      if (!is_small(part.value(result).type))
        return fail(where, fmt::format("depends on a value of {}, more than {} elements or of unknown size",
                                       to_string(part.value(result).type), kMaxElements));
      to[node.outputs[i]] = result;
    }
    made.push_back(&node);
  }
  part.outputs = {to.at(v)};
  part.output_names = {"value"};
  DLC_TRY(auto values, run_graph(part, {}, {}, [&](NodeId n, std::span<const Tensor> results) {
            const auto& outputs = made[static_cast<size_t>(n)]->outputs;
            for (size_t i = 0; i < outputs.size(); ++i)
              if (results[i].elements() <= ValueInference::kMaxElements) evaluated().emplace(outputs[i], results[i]);
          }));
  return values[0];
}

}  // namespace dlc::onnx_frontend
