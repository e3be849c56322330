// If, Loop and Scan where only a run knows the condition, the number of trips or the length.
#include "dlc/graph/control.h"

#include <algorithm>

#include "dlc/passes/pass.h"
#include "models.h"

using namespace dlc;
using namespace dlc_test;
using Values = std::vector<double>;

namespace {

onnx::NodeProto* add(onnx::GraphProto* g, const std::string& op, std::vector<std::string> in,
                     std::vector<std::string> out) {
  auto* n = g->add_node();
  n->set_op_type(op);
  for (const auto& s : in) n->add_input(s);
  for (const auto& s : out) n->add_output(s);
  return n;
}

onnx::GraphProto* body(onnx::NodeProto* n, const std::string& attr, std::vector<std::string> in,
                       std::vector<std::string> out) {
  auto* g = attribute(n, attr, onnx::AttributeProto::GRAPH)->mutable_g();
  g->set_name(attr);
  for (const auto& s : in) g->add_input()->set_name(s);
  for (const auto& s : out) g->add_output()->set_name(s);
  return g;
}

Tensor tensor(std::vector<double> v, DType type, std::vector<int64_t> shape) {
  REQUIRE_OK(Tensor t, Tensor::make(type, std::move(shape)));
  for (size_t i = 0; i < v.size(); ++i) t.set_double(static_cast<int64_t>(i), v[i]);
  return t;
}
Tensor row(std::vector<double> v) {
  const auto n = static_cast<int64_t>(v.size());
  return tensor(std::move(v), kF32, {n});
}
Tensor scalar(double v, DType type = kS64) { return tensor({v}, type, {}); }

std::vector<Values> results(const Graph& g, std::vector<Tensor> inputs) {
  auto y = run_graph(g, inputs);
  if (!y) FAIL(to_string(y.error()));
  std::vector<Values> all;
  for (const Tensor& t : *y) all.push_back(elements(t));
  return all;
}

// Inputs c: bool[], x: f32[N]; y = If(c).
struct Branches {
  onnx::ModelProto m = model(17);
  onnx::NodeProto* n;
  onnx::GraphProto *yes, *no;
  Branches() {
    declare(m.mutable_graph()->add_input(), "c", {}, onnx::TensorProto::BOOL);
    declare(m.mutable_graph()->add_input(), "x", {-1});
    n = node(m, "If", {"c"}, {"y"}, "node");
    yes = body(n, "then_branch", {}, {"t"});
    no = body(n, "else_branch", {}, {"e"});
    m.mutable_graph()->add_output()->set_name("y");
  }
};

// Inputs trips: s64[], going: bool[], x: f32[N]; y, all = Loop(trips, going, x).
struct Repeated {
  onnx::ModelProto m = model(17);
  onnx::NodeProto* n;
  onnx::GraphProto* b;
  Repeated(std::vector<std::string> inputs = {"trips", "going", "x"}) {
    declare(m.mutable_graph()->add_input(), "trips", {}, onnx::TensorProto::INT64);
    declare(m.mutable_graph()->add_input(), "going", {}, onnx::TensorProto::BOOL);
    declare(m.mutable_graph()->add_input(), "x", {-1});
    n = node(m, "Loop", std::move(inputs), {"y", "all"}, "node");
    b = body(n, "body", {"i", "c", "s"}, {"more", "next", "row"});
    for (const char* name : {"y", "all"}) m.mutable_graph()->add_output()->set_name(name);
  }
};

size_t controls(const Graph& g) {
  return static_cast<size_t>(std::ranges::count_if(g.order(), [&](NodeId n) { return !g.node(n).bodies.empty(); }));
}

}  // namespace

TEST_CASE("If of a condition that is data runs one branch", "[onnx][control]") {
  Branches f;
  add(f.yes, "Neg", {"x"}, {"t"});
  integers(f.m, "at", {1}, {5});
  add(f.no, "Gather", {"x", "at"}, {"e"});  // out of range for short x
  REQUIRE_OK(const Graph g, import(f.m));
  CHECK(controls(g) == 1);
  CHECK(results(g, {scalar(1, kBool), row({1, 2})})[0] == Values{-1, -2});
  CHECK(results(g, {scalar(0, kBool), row({1, 2, 3, 4, 5, 6})})[0] == Values{6});
  const Tensor wrong[] = {scalar(0, kBool), row({1, 2})};
  CHECK_FALSE(run_graph(g, wrong));
}

