// Programs: text, verifier, memory plan, lowering, layouts. What a program computes is compared with its graph.
#include "dlc/program/program.h"

#include <algorithm>
#include <cmath>

#include "dlc/program/alias.h"
#include "dlc/program/layout.h"
#include "dlc_test/tensors.h"

using namespace dlc;
using dlc_test::noise;

namespace {

std::vector<Expr> list(std::vector<int64_t> v) { return {v.begin(), v.end()}; }

ValueId add(Graph& g, const std::string& op, std::vector<ValueId> in, Attrs attrs = {}) {
  auto n = g.add_node(op, std::move(in), std::move(attrs), {op});
  if (!n) FAIL(to_string(n.error()));
  return g.node(*n).outputs[0];
}

ValueId conv(Graph& g, ValueId x, std::vector<int64_t> weight, int64_t stride, int64_t pad, int64_t group = 1) {
  const auto seed = static_cast<uint32_t>(g.value_count());
  const ValueId w = g.add_constant(g.unique_name("w"), noise(weight, seed));
  const ValueId b = g.add_constant(g.unique_name("b"), noise({weight[0]}, seed + 1));
  return add(g, "conv", {x, w, b},
             {{"stride", list({stride, stride})},
              {"pad_lo", list({pad, pad})},
              {"pad_hi", list({pad, pad})},
              {"group", Expr(group)}});
}

// A stem, a pool, a residual block with a depthwise convolution, a concat of channels, a mean and a product.
Graph network() {
  Graph g;
  const ValueId x = g.add_input("x", {kF32, list({1, 3, 20, 20})});
  ValueId y = add(g, "relu", {conv(g, x, {16, 3, 3, 3}, 2, 1)});
  y = add(g, "max_pool", {y},
          {{"kernel", list({3, 3})}, {"stride", list({1, 1})}, {"pad_lo", list({1, 1})}, {"pad_hi", list({1, 1})}});
  const ValueId dw = add(g, "relu", {conv(g, y, {16, 1, 3, 3}, 1, 1, 16)});
  const ValueId sum = add(g, "add", {conv(g, dw, {16, 16, 1, 1}, 1, 0), y});
  const ValueId wide = conv(g, sum, {32, 16, 5, 5}, 1, 2);
  const ValueId both = add(g, "concat", {wide, sum}, {{"axis", Expr(1)}});
  const ValueId odd = conv(g, both, {20, 48, 3, 3}, 1, 0);  // 20 channels: stays plain
  const ValueId mean = add(g, "reduce_mean", {odd}, {{"axes", list({2, 3})}});
  const ValueId w = g.add_constant("fc", noise({20, 7}, 99));
  g.outputs = {add(g, "matmul", {mean, w})};
  g.output_names = {"y"};
  return g;
}

void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].shape() == b[i].shape());
    for (int64_t k = 0; k < a[i].elements(); ++k)
      CHECK(std::abs(a[i].get_double(k) - b[i].get_double(k)) <= 2e-5 * (1 + std::abs(b[i].get_double(k))));
  }
}

void check_same_as_graph(const Program& p, const Graph& g, const std::vector<Tensor>& inputs) {
  REQUIRE_OK(auto expected, run_graph(g, inputs));
  REQUIRE_OK(auto got, run_program(p, inputs));
  check_same(got, expected);
}

}  // namespace

TEST_CASE("a lowered program does what its graph does, and its text round-trips") {
  const Graph g = network();
  REQUIRE_OK(const Program p, lower_to_program(g));
  REQUIRE(check_memory_plan(p).has_value());
  const std::vector<Tensor> x{noise({1, 3, 20, 20}, 5)};
  check_same_as_graph(p, g, x);
  REQUIRE_OK(const Program again, parse_program(print(p)));
  CHECK(print(again) == print(p));
}

