// What is committed computes what the float graph says; what could not is left in float, with the reason.
#include "dlc/numerics/commit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "dlc/hw/load.h"
#include "dlc/io/file.h"
#include "dlc_test/catch.h"

using namespace dlc;
using Catch::Matchers::Contains;

namespace {

std::shared_ptr<const RecordSet> recipes() {
  REQUIRE_OK(const HwDescription hw, load_hw(DLC_SOURCE_DIR "/hwdesc/asic.yaml"));
  REQUIRE_OK(auto r, load_recipes(hw));
  return r;
}

struct Committed {
  size_t layers = 0;
  std::string why;  // of the first node that stays in float
};

// `body` is graph text over the input %x of the given type, which leaves its result in %y. With `run`, both graphs
// compute the same integers, but for one unit of rounding.
Committed commit(const std::string& input, const std::string& body, std::shared_ptr<const RecordSet> records = {},
                 bool run = true) {
  const std::string text = "dlc.graph 1\ngraph @g {\n  in %x: " + input + "\n" + body + "\n  out %y \"y\"\n}\n";
  INFO(text);
  if (!records) records = recipes();
  REQUIRE_OK(Graph g, parse_graph(text));
  Graph committed = g;
  REQUIRE_OK(const NumericsReport report, commit_numerics(committed, records));
  Committed out{report.committed.size(), report.kept.empty() ? "" : report.kept[0].why};
  if (!run) return out;
  std::mt19937_64 random(1);
  std::vector<int64_t> shape;
  for (const Expr& e : g.value(g.inputs[0]).type.shape) shape.push_back(*e.constant());
  REQUIRE_OK(Tensor x, Tensor::make(kS8, shape));
  for (int64_t i = 0; i < x.elements(); ++i) x.set_int(i, static_cast<int64_t>(random() % 256) - 128);
  const std::vector<Tensor> inputs{x};
  REQUIRE_OK(const auto expected, run_graph(g, inputs));
  REQUIRE_OK(const auto got, run_graph(committed, inputs));
  for (int64_t i = 0; i < expected[0].elements(); ++i) CHECK(std::abs(expected[0].get_int(i) - got[0].get_int(i)) <= 1);
  return out;
}

// dequantize_linear, `op` and quantize_linear around %x.
std::string quantised(const std::string& in_type, const std::string& out_type, const std::string& op,
                      const std::string& scale = "0.25") {
  return fmt::format(R"(  const @s: f32[] = {3}
  const @z: s8[] = 0
  %xf: f32[{0}] = dequantize_linear(%x, @s, @z)
  %yf: f32[{1}] = {2} loc "n"
  %y: s8[{1}] = quantize_linear(%yf, @s, @z))",
                     in_type, out_type, op, scale);
}

std::string product(const std::string& bias_type, const std::string& bias, int64_t depth = 4,
                    const std::string& weight = "1", const std::string& rows = "4") {
  return fmt::format("  const @w: s8[{},4] = {}\n  const @b: f32[{}] = {}\n  const @ws: f32[] = 0.25\n", depth, weight,
                     bias_type, bias) +
         "  %wf: f32[" + std::to_string(depth) + ",4] = dequantize_linear(@w, @ws)\n" +
         quantised(fmt::format("{},{}", rows, depth), rows + ",4", "gemm(%xf, %wf, @b)");
}

}  // namespace

TEST_CASE("a bias is per column, or it is one number") {
  for (const auto& [type, values] : {std::pair("4", "[0, 2, 4, 6]"), std::pair("1,4", "[0, 2, 4, 6]"),
                                     std::pair("1", "2"), std::pair("1,1", "2"), std::pair("", "2")})
    CHECK(commit("s8[4,4]", product(type, values)).layers == 1);
  for (const auto& [type, values] : {std::pair("4,1", "[0, 2, 4, 6]"), std::pair("4,4", "2")}) {
    const Committed c = commit("s8[4,4]", product(type, values));
    CHECK(c.layers == 0);
    CHECK_THAT(c.why, Contains("the bias is not a constant per column"));
  }
}