TEST_CASE("sizes around a body are known in it, and values too", "[onnx][control]") {
  Branches f;  // y = Reshape(x, [1, N]) or Expand(0, [2, N]), the shape computed around the branches
  f.m.mutable_graph()->clear_node();
  node(f.m, "Shape", {"x"}, {"n"});
  integers(f.m, "one", {1}, {1});
  integers(f.m, "two", {1}, {2});
  auto* concat = node(f.m, "Concat", {"one", "n"}, {"flat"});
  set_int(concat, "axis", 0);
  concat = node(f.m, "Concat", {"two", "n"}, {"twice"});
  set_int(concat, "axis", 0);
  auto* n = node(f.m, "If", {"c"}, {"y"}, "node");
  add(body(n, "then_branch", {}, {"t"}), "Reshape", {"x", "flat"}, {"t"});
  initializer(f.m, "zero", {}, {0});
  add(body(n, "else_branch", {}, {"e"}), "Expand", {"zero", "twice"}, {"e"});  // N only as a number
  REQUIRE_OK(const Graph g, import(f.m));
  CHECK(to_string(g.value(g.outputs[0]).type).ends_with(",N]"));
  CHECK(results(g, {scalar(1, kBool), row({1, 2, 3})})[0] == Values{1, 2, 3});
  CHECK(results(g, {scalar(0, kBool), row({1, 2, 3})})[0] == Values(6, 0));
}

TEST_CASE("bodies in bodies use what is around all of them", "[onnx][control]") {
  Branches f;  // If in Loop in If
  integers(f.m, "trips", {}, {-1});
  auto* loop = add(f.yes, "Loop", {"n", "", "x"}, {"t"});
  declare(f.m.mutable_graph()->add_input(), "n", {}, onnx::TensorProto::INT64);
  auto* b = body(loop, "body", {"i", "going", "s"}, {"same", "next"});
  add(b, "Identity", {"going"}, {"same"});
  auto* inner = add(b, "If", {"c"}, {"next"});
  add(body(inner, "then_branch", {}, {"p"}), "Add", {"s", "x"}, {"p"});
  add(body(inner, "else_branch", {}, {"q"}), "Neg", {"s"}, {"q"});
  add(f.no, "Abs", {"x"}, {"e"});
  REQUIRE_OK(const Graph g, import(f.m));
  CHECK(results(g, {scalar(1, kBool), row({1, -2}), scalar(3)})[0] == Values{4, -8});
  CHECK(results(g, {scalar(1, kBool), row({1, -2}), scalar(0)})[0] == Values{1, -2});
  CHECK(results(g, {scalar(0, kBool), row({1, -2}), scalar(3)})[0] == Values{1, 2});
}

TEST_CASE("Loop of data carries values that grow, and stacks rows", "[onnx][control]") {
  Repeated f;
  initializer(f.m, "one", {1}, {1});
  initializer(f.m, "limit", {}, {6});
  set_int(add(f.b, "Concat", {"s", "one"}, {"next"}), "axis", 0);
  set_int(add(f.b, "ReduceSum", {"next"}, {"row"}), "keepdims", 0);
  add(f.b, "Less", {"row", "limit"}, {"more"});
  REQUIRE_OK(const Graph g, import(f.m));
  CHECK(results(g, {scalar(2), scalar(1, kBool), row({1})}) == std::vector<Values>{{1, 1, 1}, {2, 3}});
  CHECK(results(g, {scalar(9), scalar(1, kBool), row({4})}) == std::vector<Values>{{4, 1, 1}, {5, 6}});
  CHECK(results(g, {scalar(0), scalar(1, kBool), row({4})}) == std::vector<Values>{{4}, {}});
  CHECK(results(g, {scalar(3), scalar(0, kBool), row({4})}) == std::vector<Values>{{4}, {}});
}

