// The graph on the interpreter. Shapes are made concrete first: symbols are bound from the inputs, every record is
// instantiated for the types its tensors really have, and the prepared kernel is kept for the next node or run that
// asks for the same.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/graph/bind.h"
#include "core/graph/extern_ops.h"
#include "core/graph/kernel_cache.h"
#include "core/kernel/doubles.h"
#include "dlc/graph/control.h"
#include "dlc/graph/graph.h"
#include "dlc/graph/segments.h"

namespace dlc {

namespace {

// A kernel of constant shapes, ready to run.
struct PreparedNode {
  Kernel kernel;
  PreparedKernel code;
  std::vector<std::vector<int64_t>> shapes;  // of every tensor of the kernel
};

Result<std::shared_ptr<const PreparedNode>> prepare_node(Kernel kernel, const InterpOptions& options) {
  std::vector<std::vector<int64_t>> shapes;
  for (const auto& t : kernel.tensors) {
    std::vector<int64_t> shape;
    for (const Expr& d : t.shape) {
      auto c = d.constant();
      if (!c) return fail({}, kernel.name + ": the size of " + t.name + " is not known: " + to_string(d));
      shape.push_back(*c);
    }
    shapes.push_back(std::move(shape));
  }
  DLC_TRY(auto code, PreparedKernel::prepare(kernel, {}, options));
  return std::make_shared<const PreparedNode>(PreparedNode{std::move(kernel), std::move(code), std::move(shapes)});
}

// `inputs` as the node has them; the absent ones are invalid, and may be missing at the end.
Result<std::vector<Tensor>> run_node(const PreparedNode& node, std::span<const Tensor> inputs) {
  const Kernel& k = node.kernel;
  std::vector<Tensor> tensors(k.tensors.size());
  for (size_t i = 0; i < inputs.size() && i < k.inputs.size(); ++i)
    if (k.inputs[i] >= 0) tensors[static_cast<size_t>(k.inputs[i])] = inputs[i];
  std::vector<Buffer> buffers(k.tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (k.tensors[i].view || k.tensors[i].role == Role::temp) continue;  // the prepared kernel keeps its own
    const bool given = tensors[i].is_valid();
    if (!given) {
      DLC_TRY(tensors[i], Tensor::make(k.tensors[i].dtype, node.shapes[i]));
    }
    // Kernels only read their inputs, so that the tensor's own bytes serve and copy-on-write is not woken.
    auto* data = given ? const_cast<std::byte*>(tensors[i].bytes()) : tensors[i].mutable_bytes();
    buffers[i] = {data, static_cast<int64_t>(tensors[i].byte_size())};
  }
  DLC_CHECK(node.code.run(buffers));
  std::vector<Tensor> results;
  for (int t : k.outputs) results.push_back(std::move(tensors[static_cast<size_t>(t)]));
  return results;
}

Loc location(const Node& n) {
  Loc where;
  for (const auto& l : n.locations) where.node += (where.node.empty() ? "" : ", ") + l;
  return where;
}

std::unexpected<Error> at(Error error, const Node& n) {
  for (auto& d : error.diagnostics)
    if (d.loc.node.empty()) d.loc.node = location(n).node;
  return std::unexpected(std::move(error));
}

// A value of another shape than was inferred: the shapes were inferred for sizes that are not these, as when a dim that
// has a name of its own is 1 and is broadcast.
Error for_these_sizes(Error error, const Bindings& bindings) {
  std::string dims;
  for (const auto& [name, value] : bindings) dims += fmt::format(" --dim {}={}", name, value);
  if (!dims.empty())
    for (auto& d : error.diagnostics)
      if (d.hint.empty()) d.hint = "give the sizes when the model is read:" + dims;
  return error;
}

}  // namespace

struct GraphRunner::Impl {
  const Graph& g;
  InterpOptions options;
  std::vector<NodeId> order;
  std::vector<std::vector<ValueId>> last_used;  // by position in order: values nobody needs afterwards
  std::vector<Tensor> constants;                // by value; converted when floats are doubles
  std::unordered_map<std::string, std::shared_ptr<const PreparedNode>> prepared;
  struct Bodies {
    std::vector<BodyType> types;
    std::vector<std::unique_ptr<Impl>> runners;
  };
  std::unordered_map<const Node*, Bodies> bodies;  // of control flow, made when it is first run

  Impl(const Graph& graph, InterpOptions o)
      : g(graph), options(o), order(order_by_sizes(g)), constants(g.value_count()) {
    std::vector<bool> needed(g.value_count(), false);
    for (ValueId v : g.outputs) needed[static_cast<size_t>(v)] = true;
    last_used.resize(order.size());
    for (size_t i = order.size(); i-- > 0;) {
      const Node& n = g.node(order[i]);
      for (const auto* values : {&n.outputs, &n.inputs})
        for (ValueId v : *values) {
          if (v == kNoValue || needed[static_cast<size_t>(v)]) continue;
          needed[static_cast<size_t>(v)] = true;
          last_used[i].push_back(v);
        }
    }
  }

  DType storage(DType t) const { return options.floats_as_double && t.is_float() ? kF64 : t; }

  Result<Tensor> stored(const Tensor& t) const {
    return storage(t.dtype()) == t.dtype() ? Result<Tensor>(t) : t.cast(storage(t.dtype()));
  }

  Result<Tensor> read(const std::vector<Tensor>& values, ValueId v) {
    const auto i = static_cast<size_t>(v);
    const auto& constant = g.value(v).constant;
    if (!constant) return values[i];
    if (!constants[i].is_valid()) {
      DLC_TRY(constants[i], stored(*constant));
    }
    return constants[i];
  }