TEST_CASE("what a recipe does not take stays in float") {
  const Committed c = commit("s8[1,4,0]", R"(  const @s: f32[] = 0.25
  const @z: s8[] = 0
  %xf: f32[1,4,0] = dequantize_linear(%x, @s, @z)
  %t: f32[1,0,4] = transpose(%xf) {perm = [0, 2, 1]}
  %yf: f32[1,4,4] = matmul(%xf, %t) loc "n"
  %y: s8[1,4,4] = quantize_linear(%yf, @s, @z))");
  CHECK(c.layers == 0);
  CHECK_THAT(c.why, Contains("the machine's recipe does not take it: scores: attribute depth = 0"));
}

TEST_CASE("no accumulator wraps, or the node stays in float") {
  // The accumulator's unit is 0.25 * 0.25; four weights of 1 add up to 512.
  const auto bias = [](int64_t units) { return fmt::format("{}", static_cast<double>(units) / 16); };
  const int64_t limit = int64_t{1} << 31;
  for (const int64_t sign : {1, -1}) {
    CHECK(commit("s8[4,4]", product("4", bias(sign * (limit - 4096)))).layers == 1);
    const Committed c = commit("s8[4,4]", product("4", bias(sign * (limit - 256))));
    CHECK(c.layers == 0);
    CHECK_THAT(c.why, Contains("channel 0: |bias| + sum of |weight| * 128 is 2147483904") && Contains("may wrap"));
  }
  // By its depth: 132104 * 127 * 128 is just below 2^31.
  CHECK(commit("s8[1,132104]", product("4", "0", 132104, "127", "1"), {}, false).layers == 1);
  CHECK_THAT(commit("s8[1,132105]", product("4", "0", 132105, "-127", "1"), {}, false).why, Contains("may wrap"));

  const auto conv = [&](int64_t units) {
    return fmt::format(
               "  const @w: s8[2,4,1,1] = [1, 1, 1, 1, 2, 2, 2, 2]\n  const @b: f32[2] = {}\n"
               "  const @ws: f32[] = 0.25\n  %wf: f32[2,4,1,1] = dequantize_linear(@w, @ws)\n",
               bias(units)) +
           quantised("1,4,3,3", "1,2,3,3", "conv(%xf, %wf, @b)");
  };
  CHECK(commit("s8[1,4,3,3]", conv(limit - 4096)).layers == 1);
  CHECK_THAT(commit("s8[1,4,3,3]", conv(limit - 1024)).why, Contains("channel 1: "));

  const auto pool = [](int64_t size) {
    return quantised(fmt::format("1,1,{0},{0}", size), "1,1,1,1",
                     fmt::format("avg_pool(%xf) {{kernel = [{0}, {0}]}}", size));
  };
  CHECK(commit("s8[1,1,4000,4000]", pool(4000), {}, false).layers == 1);
  CHECK_THAT(commit("s8[1,1,5000,5000]", pool(5000), {}, false).why, Contains("may wrap"));
}

TEST_CASE("only a positive scale keeps the order") {
  const auto pool = [](const char* scale) {
    return quantised("1,2,4,4", "1,2,2,2", "max_pool(%xf) {kernel = [2, 2], stride = [2, 2]}", scale);
  };
  CHECK(commit("s8[1,2,4,4]", pool("0.05")).why.empty());
  CHECK_THAT(commit("s8[1,2,4,4]", pool("-0.05")).why, Contains("positive constant scale"));
  // Only one of the two is negative.
  const std::string above = R"(  const @s: f32[] = 0.05
  const @t: f32[] = -0.05
  %xf: f32[1,2,4,4] = dequantize_linear(%x, @s)
  %yf: f32[1,2,2,2] = max_pool(%xf) {kernel = [2, 2], stride = [2, 2]}
  %y: s8[1,2,2,2] = quantize_linear(%yf, @t) {to: s8})";
  commit("s8[1,2,4,4]", above);
}

