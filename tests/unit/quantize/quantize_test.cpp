// Small float networks become 8 bits, and the machine's integers.
#include "dlc/quantize/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "dlc/graph/read.h"
#include "dlc/hw/load.h"
#include "dlc/numerics/commit.h"
#include "dlc_test/graph_text.h"

using namespace dlc;
using dlc_test::noise;
using dlc_test::parsed;

namespace {

using Samples = std::vector<std::vector<Tensor>>;

Graph with_weights(const std::string& body) {
  const std::string text = "dlc.graph 1\ngraph @g {\n" + body + "}\n";
  uint32_t seed = 0;
  REQUIRE_OK(Graph g, GraphReader{.file = "test",
                                  .weights = [&](std::string_view, const TensorType& type) -> std::optional<Tensor> {
                                    std::vector<int64_t> shape;
                                    for (const Expr& e : type.shape) shape.push_back(*e.constant());
                                    return noise(shape, ++seed);
                                  }}
                          .read(text));
  return g;
}

// Convolutions that are padded, a residual, a pool, a concat, a mean, a product.
Graph network() {
  return with_weights(R"(
  in %x: f32[1,3,8,8]
  const @w1: f32[16,3,3,3]
  const @b1: f32[16]
  const @w2: f32[16,16,1,1]
  const @w3: f32[10,32]
  const @b3: f32[10]
  %a: f32[1,16,8,8] = conv(%x, @w1, @b1) {pad_lo = [1, 1], pad_hi = [1, 1]} loc "first"
  %b: f32[1,16,8,8] = relu(%a) loc "first_relu"
  %c: f32[1,16,8,8] = conv(%b, @w2) loc "second"
  %d: f32[1,16,8,8] = add(%b, %c) loc "residual"
  %e: f32[1,16,8,8] = relu(%d) loc "residual_relu"
  %f: f32[1,16,4,4] = max_pool(%e) {kernel = [2, 2], stride = [2, 2]} loc "pool"
  %g: f32[1,16,4,4] = sigmoid(%f) loc "gate"
  %h: f32[1,32,4,4] = concat(%f, %g) {axis = 1} loc "both"
  %i: f32[1,32,1,1] = reduce_mean(%h) {axes = [2, 3], keepdims = 1} loc "mean"
  %j: f32[1,32] = reshape(%i) {shape = [1, 32]} loc "flat"
  %k: f32[1,10] = gemm(%j, @w3, @b3) {trans_b = 1} loc "logits"
  out %k "y"
)");
}

Samples samples(const std::vector<int64_t>& shape, uint32_t n) {
  Samples out;
  for (uint32_t i = 0; i < n; ++i) out.push_back({noise(shape, 100 + i)});
  return out;
}

const LayerQuality& layer(const QuantizeReport& r, const std::string& name) {
  const auto it = std::ranges::find(r.layers, name, &LayerQuality::name);
  REQUIRE(it != r.layers.end());
  return *it;
}

}  // namespace

TEST_CASE("a network is quantised, layer by layer as it should be") {
  const Graph g = network();
  for (const RangeMethod method : {RangeMethod::min_max, RangeMethod::percentile, RangeMethod::mse}) {
    REQUIRE_OK(const Quantization q, quantize(g, samples({1, 3, 8, 8}, 8), {.method = method}));
    CHECK(q.report.layers.size() == 7);  // the pool and the reshape move elements alone
    for (const LayerQuality& l : q.report.layers) {
      INFO(l.name);
      CHECK(l.quantised);
      CHECK(l.sqnr > 30);
      CHECK(l.cumulative > 25);
      CHECK(l.cumulative < kExact);
      CHECK(l.saturated < 0.01);
      CHECK(l.worst_channel >= 0);
      CHECK(l.worst_channel_sqnr <= l.sqnr + 1e-9);
    }
    REQUIRE(q.report.outputs.size() == 1);
    CHECK(q.report.outputs[0].sqnr > 25);
    CHECK(q.graph.inputs.size() == 1);
    CHECK(q.graph.output_names == std::vector<std::string>{"y"});
  }
}