TEST_CASE("blocked layouts keep the meaning, and reach every buffer between convolutions") {
  for (const int64_t block : {4, 8, 16}) {
    const Graph g = network();
    REQUIRE_OK(Program p, lower_to_program(g));
    REQUIRE_OK(const int blocked, assign_layouts(p, {block}));
    CHECK(blocked >= 6);
    REQUIRE(check_memory_plan(p).has_value());
    const std::vector<Tensor> x{noise({1, 3, 20, 20}, 6)};
    check_same_as_graph(p, g, x);
    // The 5x5 convolution reads its halo without a guard; the pool's default is not the halo's value, so it keeps one.
    for (const auto& k : p.kernels)
      if (k.name.find("conv") != std::string::npos && print(k).find("in    x:") == std::string::npos)
        CHECK(print(k).find("?:") == std::string::npos);
    REQUIRE_OK(const Program again, parse_program(print(p)));
    CHECK(print(again) == print(p));
  }
}

TEST_CASE("a kernel of many calls names each node once, whatever took it apart and together again") {
  constexpr int kLayers = 12;
  Graph g;
  ValueId y = g.add_input("x", {kF32, list({1, 16, 8, 8})});
  const ValueId w = g.add_constant("w", noise({16, 16, 3, 3}, 1)), b = g.add_constant("b", noise({16}, 2));
  for (int i = 0; i < kLayers; ++i) {
    const Attrs attrs{{"stride", list({1, 1})}, {"pad_lo", list({1, 1})}, {"pad_hi", list({1, 1})}, {"group", Expr(1)}};
    REQUIRE_OK(const NodeId n, g.add_node("conv", {y, w, b}, attrs, {"layer" + std::to_string(i)}));
    y = g.node(n).outputs[0];
  }
  g.outputs = {y};
  g.output_names = {"y"};
  REQUIRE_OK(Program p, lower_to_program(g));
  REQUIRE_OK(const int blocked, assign_layouts(p, {16}));
  CHECK(blocked > 0);
  REQUIRE(alias_sets(p, {.align = 64}).has_value());
  size_t named = 0, most = 0;
  for (const Kernel& k : p.kernels) {
    named += k.locations.size();
    most = std::max(most, k.locations.size());
  }
  CHECK(named == kLayers);
  CHECK(most > kLayers / 2);  // the layers in the middle are one kernel
}

TEST_CASE("buffers alive at the same time never share bytes, others do") {
  REQUIRE_OK(Program p, lower_to_program(network()));
  Expr sum(0);
  for (const auto& b : p.buffers)
    if (b.kind == BufferKind::temp && !b.alias) {
      Expr bytes(4);
      for (const Expr& d : b.type.shape) bytes = bytes * d;
      sum = sum + bytes;
    }
  CHECK(*p.arena_bytes.constant() < *sum.constant());
  for (auto& b : p.buffers)
    if (b.kind == BufferKind::temp) b.offset = Expr(0);
  REQUIRE_ERROR(check_memory_plan(p), "may overlap");
}

TEST_CASE("one plan holds for every value of a symbolic dim") {
  Graph g;
  g.symbols["N"] = Range(1, 64);
  const ValueId x = g.add_input("x", {kF32, {Expr::symbol("N"), Expr(8)}});
  const ValueId w = g.add_constant("w", noise({8, 16}, 1));
  const ValueId v = g.add_constant("v", noise({16, 4}, 2));
  g.outputs = {
      add(g, "softmax", {add(g, "matmul", {add(g, "relu", {add(g, "matmul", {x, w})}), v})}, {{"axis", Expr(1)}})};
  g.output_names = {"y"};
  REQUIRE_OK(const Program p, lower_to_program(g));
  REQUIRE(check_memory_plan(p).has_value());
  for (const int64_t n : {1, 5, 64}) {
    const std::vector<Tensor> in{noise({n, 8}, 3)};
    check_same_as_graph(p, g, in);
  }
  REQUIRE_ERROR(run_program(p, std::vector<Tensor>{noise({65, 8}, 3)}), "outside its range");
  REQUIRE_ERROR(run_program(p, std::vector<Tensor>{noise({2, 9}, 3)}), "expected");
  REQUIRE_ERROR(run_program(p, std::vector<Tensor>{}), "missing");
}

