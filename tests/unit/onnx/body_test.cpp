// Bodies inside a model: control flow, functions, sequences; and inputs whose values the graph's structure needs.
#include <onnx_newer.pb.h>

#include "models.h"

using namespace dlc;
using namespace dlc_test;
using Values = std::vector<double>;

namespace {

OnnxValue numbers(std::vector<double> v, DType type = kS64, bool scalar = false) {
  REQUIRE_OK(Tensor t, Tensor::make(type, scalar ? std::vector<int64_t>{}
                                                 : std::vector<int64_t>{static_cast<int64_t>(v.size())}));
  for (size_t i = 0; i < v.size(); ++i) t.set_double(static_cast<int64_t>(i), v[i]);
  return OnnxValue::of(std::move(t));
}

onnx::NodeProto* add(onnx::GraphProto* g, const std::string& op, std::vector<std::string> in, const std::string& out) {
  auto* n = g->add_node();
  n->set_op_type(op);
  for (const auto& s : in) n->add_input(s);
  n->add_output(out);
  return n;
}

onnx::GraphProto* body(onnx::NodeProto* n, const std::string& attr) {
  auto* a = attribute(n, attr, onnx::AttributeProto::GRAPH);
  a->mutable_g()->set_name(attr);
  return a->mutable_g();
}

Values outputs(const Graph& g, std::vector<Tensor> inputs, size_t output = 0) {
  auto y = run_graph(g, inputs);
  if (!y) FAIL(to_string(y.error()));
  return elements((*y)[output]);
}

// x plus itself, as often as the trip count says; the partial sums are stacked.
onnx::ModelProto sums() {
  OneNode one("Loop", 16, {1}, {"trips", "", "x"});
  one.n->set_output(0, "last");
  one.n->add_output("all");
  auto* b = body(one.n, "body");
  for (const char* name : {"i", "going", "sum"}) b->add_input()->set_name(name);
  add(b, "Add", {"sum", "x"}, "next");  // x is a value around the body
  add(b, "Identity", {"going"}, "still");
  for (const char* name : {"still", "next", "next"}) b->add_output()->set_name(name);
  one.m.mutable_graph()->mutable_output(0)->set_name("last");
  one.m.mutable_graph()->add_output()->set_name("all");
  return one.m;
}

}  // namespace

TEST_CASE("Loop repeats its body, and stacks what it gives") {
  auto m = sums();
  integers(m, "trips", {}, {3});
  REQUIRE_OK(const Graph g, import(m));
  const Tensor x = numbers({5}, kF32).tensors[0];
  CHECK(outputs(g, {x}, 0) == Values{20});
  CHECK(outputs(g, {x}, 1) == Values{10, 15, 20});
}

TEST_CASE("a trip count in an input is the run's, a given one too") {
  auto m = sums();
  declare(m.mutable_graph()->add_input(), "trips", {}, onnx::TensorProto::INT64);
  OnnxOptions options;
  options.given.emplace("trips", numbers({2}, kS64, true));
  for (const bool given : {false, true}) {
    REQUIRE_OK(const Graph g, import(m, {}, given ? options : OnnxOptions{}));
    REQUIRE(g.inputs.size() == 2);
    const Tensor x = numbers({5}, kF32).tensors[0];
    CHECK(outputs(g, {x, numbers({2}, kS64, true).tensors[0]}) == Values{15});
    CHECK(outputs(g, {x, numbers({3}, kS64, true).tensors[0]}, 1) == Values{10, 15, 20});
  }
}

TEST_CASE("If takes one branch") {
  for (const bool yes : {true, false}) {
    OneNode one("If", 16, {1}, {"c"});
    one.n->clear_input();
    one.n->add_input("c");
    integers(one.m, "c", {}, {yes ? 1 : 0}, onnx::TensorProto::BOOL);
    add(body(one.n, "then_branch"), "Neg", {"x"}, "t");
    one.n->mutable_attribute(0)->mutable_g()->add_output()->set_name("t");
    add(body(one.n, "else_branch"), "Abs", {"x"}, "e");
    one.n->mutable_attribute(1)->mutable_g()->add_output()->set_name("e");
    CHECK(elements(run(one.m, {-2})) == Values{2});
    CHECK(elements(run(one.m, {2})) == Values{yes ? -2.0 : 2.0});
  }
}

TEST_CASE("Scan walks an axis, forward and back") {
  OneNode one("Scan", 11, {3}, {"zero", "x"});
  initializer(one.m, "zero", {}, {0});
  one.n->set_output(0, "last");
  one.n->add_output("all");
  set_int(one.n, "num_scan_inputs", 1);
  set_ints(one.n, "scan_input_directions", {1});
  auto* b = body(one.n, "body");
  for (const char* name : {"sum", "e"}) b->add_input()->set_name(name);
  add(b, "Add", {"sum", "e"}, "next");
  for (const char* name : {"next", "next"}) b->add_output()->set_name(name);
  one.m.mutable_graph()->mutable_output(0)->set_name("all");
  CHECK(elements(run(one.m, {1, 2, 4})) == Values{4, 6, 7});
}

TEST_CASE("a function is imported where it is called, with the call's attributes") {
  auto m = model(17);
  declare(m.mutable_graph()->add_input(), "x", {2});
  auto* domain = m.add_opset_import();
  domain->set_domain("mine");
  domain->set_version(1);
  auto* f = m.add_functions();
  f->set_name("Leak");
  f->set_domain("mine");
  f->add_input("a");
  f->add_output("b");
  f->add_attribute("slope");
  auto* set = f->add_opset_import();
  set->set_version(17);
  auto* inner = f->add_node();
  inner->set_op_type("LeakyRelu");
  inner->add_input("a");
  inner->add_output("b");
  auto* ref = attribute(inner, "alpha", onnx::AttributeProto::FLOAT);
  ref->set_ref_attr_name("slope");
  auto* call = node(m, "Leak", {"x"}, {"y"});
  call->set_domain("mine");
  set_float(call, "slope", 0.5F);
  m.mutable_graph()->add_output()->set_name("y");
  CHECK(elements(run(m, {-2, 2})) == Values{-1, 2});

  inner->set_op_type("Leak");  // calls itself
  inner->set_domain("mine");
  REQUIRE_ERROR(import(m), "functions call each other too deeply");
}