TEST_CASE("the accelerator's integers take all of it") {
  const Graph g = network();
  REQUIRE_OK(const Quantization q, quantize(g, samples({1, 3, 8, 8}, 4)));
  Graph committed = q.graph;
  REQUIRE_OK(const HwDescription hw, load_hw(DLC_SOURCE_DIR "/hwdesc/asic.yaml"));
  REQUIRE_OK(auto recipes, load_recipes(hw));
  REQUIRE_OK(const NumericsReport report, commit_numerics(committed, recipes));
  for (const auto& k : report.kept) CHECK(k.op == "");
  const auto in = samples({1, 3, 8, 8}, 1)[0];
  REQUIRE_OK(const auto want, run_graph(q.graph, in));
  REQUIRE_OK(const auto got, run_graph(committed, in));
  const double step = layer(q.report, "logits").scale;
  for (int64_t i = 0; i < 10; ++i) CHECK(std::abs(want[0].get_double(i) - got[0].get_double(i)) <= 1.01 * step);
}

TEST_CASE("padding is exact: a convolution of zeros is its bias") {
  const Graph g = with_weights(R"(
  in %x: f32[1,2,5,5]
  const @w: f32[4,2,3,3]
  %a: f32[1,4,5,5] = conv(%x, @w) {pad_lo = [1, 1], pad_hi = [1, 1]} loc "conv"
  out %a "y"
)");
  Samples s = samples({1, 2, 5, 5}, 3);
  for (auto& one : s)
    for (float& x : one[0].as_mutable<float>()) x = x * 0.2F + 0.5F;  // the zero point is far from the middle
  REQUIRE_OK(const Quantization q, quantize(g, s, {.correct_bias = false}));
  REQUIRE_OK(const Tensor zeros, Tensor::make(kF32, {1, 2, 5, 5}));
  REQUIRE_OK(const auto y, run_graph(q.graph, std::span(&zeros, 1)));
  for (const float v : y[0].as<float>()) CHECK(v == 0);
}

TEST_CASE("every channel of a weight has its own scale") {
  Graph g = with_weights(R"(
  in %x: f32[1,8,4,4]
  const @w: f32[8,8,1,1]
  %a: f32[1,8,4,4] = conv(%x, @w) loc "conv"
  out %a "y"
)");
  const ValueId w = g.find("w");
  Tensor t = *g.value(w).constant;
  for (int64_t i = 0; i < t.elements(); ++i)
    t.set_double(i, t.get_double(i) * std::pow(4.0, static_cast<double>(i / 8) - 7));
  g.value(w).constant = t;
  REQUIRE_OK(const Quantization q, quantize(g, samples({1, 8, 4, 4}, 4)));
  for (const NodeId n : q.graph.order()) {
    const Node& node = q.graph.node(n);
    if (node.op != "dequantize_linear" || !q.graph.value(node.inputs[0]).constant) continue;
    const Tensor& scales = *q.graph.value(node.inputs[1]).constant;
    REQUIRE(scales.elements() == 8);
    CHECK(scales.get_double(7) > 1000 * scales.get_double(0));
  }
}

TEST_CASE("a bias takes back the mean of the error") {
  const Graph g = with_weights(R"(
  in %x: f32[1,4,6,6]
  const @w: f32[8,4,3,3]
  const @b: f32[8]
  %a: f32[1,8,4,4] = conv(%x, @w, @b) loc "conv"
  out %a "y"
)");
  Samples s = samples({1, 4, 6, 6}, 6);
  for (auto& one : s)  // steps of weights matter most where inputs have a mean
    for (float& x : one[0].as_mutable<float>()) x += 3;
  const auto mean_error = [&](bool correct) {
    REQUIRE_OK(const Quantization q, quantize(g, s, {.method = RangeMethod::min_max, .correct_bias = correct}));
    std::vector<double> sum(8, 0.0);
    for (const auto& one : s) {
      REQUIRE_OK(const auto want, run_graph(g, one));
      REQUIRE_OK(const auto got, run_graph(q.graph, one));
      for (int64_t i = 0; i < want[0].elements(); ++i)
        sum[static_cast<size_t>(i / 16)] += want[0].get_double(i) - got[0].get_double(i);
    }
    double worst = 0;
    for (const double x : sum) worst = std::max(worst, std::abs(x) / (16.0 * 6));
    return worst;
  };
  CHECK(mean_error(true) < 0.5 * mean_error(false));
}