TEST_CASE("a transposed convolution of any stride and padding is one of integers") {
  for (const char* attrs :
       {"stride = [2, 2]", "stride = [2, 2], pad_lo = [1, 1], pad_hi = [1, 1]",
        "stride = [3, 2], pad_lo = [2, 0], pad_hi = [0, 1], out_pad = [1, 0]", "pad_lo = [1, 2], pad_hi = [2, 1]"}) {
    const Committed c = commit("s8[1,3,4,5]", fmt::format(R"(  const @w: s8[3,2,3,3] = 7
  const @s: f32[] = 0.25
  const @z: s8[] = 3
  const @ws: f32[] = 0.01
  const @wz: s8[] = 0
  %xf: f32[1,3,4,5] = dequantize_linear(%x, @s, @z)
  %wf: f32[3,2,3,3] = dequantize_linear(@w, @ws, @wz)
  %yf: f32[1,2,{1}] = conv_transpose(%xf, %wf) {{{0}}}
  %y: s8[1,2,{1}] = quantize_linear(%yf, @s, @z) {{to: s8}})",
                                                          attrs,
                                                          std::string(attrs).starts_with("stride = [2, 2], pad") ? "7,9"
                                                          : std::string(attrs).starts_with("stride = [2, 2]") ? "9,11"
                                                          : std::string(attrs).starts_with("stride = [3")     ? "11,10"
                                                                                                              : "3,4"));
    CHECK(c.layers == 1);
  }
}

TEST_CASE("one element for a whole map is repeated, one for all channels is not") {
  const auto product = [](const char* other) {
    return commit("s8[1,16,4,5]", fmt::format(R"(  const @s: f32[] = 0.25
  const @z: s8[] = 3
  %xf: f32[1,16,4,5] = dequantize_linear(%x, @s, @z)
  %m: f32[1,{0}] = reduce_max(%xf) {{axes = [{1}], keepdims = 1}}
  %mq: s8[1,{0}] = quantize_linear(%m, @s, @z) {{to: s8}}
  %mf: f32[1,{0}] = dequantize_linear(%mq, @s, @z)
  %yf: f32[1,16,4,5] = mul(%xf, %mf)
  %y: s8[1,16,4,5] = quantize_linear(%yf, @s, @z) {{to: s8}})",
                                              other, std::string(other) == "16,1,1" ? "2, 3" : "1"));
  };
  CHECK(product("16,1,1").why.empty());
  CHECK_THAT(product("1,4,5").why, Contains("broadcast along its channels"));
}

TEST_CASE("softmax follows what the machine's reciprocal is of") {
  REQUIRE_OK(const HwDescription hw, load_hw(DLC_SOURCE_DIR "/hwdesc/asic.yaml"));
  REQUIRE_OK(const RecordSet defs, RecordSet::parse(hw.defs_text, hw.file, &RecordSet::builtin()));
  REQUIRE_OK(const MappedFile file, map_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  const auto commit_with = [&](const std::string& reciprocal) {
    std::string text(file.text());
    const std::string own = "recip(Sum[b, m])";
    text.replace(text.find(own), own.size(), reciprocal);
    REQUIRE_OK(RecordSet all, RecordSet::parse(text, "changed.recipes", &defs));
    return commit("s8[1,6,8]", quantised("1,6,8", "1,6,8", "softmax(%xf)", "0.02"),
                  std::make_shared<const RecordSet>(std::move(all)));
  };
  CHECK(commit_with("recip(Sum[b, m])").layers == 1);
  CHECK(commit_with("(recip(Sum[b, m]) >> 8)").layers == 1);
  CHECK(commit_with("(recip(Sum[b, m]) << 3)").layers == 1);
}

TEST_CASE("a table is of a function of the value alone") {
  CHECK(commit("s8[3,3]", quantised("3,3", "3,3", "sigmoid(%xf)", "0.01")).layers == 1);
  CHECK_THAT(commit("s8[3,3]", quantised("3,3", "3,3", "trilu(%xf)")).why, Contains("place in the tensor"));

  REQUIRE_OK(const HwDescription hw, load_hw(DLC_SOURCE_DIR "/hwdesc/asic.yaml"));
  REQUIRE_OK(RecordSet more, RecordSet::parse(R"(op ramp(X[i]) -> Y[i] { Y[i] = X[i] + cast(i, f32) }
op share(X[i]) -> Y[i] { Y[i] = X[i] / |i| }
op first(X[i]) -> Y[i] { Y[i] = -X[0] }
op odd(X[i]) -> Y[i] { require i % 2 == 1  Y[i] = -X[i] }
op three(X[i]) -> Y[o = 3] { require i >= 3  Y[o] = -X[o] }
)",
                                              "more.ops", recipes().get()));
  const auto records = std::make_shared<const RecordSet>(std::move(more));
  for (const auto& [op, why] : {std::pair("ramp", "place in the tensor"), std::pair("share", "size of the tensor"),
                                std::pair("first", "not element-wise"), std::pair("odd", "list of values"),
                                std::pair("three", "size of its own")}) {
    INFO(op);
    Graph g;
    g.records = records;
    REQUIRE_OK(Tensor one, Tensor::make(kF32, {}));
    one.set_double(0, 0.25);
    const ValueId x = g.add_input("x", {kS8, {Expr(3)}});
    const ValueId s = g.add_constant("s", one);
    REQUIRE_OK(const NodeId d, g.add_node("dequantize_linear", {x, s}, {{"axis", Expr(0)}}, {}));
    REQUIRE_OK(const NodeId n, g.add_node(op, {g.node(d).outputs[0]}, {}, {"n"}));
    REQUIRE_OK(const NodeId q,
               g.add_node("quantize_linear", {g.node(n).outputs[0], s}, {{"axis", Expr(0)}, {"to", kS8}}, {"q"}));
    g.outputs = g.node(q).outputs;
    g.output_names = {"y"};
    REQUIRE_OK(const NumericsReport report, commit_numerics(g, records));
    CHECK(report.committed.empty());
    REQUIRE(report.kept.size() == 1);
    CHECK_THAT(report.kept[0].why, Contains(why));
  }
}

