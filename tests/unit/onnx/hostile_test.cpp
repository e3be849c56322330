// Models that no exporter writes: inputs that are missing or of another kind, work without end, attributes that nobody
// reads, sizes that contradict each other, names that are no text.
#include "frontends/onnx/names.h"
#include "models.h"

using namespace dlc;
using namespace dlc_test;
using Catch::Matchers::Contains;

namespace {

void refused(const onnx::ModelProto& m, const std::string& why) {
  const auto g = import(m);
  REQUIRE_FALSE(g.has_value());
  CHECK_THAT(to_string(g.error()), Contains(why));
}

onnx::GraphProto* body(onnx::NodeProto* n, const std::string& name) {
  auto* g = attribute(n, name, onnx::AttributeProto::GRAPH)->mutable_g();
  g->set_name(name);
  return g;
}
void relu(onnx::GraphProto* g, const std::string& in, const std::string& out, const std::string& op = "Relu") {
  auto* n = g->add_node();
  n->set_op_type(op);
  if (!in.empty()) n->add_input(in);
  n->add_output(out);
}
// A loop of `trips` whose body takes i, c, s; the test adds nodes and outputs.
OneNode loop(int64_t trips, onnx::GraphProto*& b) {
  OneNode t("Loop", 13, {4}, {"n", "", "x"});
  integers(t.m, "n", {}, {trips});
  b = body(t.n, "body");
  declare(b->add_input(), "i", {}, onnx::TensorProto::INT64);
  declare(b->add_input(), "c", {}, onnx::TensorProto::BOOL);
  declare(b->add_input(), "s", {4});
  return t;
}

}  // namespace

TEST_CASE("The graph may grow while an op is imported, whatever it keeps", "[onnx]") {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    for (int before = 0; before < 20; ++before) {
      auto m = model(11);
      declare(m.mutable_graph()->add_input(), "x", {2, 3, 4});
      for (int i = 0; i < before; ++i)
        node(m, "Relu", {i == 0 ? "x" : "r" + std::to_string(i - 1)}, {"r" + std::to_string(i)});
      set_int(node(m, op, {before == 0 ? "x" : "r" + std::to_string(before - 1)}, {"y"}), "axis", 1);
      m.mutable_graph()->add_output()->set_name("y");
      const auto g = import(m);
      REQUIRE(g.has_value());
      CHECK(to_string(g->value(g->outputs[0]).type) == "f32[2,3,4]");
    }
  for (const int64_t k : {1, 2, 5, 40, 200}) {
    auto m = model(13);
    declare(m.mutable_graph()->add_input(), "x", {k, 3});
    set_int(node(m, "SplitToSequence", {"x"}, {"s"}), "keepdims", 0);
    integers(m, "at", {}, {-1});
    node(m, "SequenceAt", {"s", "at"}, {"y"});
    m.mutable_graph()->add_output()->set_name("y");
    const auto g = import(m);
    REQUIRE(g.has_value());
    CHECK(to_string(g->value(g->outputs[0]).type) == "f32[3]");
  }
}

TEST_CASE("Places of n-grams are checked before anything is stored there", "[onnx]") {
  for (const int64_t bad : {int64_t{-5}, INT64_MAX, int64_t{1} << 30}) {
    OneNode t("TfIdfVectorizer", 13, {4}, {"x"}, onnx::TensorProto::INT64);
    set_ints(t.n, "pool_int64s", {1, 2});
    set_ints(t.n, "ngram_counts", {0});
    set_ints(t.n, "ngram_indexes", {0, 1, bad});
    set_floats(t.n, "weights", {1, 1, 1});
    for (const char* a : {"min_gram_length", "max_gram_length"}) set_int(t.n, a, 1);
    set_int(t.n, "max_skip_count", 0);
    set_string(t.n, "mode", "TFIDF");
    refused(t.m, "'ngram_indexes' holds");
  }
}