TEST_CASE("operands of a concat share a scale where their ranges are alike") {
  const auto scales = [](const std::string& second) {
    const Graph g = parsed("in %x: f32[1,2,4,4]\n%a: f32[1,2,4,4] = relu(%x) loc \"a\"\n%b: f32[1,2,4,4] = " + second +
                           "(%x) loc \"b\"\n%c: f32[1,4,4,4] = concat(%a, %b) {axis = 1} loc \"c\"\nout %c \"y\"\n");
    Samples s = samples({1, 2, 4, 4}, 4);
    for (auto& one : s)
      for (float& x : one[0].as_mutable<float>()) x *= 8;
    REQUIRE_OK(const Quantization q, quantize(g, s, {.method = RangeMethod::min_max}));
    return std::array{layer(q.report, "a").scale, layer(q.report, "b").scale, layer(q.report, "c").scale};
  };
  const auto alike = scales("softplus");
  CHECK(alike[0] == alike[2]);
  CHECK(alike[1] == alike[2]);
  const auto apart = scales("sigmoid");
  CHECK(apart[0] == apart[2]);
  CHECK(apart[1] < 0.2 * apart[2]);
}

TEST_CASE("layers stay in float when they are asked to or are too bad") {
  const Graph g = network();
  REQUIRE_OK(const Quantization asked,
             quantize(g, samples({1, 3, 8, 8}, 2), {.keep = {{"second", "it was asked to"}}}));
  CHECK_FALSE(layer(asked.report, "second").quantised);
  CHECK(layer(asked.report, "second").why == "it was asked to");
  CHECK(layer(asked.report, "first").quantised);
  REQUIRE_OK(const Quantization all, quantize(g, samples({1, 3, 8, 8}, 2)));
  std::vector<double> sqnr;
  for (const LayerQuality& l : all.report.layers) sqnr.push_back(l.sqnr);
  std::ranges::sort(sqnr);
  const double between = (sqnr[0] + sqnr[1]) / 2;
  REQUIRE_OK(const Quantization best, quantize(g, samples({1, 3, 8, 8}, 2), {.min_sqnr = between}));
  CHECK(std::ranges::count(best.report.layers, false, &LayerQuality::quantised) >= 1);
  for (const LayerQuality& l : best.report.layers) CHECK((l.quantised || l.why.find("less than") != std::string::npos));
  for (const LayerQuality& l : best.report.layers) CHECK((!l.quantised || l.sqnr >= between));
}

TEST_CASE("what cannot be quantised says why") {
  const Graph g = network();
  const auto message = [](const Result<Quantization>& r) { return r ? std::string("none") : to_string(r.error()); };
  CHECK_THAT(message(quantize(g, {})), Catch::Matchers::Contains("no samples"));
  CHECK_THAT(message(quantize(g, samples({1, 3, 8, 8}, 1), {.keep = {{"frist", ""}}})),
             Catch::Matchers::Contains("did you mean 'first'"));
  REQUIRE_OK(const Quantization q, quantize(g, samples({1, 3, 8, 8}, 1)));
  CHECK_THAT(message(quantize(q.graph, samples({1, 3, 8, 8}, 1))), Catch::Matchers::Contains("quantised already"));
  CHECK_THAT(message(quantize(g, samples({1, 3, 8, 8}, 1), {.min_sqnr = 99})),
             Catch::Matchers::Contains("nothing of this model can be quantised"));
  CHECK_THAT(
      message(quantize(parsed("in %x: f32[2,3]\n%a: f32[2,3] = softmax(%x)\nout %a \"y\"\n"), samples({2, 3}, 1))),
      Catch::Matchers::Contains("nothing of this model"));
}