TEST_CASE("a plan is checked by all that it was made with: sizes that a guard fixes, or that round to one number") {
  const Expr n = Expr::symbol("N"), m = Expr::symbol("M");
  const Guard five{n - 5, true, {}};
  struct Case {
    Range n;
    std::vector<Guard> guards;
    std::vector<Expr> shape;
  };
  const std::vector<Case> cases = {
      {Range(0, 64), {five}, {n, n, n + 2, n + 1}},        // 1050 elements
      {Range(0, 64), {five}, {n, n + 2, n + 1, m}},        // 210 * M elements
      {Range(0, 64), {five}, {n + 2, n + m, n + m, m}},    // sums of both
      {Range(4, 5), {}, {n, n + 1, n + 2}},                // 120 or 210 elements: 256 or 448 bytes
      {Range(1, 2), {}, {n, n + 1, n + 2}},                // 64 bytes, whatever N is
      {Range(1, 2), {}, {n, n + 1, n + 2, n + 3, m, 64}},  // no rounding
  };
  for (const Case& c : cases) {
    Program p;
    p.symbols = {{"N", c.n}, {"M", Range(1, 1 << 20)}};
    p.guards = c.guards;
    p.buffers = {{"a", {}, {kF16, c.shape}, {}, BufferKind::temp, {}, {}},
                 {"b", {}, {kF16, c.shape}, {}, BufferKind::temp, {}, {}},
                 {"c", {}, {kF32, {Expr(1)}}, {}, BufferKind::temp, {}, {}}};
    p.calls = {{0, {0, 1, 2}, {}}};
    REQUIRE(plan_memory(p).has_value());
    INFO(to_string(p.buffers[0].type) << ", offset of the last " << to_string(p.buffers[2].offset));
    if (const auto plan = check_memory_plan(p); !plan) FAIL_CHECK(to_string(plan.error()));
    p.buffers[2].offset = Expr(0);
    REQUIRE_ERROR(check_memory_plan(p), "may overlap");
  }
}

TEST_CASE("a plan for images of any size is as tight as one for a single size") {
  // Residual blocks at five scales, as detectors have them: each size is a product of three symbols, rounded up.
  const auto scales = [](Graph& g, const std::vector<Expr>& shape) {
    ValueId y = g.add_input("x", {kF32, shape});
    for (int64_t i = 0, c = 3; i < 5; ++i) {
      y = add(g, "relu", {conv(g, y, {8 << i, c, 3, 3}, 2, 1)});
      c = 8 << i;
      for (int block = 0; block < 2; ++block) {
        const ValueId wide = add(g, "relu", {conv(g, y, {4 * c, c, 1, 1}, 1, 0)});
        const ValueId deep = add(g, "relu", {conv(g, wide, {4 * c, 1, 3, 3}, 1, 1, 4 * c)});
        const ValueId gate =
            add(g, "sigmoid", {add(g, "reduce_mean", {deep}, {{"axes", list({2, 3})}, {"keepdims", Expr(1)}})});
        y = add(g, "add", {y, conv(g, add(g, "mul", {deep, gate}), {c, 4 * c, 1, 1}, 1, 0)});
      }
    }
    g.outputs = {y};
    g.output_names = {"y"};
  };
  Graph any, one;
  for (const char* name : {"N", "H", "W"}) any.symbols[name] = Range(1, 1 << 20);
  scales(any, {Expr::symbol("N"), Expr(3), Expr::symbol("H"), Expr::symbol("W")});
  scales(one, list({2, 3, 96, 160}));
  REQUIRE_OK(const Program p, lower_to_program(any));
  if (const auto plan = check_memory_plan(p); !plan) FAIL(to_string(plan.error()));
  REQUIRE_OK(const Program q, lower_to_program(one));
  CHECK(*evaluate(p.arena_bytes, {{"N", 2}, {"H", 96}, {"W", 160}}) <= *q.arena_bytes.constant() * 5 / 4);
}