namespace {

// Attention over 5 places of 2 heads of 4 channels, out of one projection; `middle` goes between scores and values.
std::string attention(const std::string& middle) {
  std::vector<int> w(8 * 24), b(24);
  for (int i = 0; i < 8 * 24; ++i) w[static_cast<size_t>(i)] = i * 7 % 23 - 11;
  for (int i = 0; i < 24; ++i) b[static_cast<size_t>(i)] = i % 5 - 2;
  return fmt::format("  const @w: s8[8,24] = [{}]\n  const @b: f32[24] = [{}]\n", fmt::join(w, ", "),
                     fmt::join(b, ", ")) +
         R"(  const @s: f32[] = 0.05
  const @z: s8[] = 3
  const @t: f32[] = 0.06
  const @yz: s8[] = -9
  const @half: f32[] = 0.5
  const @th: f32[] = 0.03
  const @ws: f32[] = 0.02
  const @zero: s64[] = 0
  const @one: s64[] = 1
  const @two: s64[] = 2
  %xf: f32[1,5,8] = dequantize_linear(%x, @s, @z)
  %wf: f32[8,24] = dequantize_linear(@w, @ws)
  %p: f32[1,5,24] = matmul(%xf, %wf) loc "p"
  %pb: f32[1,5,24] = add(%p, @b) loc "pb"
  %pq: s8[1,5,24] = quantize_linear(%pb, @t, @yz)
  %pf: f32[1,5,24] = dequantize_linear(%pq, @t, @yz)
  %r: f32[1,5,3,2,4] = reshape(%pf) {shape = [1, 5, 3, 2, 4]}
  %m: f32[3,1,2,5,4] = transpose(%r) {perm = [2, 0, 3, 1, 4]}
  %q: f32[1,2,5,4] = gather(%m, @zero) {axis = 0}
  %k: f32[1,2,5,4] = gather(%m, @one) {axis = 0}
  %v: f32[1,2,5,4] = gather(%m, @two) {axis = 0}
  %kt: f32[1,2,4,5] = transpose(%k) {perm = [0, 1, 3, 2]}
  %qh: f32[1,2,5,4] = mul(%q, @half)
  %qq: s8[1,2,5,4] = quantize_linear(%qh, @th, @yz)
  %qf: f32[1,2,5,4] = dequantize_linear(%qq, @th, @yz)
  %a: f32[1,2,5,5] = matmul(%qf, %kt) loc "scores"
  %aq: s8[1,2,5,5] = quantize_linear(%a, @s, @z)
  %af: f32[1,2,5,5] = dequantize_linear(%aq, @s, @z)
)" + middle;
}

}  // namespace