TEST_CASE("number of trips and condition may each be absent", "[onnx][control]") {
  const auto while_loop = [](std::vector<std::string> inputs, const char* more) {
    Repeated f(std::move(inputs));
    initializer(f.m, "limit", {}, {10});
    add(f.b, "Add", {"s", "s"}, {"next"});
    set_int(add(f.b, "ReduceSum", {"next"}, {"row"}), "keepdims", 0);
    if (more != nullptr)
      add(f.b, "Less", {"row", "limit"}, {"more"});
    else
      add(f.b, "Identity", {"c"}, {"more"});
    return f.m;
  };
  REQUIRE_OK(const Graph a, import(while_loop({"", "", "x"}, "row")));
  CHECK(results(a, {scalar(0), scalar(0, kBool), row({1})})[1] == Values{2, 4, 8, 16});
  REQUIRE_OK(const Graph b, import(while_loop({"", "going", "x"}, "row")));
  CHECK(results(b, {scalar(0), scalar(0, kBool), row({1})})[0] == Values{1});
  CHECK(results(b, {scalar(0), scalar(1, kBool), row({1})})[0] == Values{16});
  REQUIRE_OK(const Graph c, import(while_loop({"trips", "", "x"}, nullptr)));
  CHECK(results(c, {scalar(2), scalar(0, kBool), row({1})})[1] == Values{2, 4});
  REQUIRE_ERROR(import(while_loop({"", "", "x"}, nullptr)), "the loop never ends");
}

TEST_CASE("a long loop of known length is not written out", "[onnx][control]") {
  Repeated f({"many", "", "x"});
  integers(f.m, "many", {}, {20000});
  initializer(f.m, "one", {1}, {1});
  add(f.b, "Identity", {"c"}, {"more"});
  add(f.b, "Add", {"s", "one"}, {"next"});
  set_int(add(f.b, "ReduceMax", {"next"}, {"row"}), "keepdims", 0);
  REQUIRE_OK(const Graph g, import(f.m));
  CHECK(controls(g) == 1);
  CHECK(to_string(g.value(g.outputs[1]).type) == "f32[20000]");
  const auto y = results(g, {scalar(0), scalar(0, kBool), row({0})});
  CHECK(y[0] == Values{20000});
  CHECK(y[1][19998] == 19999);
  f.m.mutable_graph()->mutable_initializer(0)->set_int64_data(0, 20);
  REQUIRE_OK(const Graph written, import(f.m));
  CHECK(controls(written) == 0);
}

TEST_CASE("Scan over a length that only a run knows", "[onnx][control]") {
  for (const bool backward : {false, true}) {
    OneNode one("Scan", 17, {-1, 2}, {"zero", "x"});
    initializer(one.m, "zero", {2}, {0, 0});
    one.n->set_output(0, "last");
    one.n->add_output("all");
    set_int(one.n, "num_scan_inputs", 1);
    set_ints(one.n, "scan_input_directions", {backward ? 1 : 0});
    set_ints(one.n, "scan_output_axes", {1});
    set_ints(one.n, "scan_output_directions", {backward ? 1 : 0});
    auto* b = body(one.n, "body", {"sum", "e"}, {"next", "next"});
    add(b, "Add", {"sum", "e"}, {"next"});
    one.m.mutable_graph()->mutable_output(0)->set_name("last");
    one.m.mutable_graph()->add_output()->set_name("all");
    REQUIRE_OK(const Graph g, import(one.m));
    CHECK(to_string(g.value(g.outputs[1]).type) == "f32[2,N]");
    const auto y = results(g, {tensor({1, 10, 2, 20, 3, 30}, kF32, {3, 2})});
    CHECK(y[0] == Values{6, 60});
    CHECK(y[1] == (backward ? Values{6, 5, 3, 60, 50, 30} : Values{1, 3, 6, 10, 30, 60}));
  }
}

TEST_CASE("sequences of one length in both branches are sequences", "[onnx][control]") {
  Branches f;
  add(f.yes, "Neg", {"x"}, {"a"});
  add(f.yes, "SequenceConstruct", {"x", "a"}, {"t"});
  add(f.no, "Abs", {"x"}, {"b"});
  add(f.no, "SequenceConstruct", {"b", "b"}, {"e"});
  REQUIRE_OK(const Graph g, import(f.m));
  CHECK(g.output_names == std::vector<std::string>{"y[0]", "y[1]"});
  CHECK(results(g, {scalar(1, kBool), row({-1})}) == std::vector<Values>{{-1}, {1}});
  CHECK(results(g, {scalar(0, kBool), row({-1})}) == std::vector<Values>{{1}, {1}});
  f.no->mutable_node(1)->add_input("b");
  REQUIRE_ERROR(import(f.m), "the branches give sequences of different lengths");
}