TEST_CASE("Inputs that are missing, too many or of another kind", "[onnx]") {
  refused(OneNode("Clip", 7, {4}, {}).m, "input 0 is missing");
  refused(OneNode("Clip", 7, {4}, {"x", "x"}).m, "2 inputs are given, it takes 1");
  refused(OneNode("Conv", 13, {1, 1, 4, 4}, {"x", "x", "", "x"}).m, "4 inputs are given, it takes 3");
  refused(OneNode("CumSum", 13, {4}, {"", "x"}).m, "input 0 is missing");
  refused(OneNode("Concat", 13, {4}, {"", "x"}).m, "input 0 is missing");
  refused(OneNode("SequenceConstruct", 13, {4}, {"x", "", "x"}).m, "input 1 is missing");
  refused(OneNode("SequenceAt", 13, {4}, {"x", "x"}).m, "input 0 is a tensor, a sequence is needed");
  {
    OneNode t("STFT", 17, {1, 16, 1}, {"x", "step", "window"});
    integers(t.m, "step", {}, {4});
    initializer(t.m, "window", {}, {1});
    refused(t.m, "a list is needed");
  }
  for (const char* op : {"If", "Relu", "Concat"}) {  // a sequence where a tensor is needed
    auto m = model(13);
    declare(m.mutable_graph()->add_input(), "x", {4});
    node(m, "SequenceEmpty", {}, {"e"});
    auto* n = node(m, op, {"e"}, {"y"});
    if (op == std::string("Concat")) set_int(n, "axis", 0);
    m.mutable_graph()->add_output()->set_name("y");
    refused(m, "input 0 is a sequence, a tensor is needed");
  }
  {  // as a position
    auto m = model(13);
    declare(m.mutable_graph()->add_input(), "x", {4});
    node(m, "SequenceConstruct", {"x"}, {"s"});
    node(m, "SequenceAt", {"s", "s"}, {"y"});
    m.mutable_graph()->add_output()->set_name("y");
    refused(m, "input 1 is a sequence, a tensor is needed");
  }
  {  // as an element
    auto m = model(13);
    declare(m.mutable_graph()->add_input(), "x", {4});
    node(m, "SequenceConstruct", {"x"}, {"s"});
    node(m, "SequenceInsert", {"s", "s"}, {"y"});
    m.mutable_graph()->add_output()->set_name("y");
    refused(m, "input 1 is a sequence, a tensor is needed");
  }
  {  // as a loop's condition, and as what it stacks
    onnx::GraphProto* b = nullptr;
    OneNode t = loop(3, b);
    relu(b, "", "e", "SequenceEmpty");
    b->add_output()->set_name("e");
    b->add_output()->set_name("s");
    refused(t.m, "a tensor is needed where a sequence is given");
    OneNode u = loop(3, b);
    relu(b, "", "e", "SequenceEmpty");
    for (const char* o : {"c", "s", "e"}) b->add_output()->set_name(o);
    u.n->add_output("z");
    refused(u.m, "a tensor is needed where a sequence is given");
  }
}

TEST_CASE("A trip count behind a huge tensor is no reason to make the tensor", "[onnx]") {
  onnx::GraphProto* b = nullptr;
  OneNode t = loop(2, b);
  for (const char* o : {"c", "s"}) b->add_output()->set_name(o);
  integers(t.m, "one", {}, {1});
  integers(t.m, "big", {2}, {100000, 100000});
  t.n->set_input(0, "trips");
  node(t.m, "Expand", {"one", "big"}, {"huge"});
  set_int(node(t.m, "ReduceMax", {"huge"}, {"trips"}), "keepdims", 0);
  auto* nodes = t.m.mutable_graph()->mutable_node();
  nodes->SwapElements(0, 1);
  nodes->SwapElements(1, 2);
  REQUIRE(import(t.m).has_value());  // it is the run's
}

TEST_CASE("The import's work is limited", "[onnx]") {
  {  // a function that calls another twice, 30 times over
    auto m = model(13);
    declare(m.mutable_graph()->add_input(), "x", {4});
    auto* set = m.add_opset_import();
    set->set_domain("my");
    set->set_version(1);
    node(m, "f0", {"x"}, {"y"})->set_domain("my");
    m.mutable_graph()->add_output()->set_name("y");
    for (int i = 0; i <= 30; ++i) {
      auto* f = m.add_functions();
      f->set_domain("my");
      f->set_name("f" + std::to_string(i));
      f->add_input("a");
      f->add_output("b");
      for (const auto& o : m.opset_import()) *f->add_opset_import() = o;
      for (const auto& [in, out] : {std::pair("a", "t"), std::pair("t", "b")}) {
        auto* n = f->add_node();
        n->set_op_type(i == 30 ? "Identity" : "f" + std::to_string(i + 1));
        n->set_domain(i == 30 ? "" : "my");
        n->add_input(in);
        n->add_output(out);
      }
    }
    refused(m, "has more than 262144 nodes");
  }
  {  // an empty body
    onnx::GraphProto* b = nullptr;
    OneNode t = loop(int64_t{1} << 62, b);
    b->add_output()->set_name("c");
    b->add_output()->set_name("s");
    const auto g = import(t.m);
    REQUIRE(g.has_value());
    CHECK(g->order().size() == 1);
  }
  {  // each trip costs the same
    onnx::GraphProto* b = nullptr;
    OneNode t = loop(5000, b);
    relu(b, "s", "r");
    b->add_output()->set_name("c");
    b->add_output()->set_name("r");
    const auto g = import(t.m);
    REQUIRE(g.has_value());
    CHECK(g->order().size() == 1);
  }
  {  // a sequence is carried, so that the loop can only be written out
    auto m = model(13);
    declare(m.mutable_graph()->add_input(), "x", {4});
    node(m, "SequenceConstruct", {"x"}, {"s"});
    integers(m, "n", {}, {int64_t{1} << 40});
    auto* b = body(node(m, "Loop", {"n", "", "s"}, {"y"}), "body");
    for (const char* in : {"i", "c", "t"}) b->add_input()->set_name(in);
    for (const char* out : {"c", "t"}) b->add_output()->set_name(out);
    m.mutable_graph()->add_output()->set_name("y");
    refused(m, "has more than 262144 nodes");
  }
  std::vector<int64_t> many(3000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i);
  for (const char* op : {"Unsqueeze", "Reshape"}) {
    OneNode t(op, 13, {4}, {"x", "a"});
    if (op == std::string("Reshape")) std::ranges::fill(many, 1);
    integers(t.m, "a", {3000}, many);
    refused(t.m, "of rank 300");
  }
  OneNode parts("SplitToSequence", 13, {300000});
  refused(parts.m, "has more than 262144 nodes");
}