TEST_CASE("attention on the columns of one tensor") {
  const std::string body = attention(R"(  %o: f32[1,2,5,4] = matmul(%af, %v) loc "mix"
  %oq: s8[1,2,5,4] = quantize_linear(%o, @s, @z)
  %of: f32[1,2,5,4] = dequantize_linear(%oq, @s, @z)
  %ot: f32[1,5,2,4] = transpose(%of) {perm = [0, 2, 1, 3]}
  %or: f32[1,5,8] = reshape(%ot) {shape = [1, 5, 8]}
  %y: s8[1,5,8] = quantize_linear(%or, @s, @z))");
  const Committed c = commit("s8[1,5,8]", body);
  CHECK(c.why == "");
}

TEST_CASE("a function that is rounded on its way is one table") {
  // x / 1.4 -> erf -> + 1 -> * x -> * 0.5, each rounded: the exporter's GELU. Another rounding is no other function.
  const std::string body = R"(  const @s: f32[] = 0.03
  const @z: s8[] = -7
  const @t: f32[] = 0.02
  const @yz: s8[] = -40
  const @root: f32[] = 1.4
  const @one: s8[1] = [100]
  const @h: f32[] = 0.01
  const @half: f32[] = 0.5
  %xf: f32[3,40] = dequantize_linear(%x, @s, @z)
  %d: f32[3,40] = div(%xf, @root)
  %e: f32[3,40] = erf(%d) loc "erf"
  %eq: s8[3,40] = quantize_linear(%e, @h, @z)
  %ef: f32[3,40] = dequantize_linear(%eq, @h, @z)
  %onef: f32[1] = dequantize_linear(@one, @h) {axis = 0}
  %a: f32[3,40] = add(%ef, %onef)
  %aq: s8[3,40] = quantize_linear(%a, @t, @yz)
  %af: f32[3,40] = dequantize_linear(%aq, @t, @yz)
  %m: f32[3,40] = mul(%xf, %af)
  %mq: s8[3,40] = quantize_linear(%m, @s, @z)
  %mf: f32[3,40] = dequantize_linear(%mq, @s, @z)
  %g: f32[3,40] = mul(%mf, @half) loc "gelu"
  %y: s8[3,40] = quantize_linear(%g, @t, @yz))";
  const Committed c = commit("s8[3,40]", body, {}, false);
  CHECK(c.layers == 1);
  REQUIRE_OK(Graph g, parse_graph("dlc.graph 1\ngraph @g {\n  in %x: s8[3,40]\n" + body + "\n  out %y \"y\"\n}\n"));
  REQUIRE_OK(const NumericsReport report, commit_numerics(g, recipes()));
  CHECK(g.order().size() == 1);
  REQUIRE_OK(Tensor x, Tensor::make(kS8, {3, 40}));
  for (int64_t i = 0; i < 120; ++i) x.set_int(i, i * 2 - 120);
  const std::vector<Tensor> inputs{x};
  REQUIRE_OK(const auto y, run_graph(g, inputs));
  for (int64_t i = 0; i < 120; ++i) {
    const double v = 0.03 * static_cast<double>(i * 2 - 120 + 7);
    const double gelu = 0.5 * v * (1 + std::erf(v / 1.4));
    CHECK(y[0].get_int(i) == std::clamp(std::nearbyint(gelu / 0.02) - 40, -128.0, 127.0));
  }
}

TEST_CASE("softmax in integers is within two units of the float one, and mostly nearer") {
  std::mt19937_64 random(5);
  for (const double scale : {0.02, 0.1, 0.4})
    for (const int64_t row : {4, 50, 197}) {
      INFO("scale " << scale << ", row " << row);
      const std::string body = fmt::format(R"(  const @s: f32[] = {0}
  const @z: s8[] = 7
  const @t: f32[] = 0.00392
  const @yz: s8[] = -128
  %xf: f32[1,6,{1}] = dequantize_linear(%x, @s, @z)
  %p: f32[1,6,{1}] = softmax(%xf) {{axis = 2}} loc "p"
  %y: s8[1,6,{1}] = quantize_linear(%p, @t, @yz))",
                                           scale, row);
      const std::string text =
          fmt::format("dlc.graph 1\ngraph @g {{\n  in %x: s8[1,6,{}]\n", row) + body + "\n  out %y \"y\"\n}\n";
      REQUIRE_OK(const Graph g, parse_graph(text));
      Graph integers = g;
      REQUIRE_OK(const NumericsReport report, commit_numerics(integers, recipes()));
      CHECK(report.committed.size() == 1);
      CHECK(report.kept.empty());
      REQUIRE_OK(Tensor x, Tensor::make(kS8, {1, 6, row}));
      for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t spread = 1 + i / row * 40;  // rows from flat to peaked
        x.set_int(i, std::clamp<int64_t>(static_cast<int64_t>(random() % (2 * spread + 1)) - spread, -128, 127));
      }
      const std::vector<Tensor> inputs{x};
      REQUIRE_OK(const auto want, run_graph(g, inputs));
      REQUIRE_OK(const auto got, run_graph(integers, inputs));
      int64_t largest = 0, sum = 0;
      for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t off = std::abs(want[0].get_int(i) - got[0].get_int(i));
        largest = std::max(largest, off);
        sum += off;
      }
      CHECK(largest <= 2);
      CHECK(static_cast<double>(sum) < 0.3 * static_cast<double>(x.elements()));
    }
}