TEST_CASE("what is not finite is no number to quantise") {
  const auto message = [](const Result<Quantization>& r) { return r ? std::string("none") : to_string(r.error()); };
  const Graph g = network();
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    Samples s = samples({1, 3, 8, 8}, 3);
    s[2][0].as_mutable<float>()[65] = bad;
    const std::string said = message(quantize(g, s, {.min_sqnr = -100, .samples_from = "c.npz"}));
    CHECK_THAT(said, Catch::Matchers::Contains("c.npz: error: sample 2: input 'x' is "));
    CHECK_THAT(said, Catch::Matchers::Contains(" at [0,1,0,1]"));
    CHECK_THAT(message(quantize(g, s, {.sample_numbers = {0, 3, 6}})), Catch::Matchers::Contains("sample 6: input"));
    for (const char* constant : {"w1", "b3"}) {
      Graph spoilt = network();
      Tensor t = *spoilt.value(spoilt.find(constant)).constant;
      t.set_double(1, static_cast<double>(bad));
      spoilt.value(spoilt.find(constant)).constant = t;
      CHECK_THAT(message(quantize(spoilt, samples({1, 3, 8, 8}, 1))),
                 Catch::Matchers::Contains("its constant '" + std::string(constant) + "' is "));
    }
  }
  // A clip hides what its convolution makes; exp has an infinity for numbers.
  const Graph steep = with_weights(
      "in %x: f32[1,4]\nconst @w: f32[4,4]\n%a: f32[1,4] = matmul(%x, @w) loc \"mm\"\n"
      "%b: f32[1,4] = relu(%a) loc \"cut\"\n%c: f32[1,4] = exp(%b) loc \"steep\"\nout %c \"y\"\n");
  Samples s = samples({1, 4}, 2);
  for (float& x : s[1][0].as_mutable<float>()) x *= 1e4F;
  CHECK_THAT(message(quantize(steep, s)), Catch::Matchers::Contains("sample 1: the result of 'steep' is inf at [0,"));
  // Left in float, it is no more than what the whole is measured by.
  REQUIRE_OK(const Quantization q, quantize(steep, s, {.keep = {{"steep", "asked"}}}));
  CHECK(q.report.outputs[0].sqnr < kExact);
  // Nothing at all to measure is not exact.
  CHECK_THAT(message(quantize(parsed("in %x: f32[0,4]\n%a: f32[0,4] = sigmoid(%x) loc \"a\"\nout %a \"y\"\n"),
                              samples({0, 4}, 2))),
             Catch::Matchers::Contains("no sample has a finite result"));
}

TEST_CASE("an error is never exact, however large the signal") {
  Graph g = with_weights(
      "in %x: f32[1,2,4,4]\nconst @w: f32[2,2,1,1]\nconst @b: f32[2]\n"
      "%a: f32[1,2,4,4] = conv(%x, @w, @b) loc \"conv\"\nout %a \"y\"\n");
  Tensor b = *g.value(g.find("b")).constant;
  b.set_double(0, 1e38);
  g.value(g.find("b")).constant = b;
  REQUIRE_OK(const Quantization q, quantize(g, samples({1, 2, 4, 4}, 2)));
  CHECK(layer(q.report, "conv").sqnr < kExact);
  CHECK(q.report.outputs[0].sqnr < kExact);
  CHECK(layer(q.report, "conv").worst_channel == 1);
  CHECK(layer(q.report, "conv").worst_channel_sqnr < 1);
}

TEST_CASE("only what is a layer by itself can be kept") {
  const auto message = [](const Result<Quantization>& r) { return r ? std::string("none") : to_string(r.error()); };
  const auto kept = [&](const std::string& node) {
    return message(quantize(network(), samples({1, 3, 8, 8}, 1), {.keep = {{node, "asked"}}}));
  };
  CHECK_THAT(kept("first_relu"), Catch::Matchers::Contains("'first_relu' is part of the layer 'first'"));
  CHECK_THAT(kept("pool"), Catch::Matchers::Contains("'pool' only moves or selects"));
  CHECK_THAT(kept("flat"), Catch::Matchers::Contains("'flat' only moves or selects"));
  CHECK(kept("logits") == "none");
}

TEST_CASE("the same samples give the same graph") {
  const Graph g = network();
  REQUIRE_OK(const Quantization a, quantize(g, samples({1, 3, 8, 8}, 3)));
  REQUIRE_OK(const Quantization b, quantize(g, samples({1, 3, 8, 8}, 3)));
  CHECK(print(a.graph) == print(b.graph));
}