TEST_CASE("of branches of different rank the one is taken that the model accepts", "[onnx][control]") {
  for (const bool squeezed : {true, false}) {  // x: f32[N] or f32[N,1]; what follows wants a matrix, or not
    auto m = model(17);
    declare(m.mutable_graph()->add_input(), "c", {}, onnx::TensorProto::BOOL);
    declare(m.mutable_graph()->add_input(), "x", {-1, 1});
    integers(m, "axis", {1}, {1});
    initializer(m, "w", {1, 2}, {1, 2});
    auto* n = node(m, "If", {"c"}, {"r"}, "node");
    add(body(n, "then_branch", {}, {"t"}), "Squeeze", {"x", "axis"}, {"t"});
    add(body(n, "else_branch", {}, {"e"}), "Identity", {"x"}, {"e"});
    if (squeezed)
      node(m, "Neg", {"r"}, {"y"});
    else
      node(m, "Gemm", {"r", "w"}, {"y"});
    m.mutable_graph()->add_output()->set_name("y");
    REQUIRE_OK(const Graph g, import(m));
    const Tensor x = tensor({1, 2}, kF32, {2, 1});
    CHECK(results(g, {scalar(squeezed ? 1 : 0, kBool), x})[0] == (squeezed ? Values{-1, -2} : Values{1, 2, 2, 4}));
    const Tensor other[] = {scalar(squeezed ? 0 : 1, kBool), x};
    REQUIRE_ERROR(run_graph(g, other), "the model was compiled for inputs that make this condition");
  }
}

TEST_CASE("what control flow cannot be is said", "[onnx][control]") {
  Branches types;
  add(types.yes, "Neg", {"x"}, {"t"});
  set_int(add(types.no, "Cast", {"x"}, {"e"}), "to", onnx::TensorProto::DOUBLE);
  REQUIRE_ERROR(import(types.m), "output 0 differs in type: f32[N] or f64[N]");

  Repeated sequence({"trips", "", "s0"});
  sequence.m.mutable_graph()->mutable_node()->SwapElements(0, 0);
  auto* construct = sequence.m.mutable_graph()->add_node();
  construct->set_op_type("SequenceConstruct");
  construct->add_input("x");
  construct->add_output("s0");
  sequence.m.mutable_graph()->mutable_node()->SwapElements(0, 1);
  add(sequence.b, "Identity", {"c"}, {"more"});
  add(sequence.b, "Identity", {"x"}, {"row"});
  add(sequence.b, "SequenceInsert", {"s", "x"}, {"next"});
  REQUIRE_ERROR(import(sequence.m), "carried value 0 is a sequence, and only a run knows the number of trips");

  Repeated ranks({"trips", "", "x"});
  integers(ranks.m, "axis", {1}, {0});
  add(ranks.b, "Identity", {"c"}, {"more"});
  add(ranks.b, "Identity", {"x"}, {"row"});
  add(ranks.b, "Unsqueeze", {"s", "axis"}, {"next"});
  REQUIRE_ERROR(import(ranks.m), "a carried value keeps its type and rank");
}

TEST_CASE("without control flow loops are written out and both branches computed", "[onnx][control]") {
  OnnxOptions options;
  options.control_flow = false;
  Branches f;
  add(f.yes, "Neg", {"x"}, {"t"});
  add(f.no, "Abs", {"x"}, {"e"});
  REQUIRE_OK(const Graph g, import(f.m, {}, options));
  CHECK(controls(g) == 0);
  CHECK(results(g, {scalar(1, kBool), row({-1, 2})})[0] == Values{1, -2});
  CHECK(results(g, {scalar(0, kBool), row({-1, 2})})[0] == Values{1, 2});
  f.no->mutable_node(0)->set_op_type("Shape");
  REQUIRE_ERROR(import(f.m, {}, options), "output 0 differs in type: f32[N] or s64[1]");

  Repeated r({"many", "", "x"});
  integers(r.m, "many", {}, {2000});
  add(r.b, "Identity", {"c"}, {"more"});
  add(r.b, "Neg", {"s"}, {"next"});
  set_int(add(r.b, "ReduceMax", {"next"}, {"row"}), "keepdims", 0);
  REQUIRE_OK(const Graph written, import(r.m, {}, options));
  CHECK(controls(written) == 0);
  r.n->set_input(0, "trips");
  REQUIRE_ERROR(import(r.m, {}, options), "a library has no runtime for that");
}