TEST_CASE("layer norm in integers is within a unit of the float one, and mostly the same") {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> gain(-0.3, 1.7), shift(-1, 1);
  for (const double scale : {0.004, 0.05, 0.4})
    for (const int64_t row : {16, 192, 1024}) {
      INFO("scale " << scale << ", row " << row);
      constexpr int64_t kRows = 12;
      const std::string text = fmt::format(R"(dlc.graph 1
graph @g {{
  in %x: s8[1,{2},{1}]
  const @s: f32[] = {0}
  const @z: s8[] = 7
  const @t: f32[] = 0.025
  const @yz: s8[] = -9
  const @gain: f32[{1}] = 1
  const @shift: f32[{1}] = 0
  %xf: f32[1,{2},{1}] = dequantize_linear(%x, @s, @z)
  %n: f32[1,{2},{1}], %mean: f32[1,{2}], %inv: f32[1,{2}] = layer_norm(%xf, @gain, @shift) {{epsilon = 1e-06}} loc "n"
  %y: s8[1,{2},{1}] = quantize_linear(%n, @t, @yz)
  out %y "y"
}}
)",
                                           scale, row, kRows);
      REQUIRE_OK(Graph g, parse_graph(text));
      for (size_t v = 0; v < g.value_count(); ++v) {
        auto& c = g.value(static_cast<ValueId>(v)).constant;
        if (!c || c->rank() != 1) continue;
        auto& from = g.value(static_cast<ValueId>(v)).name == "gain" ? gain : shift;
        for (int64_t i = 0; i < row; ++i) c->set_double(i, from(random));
      }
      Graph integers = g;
      REQUIRE_OK(const NumericsReport report, commit_numerics(integers, recipes()));
      CHECK(report.committed.size() == 1);
      CHECK(report.kept.empty());
      REQUIRE_OK(Tensor x, Tensor::make(kS8, {1, kRows, row}));
      for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t spread = 3 + i / row * 12;  // narrow rows and wide ones, some beside the zero point
        x.set_int(i, std::clamp<int64_t>(static_cast<int64_t>(random() % (2 * spread + 1)) - spread + i / row % 3 * 20,
                                         -128, 127));
      }
      const std::vector<Tensor> inputs{x};
      REQUIRE_OK(const auto want, run_graph(g, inputs));
      REQUIRE_OK(const auto got, run_graph(integers, inputs));
      int64_t largest = 0, sum = 0;
      for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t off = std::abs(want[0].get_int(i) - got[0].get_int(i));
        largest = std::max(largest, off);
        sum += off;
      }
      CHECK(largest <= 1);
      CHECK(static_cast<double>(sum) < 0.05 * static_cast<double>(x.elements()));
    }
}