namespace {

// mine.NAME(a) = LeakyRelu(a, alpha = slope), slope having a default.
void add_leak(onnx::ModelProto& m, float slope, const std::string& overload) {
  auto* f = m.add_functions();
  f->set_name("Leak");
  f->set_domain("mine");
  f->add_input("a");
  f->add_output("b");
  f->add_opset_import()->set_version(17);
  auto* inner = f->add_node();
  inner->set_op_type("LeakyRelu");
  inner->add_input("a");
  inner->add_output("b");
  attribute(inner, "alpha", onnx::AttributeProto::FLOAT)->set_ref_attr_name("slope");
  dlc::onnx_newer::Function newer;
  newer.set_overload(overload);
  auto* d = newer.add_attribute_proto();
  d->set_name("slope");
  d->set_type(onnx::AttributeProto::FLOAT);
  d->set_f(slope);
  REQUIRE(f->MergeFromString(newer.SerializeAsString()));
}

}  // namespace

TEST_CASE("a function's attributes have defaults, functions of one name overloads") {
  auto m = model(17);
  declare(m.mutable_graph()->add_input(), "x", {2});
  auto* domain = m.add_opset_import();
  domain->set_domain("mine");
  domain->set_version(1);
  add_leak(m, 0.5F, "");
  add_leak(m, 0.25F, "quarter");
  auto* call = node(m, "Leak", {"x"}, {"y"});
  call->set_domain("mine");
  m.mutable_graph()->add_output()->set_name("y");
  CHECK(elements(run(m, {-2, 2})) == Values{-1, 2});
  set_float(call, "slope", 0.125F);
  CHECK(elements(run(m, {-2, 2})) == Values{-0.25, 2});
  call->clear_attribute();
  dlc::onnx_newer::Node newer;
  newer.set_overload("quarter");
  REQUIRE(call->MergeFromString(newer.SerializeAsString()));
  CHECK(elements(run(m, {-2, 2})) == Values{-0.5, 2});
  newer.set_overload("none");
  REQUIRE(call->MergeFromString(newer.SerializeAsString()));
  REQUIRE_ERROR(import(m), "mine.Leak");
  add_leak(m, 1, "quarter");
  REQUIRE_ERROR(import(m), "function 'Leak' is defined twice");
}

TEST_CASE("sequences are tensors side by side") {
  auto m = model(17);
  auto* s = m.mutable_graph()->add_input();
  s->set_name("s");
  s->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  integers(m, "first", {}, {0});
  node(m, "SequenceAt", {"s", "first"}, {"head"});
  node(m, "SequenceInsert", {"s", "head"}, {"longer"});
  auto* concat = node(m, "ConcatFromSequence", {"longer"}, {"y"});
  set_int(concat, "axis", 0);
  node(m, "SequenceLength", {"longer"}, {"length"});
  for (const char* name : {"y", "length", "longer"}) m.mutable_graph()->add_output()->set_name(name);
  REQUIRE_ERROR(import(m), "the length of sequence 's' must be known when compiling");
  OnnxOptions options;
  const Tensor a = numbers({1, 2}, kF32).tensors[0];
  const Tensor b = numbers({3}, kF32).tensors[0];
  options.given["s"] = {true, true, {a, b}};
  REQUIRE_OK(const Graph g, import(m, {}, options));
  CHECK(g.output_names == std::vector<std::string>{"y", "length", "longer[0]", "longer[1]", "longer[2]"});
  CHECK(outputs(g, {a, b}, 0) == Values{1, 2, 3, 1, 2});
  CHECK(outputs(g, {a, b}, 1) == Values{3});
  node(m, "Neg", {"s"}, {"wrong"});
  REQUIRE_ERROR(import(m, {}, options), "input 0 is a sequence, a tensor is needed");
}

TEST_CASE("bounds and sizes in inputs are bound when the graph runs") {
  auto m = model(17);
  declare(m.mutable_graph()->add_input(), "x", {4});
  declare(m.mutable_graph()->add_input(), "from", {1}, onnx::TensorProto::INT64);
  declare(m.mutable_graph()->add_input(), "to", {1}, onnx::TensorProto::INT64);
  node(m, "Slice", {"x", "from", "to"}, {"y"}, "slice");
  m.mutable_graph()->add_output()->set_name("y");
  REQUIRE_OK(const Graph g, import(m));
  REQUIRE(g.inputs.size() == 3);
  const Tensor x = numbers({1, 2, 3, 4}, kF32).tensors[0];
  const auto cut = [&](double from, double to) {
    return outputs(g, {x, numbers({from}).tensors[0], numbers({to}).tensors[0]});
  };
  CHECK(cut(1, 3) == Values{2, 3});
  CHECK(cut(-2, 9e18) == Values{3, 4});
  CHECK(cut(3, 1).empty());

  OnnxOptions options;  // what is known is folded
  options.given.emplace("from", numbers({1}));
  options.given.emplace("to", numbers({-1}));
  REQUIRE_OK(const Graph known, import(m, {}, options));
  REQUIRE(known.inputs.size() == 1);
  CHECK(to_string(known.value(known.outputs[0]).type) == "f32[2]");
}