TEST_CASE("Sizes that contradict each other", "[onnx]") {
  const auto split = [](int opset, std::vector<int64_t> shape, std::vector<int64_t> sizes, int outputs = 2) {
    auto m = model(opset);
    declare(m.mutable_graph()->add_input(), "x", std::move(shape));
    auto* n = node(m, "Split", {"x"}, {});
    for (int i = 0; i < outputs; ++i) {
      n->add_output("y" + std::to_string(i));
      m.mutable_graph()->add_output()->set_name("y" + std::to_string(i));
    }
    if (!sizes.empty()) {
      n->add_input("s");
      integers(m, "s", {static_cast<int64_t>(sizes.size())}, sizes);
    }
    return m;
  };
  refused(split(13, {4}, {-1, 5}), "a part of -1 elements");
  refused(split(13, {4}, {2, 1}), "the sizes sum to 3, the axis has 4 elements");
  refused(split(13, {7}, {}, 3), "the sizes sum to 6, the axis has 7 elements");
  {  // the extent is known when the model runs
    const auto g = import(split(13, {-1}, {2, 2}));
    REQUIRE(g.has_value());
    for (const int64_t extent : {4, 5}) {
      REQUIRE_OK(Tensor x, Tensor::make(kF32, {extent}));
      const Tensor in[] = {x};
      CHECK(run_graph(*g, in).has_value() == (extent == 4));
    }
  }
  {  // so are the sizes
    auto m = split(13, {4}, {});
    m.mutable_graph()->mutable_node(0)->add_input("s");
    declare(m.mutable_graph()->add_input(), "s", {2}, onnx::TensorProto::INT64);
    const auto g = import(m);
    REQUIRE(g.has_value());
    for (const int64_t second : {3, 2}) {
      REQUIRE_OK(Tensor x, Tensor::make(kF32, {4}));
      REQUIRE_OK(Tensor s, Tensor::make(kS64, {2}));
      s.set_int(0, 1);
      s.set_int(1, second);
      const Tensor in[] = {x, s};
      CHECK(run_graph(*g, in).has_value() == (second == 3));
    }
  }
  {  // a shape of the run
    OneNode t("Expand", 13, {3}, {"x", "s"});
    declare(t.m.mutable_graph()->add_input(), "s", {1}, onnx::TensorProto::INT64);
    const auto g = import(t.m);
    REQUIRE(g.has_value());
    for (const int64_t wanted : {3, 1, 2, 5}) {
      REQUIRE_OK(Tensor x, Tensor::make(kF32, {3}));
      REQUIRE_OK(Tensor s, Tensor::make(kS64, {1}));
      s.set_int(0, wanted);
      const Tensor in[] = {x, s};
      CHECK(run_graph(*g, in).has_value() == (wanted == 3 || wanted == 1));
    }
  }
  OneNode t("Slice", 13, {4, 4}, {"x", "s", "e", "a"});
  integers(t.m, "s", {2}, {1, 2});
  integers(t.m, "e", {2}, {3, 4});
  integers(t.m, "a", {2}, {0, -2});
  refused(t.m, "axis 0 is given twice");
}

