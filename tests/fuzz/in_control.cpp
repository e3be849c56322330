#include "tests/fuzz/in_control.h"

namespace dlc::fuzz {

namespace {

Tensor number(DType dtype, int64_t v) {
  auto t = Tensor::make(dtype, {});
  t->set_int(0, v);
  return *std::move(t);
}

// A graph with the inputs of `g`, for a node that runs `g`.
Graph around(const Graph& g) {
  Graph outer;
  outer.name = g.name;
  outer.symbols = g.symbols;
  outer.records = g.records;
  for (const ValueId v : g.inputs) outer.add_input(g.value(v).name, g.value(v).type);
  return outer;
}

std::vector<TensorType> result_types(const Graph& g) {
  std::vector<TensorType> types;
  for (const ValueId v : g.outputs) types.push_back(g.value(v).type);
  return types;
}

Result<Graph> branch(const Graph& g, Graph outer, ValueId condition, const std::vector<ValueId>& operands) {
  Node n{.op = "if", .inputs = {condition}, .outputs = {}, .attrs = {}, .locations = {"If"}};
  n.inputs.insert(n.inputs.end(), operands.begin(), operands.end());
  const auto body = std::make_shared<const Graph>(g);
  n.bodies = {body, body};
  DLC_TRY(const NodeId id, outer.add_control(std::move(n), result_types(g)));
  outer.outputs = outer.node(id).outputs;
  outer.output_names = g.output_names;
  return outer;
}

}  // namespace

Result<Graph> as_branch(const Graph& g) {
  Graph outer = around(g);
  const std::vector<ValueId> operands = outer.inputs;
  const ValueId condition = outer.add_input("condition", {kBool, {}});
  return branch(g, std::move(outer), condition, operands);
}

Result<Graph> as_known_branch(const Graph& g) {
  Graph outer = around(g);
  const ValueId condition = outer.add_constant("condition", number(kBool, 1));
  const std::vector<ValueId> operands = outer.inputs;
  return branch(g, std::move(outer), condition, operands);
}

Result<Graph> as_loop(const Graph& g) {
  Graph outer = around(g);
  Graph body = g;
  const ValueId trip = body.add_input("trip", {kS64, {}});
  body.inputs.pop_back();
  body.inputs.insert(body.inputs.begin(), trip);
  body.outputs.insert(body.outputs.begin(), body.add_constant("more", number(kBool, 1)));
  body.output_names.insert(body.output_names.begin(), "more");
  Node n{.op = "loop",
         .inputs = {outer.add_constant("trips", number(kS64, 1)), kNoValue},
         .outputs = {},
         .attrs = {},
         .locations = {"Loop"}};
  n.inputs.insert(n.inputs.end(), outer.inputs.begin(), outer.inputs.end());
  n.attrs.emplace("carried", Expr(0));
  n.bodies = {std::make_shared<const Graph>(std::move(body))};
  std::vector<TensorType> types = result_types(g);
  for (TensorType& t : types) t.shape.insert(t.shape.begin(), Expr(1));
  DLC_TRY(const NodeId id, outer.add_control(std::move(n), std::move(types)));
  for (const ValueId v : std::vector(outer.node(id).outputs)) {
    DLC_TRY(const NodeId row, outer.add_node("squeeze", {v}, {{"axes", std::vector<Expr>{Expr(0)}}}, {}));
    outer.outputs.push_back(outer.node(row).outputs[0]);
  }
  outer.output_names = g.output_names;
  return outer;
}

}  // namespace dlc::fuzz