TEST_CASE("layer norm that has no integers stays in float, with the reason") {
  const auto norm = [](const std::string& more, const std::string& scale, const std::string& rest = "1,6") {
    return fmt::format(R"(  const @s: f32[] = {1}
  const @z: s8[] = 0
  const @g: f32[40] = 1.5
  %xf: f32[1,6,40] = dequantize_linear(%x, @s, @z)
  %n: f32[1,6,40], %mean: f32[{2}], %inv: f32[{2}] = layer_norm(%xf, @g){0} loc "n"
  %y: s8[1,6,40] = quantize_linear(%n, @s, @z))",
                       more, scale, rest);
  };
  CHECK(commit("s8[1,6,40]", norm("", "0.05")).why.empty());
  CHECK_THAT(commit("s8[1,6,40]", norm(" {axis = 1}", "0.05", "1"), {}, false).why, Contains("last of several axes"));
  CHECK_THAT(commit("s8[1,6,40]", norm(" {epsilon = 10.0}", "0.01"), {}, false).why, Contains("its epsilon"));
  CHECK_THAT(commit("s8[1,6,40]", norm("", "1e-06"), {}, false).why, Contains("epsilon"));
}

TEST_CASE("sums and products with an operand that is broadcast") {
  const auto body = [](const std::string& op, const std::string& type, const std::string& of) {
    return fmt::format(R"(  const @s: f32[] = 0.25
  const @z: s8[] = 3
  const @q: s8[{1}] = 17
  %xf: f32[{2}] = dequantize_linear(%x, @s, @z)
  %c: f32[{1}] = dequantize_linear(@q, @s)
  %yf: f32[{2}] = {0}(%c, %xf) loc "n"
  %y: s8[{2}] = quantize_linear(%yf, @s, @z))",
                       op, type, of);
  };
  for (const std::string op : {"add", "mul"}) {
    CHECK(commit("s8[2,6,5,8]", body(op, "2,6,1,1", "2,6,5,8")).why.empty());
    CHECK(commit("s8[2,6,5,8]", body(op, "1,6,5,1", "2,6,5,8")).why.empty());
    CHECK_THAT(commit("s8[2,6,5,8]", body(op, "2,1,1,8", "2,6,5,8"), {}, false).why, Contains("along its channels"));
  }
  // Scores are columns, and what is added to them for each key becomes columns too.
  const std::string masked = R"(  const @s: f32[] = 0.25
  const @t: f32[] = 0.0039
  const @yz: s8[] = -128
  const @q: s8[1,1,1,8] = -17
  %xf: f32[1,2,6,8] = dequantize_linear(%x, @s)
  %p: f32[1,2,6,8] = softmax(%xf) {axis = 3}
  %pq: s8[1,2,6,8] = quantize_linear(%p, @t, @yz)
  %pf: f32[1,2,6,8] = dequantize_linear(%pq, @t, @yz)
  %c: f32[1,1,1,8] = dequantize_linear(@q, @t)
  %yf: f32[1,2,6,8] = add(%pf, %c)
  %y: s8[1,2,6,8] = quantize_linear(%yf, @t, @yz))";
  CHECK(commit("s8[1,2,6,8]", masked).layers == 2);
}

TEST_CASE("what is done to heads is done to their columns") {
  const std::string body = R"(  const @s: f32[] = 0.25
  const @t: f32[] = 2
  const @u: f32[] = 1.5
  const @w: s8[32,48] = 3
  %xf: f32[1,6,32] = dequantize_linear(%x, @s)
  %wf: f32[32,48] = dequantize_linear(@w, @s)
  %m: f32[1,6,48] = matmul(%xf, %wf)
  %mq: s8[1,6,48] = quantize_linear(%m, @t) {to: s8}
  %mf: f32[1,6,48] = dequantize_linear(%mq, @t)
  %r: f32[1,6,3,16] = reshape(%mf) {shape = [1, 6, 3, 16]}
  %h: f32[1,3,6,16] = transpose(%r) {perm = [0, 2, 1, 3]}
  %y: s8[1,3,6,16] = quantize_linear(%h, @u) {to: s8})";
  CHECK(commit("s8[1,6,32]", body).why.empty());
  REQUIRE_OK(Graph g, parse_graph("dlc.graph 1\ngraph @g {\n  in %x: s8[1,6,32]\n" + body + "\n  out %y \"y\"\n}\n"));
  REQUIRE_OK(const NumericsReport report, commit_numerics(g, recipes()));
  size_t found = 0;
  for (const NodeId id : g.order()) {
    if (g.node(id).op != "requantize_s8") continue;
    ++found;
    CHECK(g.value(g.node(id).outputs[0]).type.shape == std::vector<Expr>{1, 48, 6});
  }
  CHECK(found == 1);
}