TEST_CASE("An attribute that decides nothing is refused", "[onnx]") {
  {
    OneNode t("Relu", 13, {4});
    set_int(t.n, "foo", 3);
    refused(t.m, "attribute 'foo' is not supported here");
  }
  {
    OneNode t("Softmax", 13, {4});
    set_int(t.n, "axis", 0);
    set_int(t.n, "axis", 5);
    refused(t.m, "attribute 'axis' is given twice");
  }
  {
    OneNode t("ConvTranspose", 13, {1, 1, 4, 4}, {"x", "w"});
    initializer(t.m, "w", {1, 1, 3, 3}, std::vector<float>(9, 1));
    set_string(t.n, "auto_pad", "FOO");
    refused(t.m, "attribute 'auto_pad' is 'FOO'");
  }
  {
    OneNode t("BatchNormalization", 7, {1, 2, 2}, {"x", "s", "s", "s", "s"});
    initializer(t.m, "s", {2}, {1, 1});
    set_int(t.n, "spatial", 0);
    refused(t.m, "'spatial' is 0");
  }
  {
    OneNode t("RNN", 14, {3, 1, 2}, {"x", "w", "r"});
    initializer(t.m, "w", {1, 2, 2}, {1, 1, 1, 1});
    initializer(t.m, "r", {1, 2, 2}, {1, 1, 1, 1});
    set_int(t.n, "hidden_size", 5);
    refused(t.m, "'hidden_size' is 5");
  }
}

TEST_CASE("Names become text, and stay different", "[onnx]") {
  using onnx_frontend::clean_name;
  CHECK(clean_name("conv/Größe 1") == "conv/Größe 1");
  CHECK(clean_name("N\xff\xfeN") == "N\\xff\\xfeN");
  CHECK(clean_name(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(clean_name("\xc0\x80") == "\\xc0\\x80");           // longer than needed
  CHECK(clean_name("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half a pair
  CHECK(clean_name("a\\xff") == "a\\x5cxff");
  CHECK(clean_name("C:\\x") == "C:\\x");
  auto m = model();
  declare(m.mutable_graph()->add_input(), "x\xff", {4});
  node(m, "Relu", {"x\xff"}, {"y\xff"}, "n\xff");
  m.mutable_graph()->add_output()->set_name("y\xff");
  const auto g = import(m);
  REQUIRE(g.has_value());
  CHECK(g->output_names[0] == "y\\xff");
  CHECK(g->value(g->inputs[0]).name == "x\\xff");
  CHECK(g->node(0).locations[0] == "n\\xff");
}

TEST_CASE("Many inputs, integer Gemm, a row's batch norm, squares of no axes, Resize of opset 10", "[onnx]") {
  for (const char* op : {"Sum", "Concat", "Max", "Mean"}) {
    OneNode t(op, 13, {2}, std::vector<std::string>(3000, "x"));
    if (op == std::string("Concat")) set_int(t.n, "axis", 0);
    const auto y = elements(run(t.m, {1, 2}));
    CHECK(y.size() == (op == std::string("Concat") ? 6000 : 2));
    CHECK(y.back() == (op == std::string("Sum") ? 6000 : 2));
  }
  {
    OneNode t("Gemm", 13, {2, 2}, {"x", "w", "c"}, onnx::TensorProto::INT32);
    integers(t.m, "w", {2, 2}, {1, 2, 3, 4}, onnx::TensorProto::INT32);
    integers(t.m, "c", {2}, {10, 20}, onnx::TensorProto::INT32);
    set_int(t.n, "transB", 1);
    CHECK(elements(run(t.m, {1, 1, 2, 2})) == std::vector<double>{13, 27, 16, 34});
    set_float(t.n, "alpha", 0.5);
    refused(t.m, "alpha and beta must be 1");
  }
  {
    OneNode t("BatchNormalization", 13, {3}, {"x", "s", "b", "m", "v"});
    for (const char* name : {"s", "v"}) initializer(t.m, name, {1}, {1});
    for (const char* name : {"b", "m"}) initializer(t.m, name, {1}, {2});
    set_float(t.n, "epsilon", 0);
    CHECK(elements(run(t.m, {1, 5, 7})) == std::vector<double>{1, 5, 7});
  }
  {
    OneNode t("ReduceSumSquare", 18, {2});
    set_int(t.n, "noop_with_empty_axes", 1);
    CHECK(elements(run(t.m, {3, -4})) == std::vector<double>{9, 16});
    t.n->set_op_type("ReduceSum");
    CHECK(elements(run(t.m, {3, -4})) == std::vector<double>{3, -4});
  }
  {  // along an axis that shrinks, the element above
    OneNode t("Resize", 10, {1, 1, 1, 5}, {"x", "s"});
    initializer(t.m, "s", {4}, {1, 1, 2, 0.6F});
    CHECK(elements(run(t.m, {0, 1, 2, 3, 4})) == std::vector<double>{0, 2, 4, 0, 2, 4});
  }
}