  Result<std::vector<Tensor>> run_bodies(const Node& n, std::span<const Tensor> inputs) {
    Bodies& own = bodies[&n];
    if (own.runners.empty())
      for (const auto& body : n.bodies) {
        own.types.push_back(body_type(*body));
        own.runners.push_back(std::make_unique<Impl>(*body, options));
      }
    DLC_TRY(auto results, run_control(n.op, carried_of(n), own.types, inputs,
                                      [&](size_t body, auto given) { return own.runners[body]->run(given, {}); }));
    for (Tensor& t : results) {
      DLC_TRY(t, stored(t));
    }
    return results;
  }

  Result<std::vector<Tensor>> run_one(const Node& n, std::span<const Tensor> inputs, const Bindings& bindings) {
    if (!n.bodies.empty()) return run_bodies(n, inputs);
    const Record* record = g.record_set().find(n.op);
    if (!record) return fail(location(n), "no op is called '" + n.op + "'");
    if (record->is_extern()) {
      const ExternOp op = find_extern_op(n.op);
      if (!op) return fail(location(n), "the extern op " + n.op + " has no reference");
      const Attrs given = known_attrs(n.attrs, bindings);
      return op(inputs, Attributes(*record, given));
    }
    DLC_TRY(const Attrs attrs, concrete_attrs(n.attrs, bindings, location(n)));
    std::vector<std::optional<TensorType>> types;
    for (size_t i = 0; i < inputs.size(); ++i) {
      types.push_back(inputs[i].is_valid() ? std::optional(type_of(inputs[i])) : std::nullopt);
      if (types.back()) types.back()->dtype = g.value(n.inputs[i]).type.dtype;  // which records may insist on
    }
    DLC_TRY(auto operands, group_operands(*record, types, location(n)));
    const auto key = detail::instantiation_key(n.op, operands, attrs, {});
    std::shared_ptr<const PreparedNode> node;
    if (key)
      if (auto known = prepared.find(*key); known != prepared.end()) node = known->second;
    if (!node) {
      DLC_TRY(auto kernel, g.record_set().instantiate(*record, operands, attrs, {}, location(n)));
      if (options.floats_as_double) kernel = in_doubles(kernel);
      DLC_TRY(node, prepare_node(std::move(kernel), options));
      if (key) prepared.emplace(*key, node);
    }
    return run_node(*node, inputs);
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const Observer& observe) {
    if (inputs.size() != g.inputs.size())
      return fail({}, "graph " + g.name + " has " + std::to_string(g.inputs.size()) + " inputs, got " +
                          std::to_string(inputs.size()));
    Bindings bindings;
    std::vector<Tensor> values(g.value_count());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value& v = g.value(g.inputs[i]);
      if (!inputs[i].is_valid()) return fail({}, "input " + v.name + " has no tensor");
      if (inputs[i].dtype() != v.type.dtype && inputs[i].dtype() != storage(v.type.dtype))
        return fail({}, "input " + v.name + " is " + to_string(inputs[i].dtype()) + ", the graph takes " +
                            to_string(v.type.dtype));
      DLC_CHECK(bind_shown("input " + v.name, v.type, inputs[i].shape(), g.symbols, bindings));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value& v = g.value(g.inputs[i]);
      DLC_CHECK(bind_shape("input " + v.name, v.type, inputs[i].shape(), g.symbols, bindings));
      DLC_TRY(values[static_cast<size_t>(g.inputs[i])], stored(inputs[i]));
    }
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& n = g.node(order[i]);
      std::vector<Tensor> arguments;
      for (ValueId v : n.inputs) {
        if (v == kNoValue) {
          arguments.emplace_back();
          continue;
        }
        DLC_TRY(auto t, read(values, v));
        arguments.push_back(std::move(t));
      }
      auto results = run_one(n, arguments, bindings);
      if (!results) return at(std::move(results).error(), n);
      if (results->size() != n.outputs.size())
        return fail(location(n), n.op + " gave " + std::to_string(results->size()) + " results, not " +
                                     std::to_string(n.outputs.size()));
      for (size_t r = 0; r < results->size(); ++r) {
        const Value& v = g.value(n.outputs[r]);
        auto bound = bind_shape("%" + v.name, v.type, (*results)[r].shape(), g.symbols, bindings);
        if (!bound) return at(for_these_sizes(std::move(bound).error(), bindings), n);
      }
      if (observe) observe(order[i], *results);
      for (size_t r = 0; r < results->size(); ++r) values[static_cast<size_t>(n.outputs[r])] = std::move((*results)[r]);
      for (ValueId v : last_used[i]) values[static_cast<size_t>(v)] = {};
    }
    std::vector<Tensor> outputs;
    for (ValueId v : g.outputs) {
      DLC_TRY(auto t, read(values, v));
      outputs.push_back(std::move(t));
    }
    return outputs;
  }
};

GraphRunner::GraphRunner(const Graph& g, InterpOptions options) : impl_(std::make_unique<Impl>(g, options)) {}
GraphRunner::~GraphRunner() = default;
GraphRunner::GraphRunner(GraphRunner&&) noexcept = default;
GraphRunner& GraphRunner::operator=(GraphRunner&&) noexcept = default;

Result<std::vector<Tensor>> GraphRunner::run(std::span<const Tensor> inputs, const Observer& observe) {
  return impl_->run(inputs, observe);
}

Result<std::vector<Tensor>> run_graph(const Graph& g, std::span<const Tensor> inputs, const InterpOptions& options,
                                      const Observer& observe) {
  return GraphRunner(g, options).run(inputs, observe);
}

}  // namespace dlc