TEST_CASE("what is assumed of a condition is checked first, and even where only sizes are used", "[onnx][control]") {
  const auto shape_of = [](const char* then, bool with_index) {
    auto m = model(17);
    declare(m.mutable_graph()->add_input(), "c", {}, onnx::TensorProto::BOOL);
    declare(m.mutable_graph()->add_input(), "x", {2, 3});
    declare(m.mutable_graph()->add_input(), "i", {}, onnx::TensorProto::INT64);
    integers(m, "flat", {1}, {-1});
    auto* n = node(m, "If", {"c"}, {"r"}, "choice");
    std::vector<std::string> inputs{"x"};
    if (with_index) inputs.push_back("i");
    add(body(n, "then_branch", {}, {"t"}), then, inputs, {"t"});
    add(body(n, "else_branch", {}, {"e"}), with_index ? "Neg" : "Reshape",
        with_index ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "flat"}, {"e"});
    node(m, "Shape", {"r"}, {"y"});
    m.mutable_graph()->add_output()->set_name(with_index ? "r" : "y");
    return m;
  };
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, kF32, {2, 3});
  REQUIRE_OK(Graph g, import(shape_of("Identity", false)));
  for (const char* pass : {"none", "fold", "canonicalise", "cse", "control", "dce"}) {
    if (pass != std::string("none"))
      if (auto ok = run_passes(g, {pass}); !ok) FAIL(to_string(ok.error()));
    CHECK(results(g, {scalar(1, kBool), x, scalar(0)})[0] == Values{2, 3});
    const Tensor other[] = {scalar(0, kBool), x, scalar(0)};
    REQUIRE_ERROR(run_graph(g, other), "the model was compiled for inputs that make this condition");
  }
  REQUIRE_OK(const Graph gather, import(shape_of("Gather", true)));
  const Tensor other[] = {scalar(0, kBool), x, scalar(99)};  // the index is not looked at
  REQUIRE_ERROR(run_graph(gather, other), "the model was compiled for inputs that make this condition");
}

TEST_CASE("a loop that is known to run no trip gives no rows", "[onnx][control]") {
  Repeated f({"none", "", "x"});
  integers(f.m, "none", {}, {0});
  add(f.b, "Identity", {"c"}, {"more"});
  add(f.b, "Neg", {"s"}, {"next"});
  add(f.b, "Concat", {"s", "s"}, {"row"});
  set_int(f.b->mutable_node(2), "axis", 0);
  REQUIRE_OK(const Graph g, import(f.m));
  auto y = run_graph(g, std::vector{scalar(0), scalar(0, kBool), row({1, 2})});
  if (!y) FAIL(to_string(y.error()));
  CHECK((*y)[0].shape() == std::vector<int64_t>{2});
  CHECK((*y)[1].shape() == std::vector<int64_t>{0, 4});
}

TEST_CASE("bodies in bodies without end are refused with one error", "[onnx][control]") {
  const auto nested = [](int depth) {
    Branches f;
    add(f.no, "Neg", {"x"}, {"e"});
    onnx::GraphProto* at = f.yes;
    for (int i = 1; i < depth; ++i) {
      auto* inner = add(at, "If", {"c"}, {"t"});
      auto* next = body(inner, "then_branch", {}, {"t"});
      add(body(inner, "else_branch", {}, {"e"}), "Neg", {"x"}, {"e"});
      at = next;
    }
    add(at, "Abs", {"x"}, {"t"});
    return import(f.m);
  };
  REQUIRE_OK(const Graph g, nested(16));
  CHECK(results(g, {scalar(1, kBool), row({-1})})[0] == Values{1});
  CHECK(results(g, {scalar(0, kBool), row({-1})})[0] == Values{1});
  REQUIRE_ERROR(nested(17), "bodies are nested more than 16 deep");
  REQUIRE_ERROR(nested(500), "nested too deeply");
}

TEST_CASE("conditions and numbers of trips are one element of their type", "[onnx][control]") {
  Repeated f({"x", "going", "x"});
  add(f.b, "Identity", {"c"}, {"more"});
  add(f.b, "Neg", {"s"}, {"next"});
  add(f.b, "Neg", {"s"}, {"row"});
  REQUIRE_ERROR(import(f.m), "the number of trips is f32[N], one element of s64 is needed");
  f.n->set_input(0, "trips");
  f.n->set_input(1, "trips");
  REQUIRE_ERROR(import(f.m), "the condition is s64[], one element of bool is needed");
  f.n->set_input(1, "going");
  f.b->mutable_node(0)->set_input(0, "s");
  REQUIRE_ERROR(import(f.m), "the condition that the body gives is f32[N], one element of bool is needed");
}