TEST_CASE("many buffers of symbolic sizes that are alive together lie one above the other") {
  constexpr int64_t kBranches = 60;
  Graph g;
  g.symbols["N"] = Range(1, 1 << 20);
  const ValueId x = g.add_input("x", {kF32, {Expr::symbol("N"), Expr(8)}});
  std::vector<ValueId> branches;
  for (int64_t i = 0; i < kBranches; ++i)
    branches.push_back(add(g, "matmul", {x, g.add_constant(g.unique_name("w"), noise({8, 3 + i}, 1))}));
  g.outputs = {add(g, "concat", branches, {{"axis", Expr(1)}})};
  std::ranges::reverse(branches);
  g.outputs.push_back(add(g, "concat", branches, {{"axis", Expr(1)}}));
  g.output_names = {"y", "z"};
  REQUIRE_OK(const Program p, lower_to_program(g));
  REQUIRE(check_memory_plan(p).has_value());
  for (const int64_t n : {1, 5, 16, 1 << 20}) {
    const Bindings at{{"N", n}};
    std::vector<std::pair<int64_t, int64_t>> used;
    for (const auto& b : p.buffers) {
      if (b.kind != BufferKind::temp) continue;
      used.emplace_back(*evaluate(b.offset, at), *evaluate(b.offset + 4 * n * b.type.shape[1], at));
    }
    std::ranges::sort(used);
    REQUIRE(used.size() == kBranches);
    int64_t sizes = 0;
    for (size_t i = 0; i < used.size(); ++i) {
      CHECK(used[i].first == (i == 0 ? 0 : (used[i - 1].second + 63) / 64 * 64));
      sizes += (used[i].second - used[i].first + 63) / 64 * 64;
    }
    CHECK(evaluate(p.arena_bytes, at) == sizes);
  }
}

TEST_CASE("an output that is an input, a constant or given twice is a tensor of its own") {
  Graph g;
  const ValueId x = g.add_input("x", {kF32, list({2})});
  const ValueId c = g.add_constant("c", noise({3}, 1));
  const ValueId y = add(g, "neg", {x});
  g.outputs = {y, x, y, c};
  g.output_names = {"a", "b", "c", "d"};
  REQUIRE_OK(const Program p, lower_to_program(g));
  const std::vector<Tensor> in{noise({2}, 3)};
  check_same_as_graph(p, g, in);
}

TEST_CASE("a copy for an output has a name of its own") {
  Graph g;
  const ValueId x = g.add_input("x", {kF32, list({2})});
  const ValueId y = add(g, "neg", {x});
  g.rename(y, "x.out1");
  g.outputs = {add(g, "exp", {y}), x, y, y};
  g.output_names = {"a", "b", "c", "d"};
  REQUIRE_OK(const Program p, lower_to_program(g));
  const std::vector<Tensor> in{noise({2}, 3)};
  check_same_as_graph(p, g, in);
}

TEST_CASE("layouts and copies keep their loops apart from symbols") {
  for (const char* name : {"o_0", "o_1", "o", "halo0", "i.0"}) {
    Graph g;
    const Expr n = Expr::symbol(name);
    g.symbols[name] = Range(1, 8);
    const ValueId x = g.add_input("x", {kF32, {n, Expr(8), Expr(6), Expr(6)}});
    ValueId y = x;
    for (const int seed : {1, 2}) {
      y = add(g, "conv", {y, g.add_constant("w", noise({16, seed == 1 ? 8 : 16, 3, 3}, seed))},
              {{"pad_lo", list({1, 1})}, {"pad_hi", list({1, 1})}});
    }
    g.outputs = {y, x};
    g.output_names = {"y", "x"};
    REQUIRE_OK(Program p, lower_to_program(g));
    REQUIRE_OK(const int blocked, assign_layouts(p, {8}));
    CHECK(blocked > 0);
    const std::vector<Tensor> in{noise({3, 8, 6, 6}, 3)};
    check_same_as_graph(p, g, in);
  }
}

TEST_CASE("programs that cannot run are refused with the place") {
  REQUIRE_ERROR(parse_program("dlc.program 2\n"), "version 2");
  REQUIRE_ERROR(parse_program("dlc.program 1\nprogram @p {\n  call @none()\n}\n"), "@none has no text");
  REQUIRE_ERROR(parse_program("dlc.program 1\nprogram @p {\n  temp t: f32[2] in q at 0\n}\n"), "q is not declared");
  REQUIRE_OK(Program p, lower_to_program(network()));
  Program unwritten = p;
  unwritten.calls.pop_back();
  REQUIRE_ERROR(verify(unwritten), "never written");
  Program early = p;
  std::swap(early.calls.front(), early.calls.back());
  REQUIRE_ERROR(verify(early), "before it is written");
  Program mistyped = p;
  mistyped.buffers[static_cast<size_t>(mistyped.calls[0].buffers.back())].type.shape.push_back(Expr(2));
  REQUIRE_ERROR(verify(mistyped), "tensor");
}
