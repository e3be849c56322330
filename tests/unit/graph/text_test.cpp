// Graph text: what is written is read back, and what is wrong is said with its place.
#include "core/graph/text.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/graph/scanner.h"
#include "dlc/graph/graph.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

constexpr const char* kMlp = R"(dlc.graph 1
graph @mlp (N in 1..64) {
  in    %x: f32[N,4]
  const @w: f32[4,2] = [1, 2, 3, 4, 5, 6, 7, 8.5]
  const @half: f32[] = 0.5
  %h: f32[N,2] = matmul(%x, @w) loc "fc1"
  %s: f32[N,2] = mul(%h, @half)
  %y: f32[N,2] = relu(%s) loc "fc1/relu", "a \"quoted\" name"
  out   %y "probabilities"
}
)";

std::string attrs_text(const Attrs& attrs) {
  std::string s;
  for (const auto& a : attrs) s += (s.empty() ? "{" : ", ") + detail::attribute_text(a);
  return s + "}";
}

Result<Attrs> parse_attrs(std::string_view text) {
  detail::Scanner in(text, "attrs");
  return detail::parse_attributes(in);
}

}  // namespace

TEST_CASE("graph text round-trips", "[graph]") {
  REQUIRE_OK(Graph g, parse_graph(kMlp));
  CHECK(print(g) == kMlp);
  CHECK(g.name == "mlp");
  CHECK(g.symbols.at("N").bounds == Interval{1, 64});
  CHECK(g.value(g.find("half")).constant->get_double(0) == 0.5);
  CHECK(verify(g).has_value());
}

TEST_CASE("ranges of symbols round-trip", "[graph]") {
  const std::string text = R"(dlc.graph 1
graph @g (H in 4.. by 4, K in ..-1, M, N in 1..64, S in .., T in 1..N - 1, U in 2..128 by 2) {
  in    %x: f32[H,M,N,2*S,T,U]
  out   %x "x"
}
)";
  REQUIRE_OK(Graph g, parse_graph(text));
  CHECK(g.symbols.at("M").bounds == Interval{1, Interval::kPosInf});
  CHECK(g.symbols.at("H").divisible_by == 4);
  CHECK(g.symbols.at("K").bounds == Interval{Interval::kNegInf, -1});
  CHECK(Expr(g.symbols.at("T").upper) == Expr::symbol("N") - 1);
  CHECK(print(g) == text);
}

TEST_CASE("every kind of attribute round-trips", "[graph]") {
  const int64_t ints[] = {1, -2, 3};
  REQUIRE_OK(Tensor t, Tensor::from<int64_t>(kS64, {3}, ints));
  const Attrs attrs = {
      {"axis", Expr(-1)},
      {"extent", Expr::symbol("N") * 2 + 1},
      {"epsilon", 1e-5},
      {"one", 1.0},
      {"lowest", -std::numeric_limits<double>::infinity()},
      {"mode", std::string("edge \"x\"\n")},
      {"pads", std::vector<Expr>{0, Expr::symbol("N"), 2}},
      {"scales", std::vector<double>{0.5, 2.0}},
      {"names", std::vector<std::string>{"Tanh", "Sigmoid"}},
      {"no_ints", std::vector<Expr>{}},
      {"no_reals", std::vector<double>{}},
      {"no_strings", std::vector<std::string>{}},
      {"to", kBF16},
      {"value", t},
  };
  const std::string text = attrs_text(attrs);
  CHECK(text ==
        R"({axis = -1, epsilon = 1e-05, extent = 2*N + 1, lowest = -inf, mode = "edge \"x\"\x0a", )"
        R"(names = ["Tanh", "Sigmoid"], no_ints = [], no_reals = [] of real, no_strings = [] of string, one = 1.0, )"
        R"(pads = [0, N, 2], scales = [0.5, 2.0], to: bf16, value: s64[3] = [1, -2, 3]})");
  REQUIRE_OK(Attrs back, parse_attrs(text));
  REQUIRE(back.size() == attrs.size());
  CHECK(attrs_text(back) == text);
  for (const auto& [name, value] : attrs) CHECK(back.at(name).index() == value.index());
  REQUIRE_OK(Attrs nan, parse_attrs("{x = nan}"));
  CHECK(std::isnan(std::get<double>(nan.at("x"))));
}

TEST_CASE("constants of every type round-trip", "[graph]") {
  for (DType type : {kBool, kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64, kF16, kBF16, kF32, kF64}) {
    REQUIRE_OK(Tensor t, Tensor::make(type, {2, 3}));
    for (int64_t i = 0; i < 6; ++i) {
      if (type.is_float())
        t.set_double(i, std::pow(-1.7, static_cast<double>(i)) / 3);
      else
        t.set_int(i, i == 0 ? type.min_value() : i == 1 ? -1 : i);
    }
    Graph g;
    g.outputs = {g.add_constant("c", t)};
    g.output_names = {"c"};
    const std::string text = print(g);
    REQUIRE_OK(Graph back, parse_graph(text));
    CHECK(print(back) == text);
    const Tensor& u = *back.value(back.outputs[0]).constant;
    REQUIRE(u.byte_size() == t.byte_size());
    CHECK(std::equal(t.bytes(), t.bytes() + t.byte_size(), u.bytes()));
  }
}

TEST_CASE("large constants are looked up, repeated values are not", "[graph]") {
  REQUIRE_OK(Tensor large, Tensor::make(kF32, {100}));
  Graph g;
  g.outputs = {g.add_constant("fill", large)};
  g.output_names = {"y"};
  CHECK(print(g) == "dlc.graph 1\ngraph @main {\n  const @fill: f32[100] = 0\n  out   @fill \"y\"\n}\n");
  large.set_double(7, 3);
  CHECK_FALSE(is_inline_constant(large));
  Graph h;
  h.outputs = {h.add_constant("w/0", large)};
  h.output_names = {"y"};
  const std::string text = print(h);
  CHECK(text == "dlc.graph 1\ngraph @main {\n  const @w/0: f32[100]\n  out   @w/0 \"y\"\n}\n");
  REQUIRE_ERROR(parse_graph(text, "f"), "f:3:10: error: the weight table has no @w/0");
  REQUIRE_OK(Graph back, parse_graph(text, "f", [&](std::string_view name) {
               return name == "w/0" ? std::optional(large) : std::nullopt;
             }));
  CHECK(print(back) == text);
  REQUIRE_OK(Tensor other, Tensor::make(kF32, {99}));
  REQUIRE_ERROR(parse_graph(text, "f", [&](std::string_view) { return other; }),
                "f:3:10: error: @w/0 is f32[100] here and f32[99] in the weight table");
}

TEST_CASE("odd names are quoted", "[graph]") {
  Graph g;
  g.name = "a graph";
  const ValueId x = g.add_input("input:0 (x)", {kF32, {2}});
  g.outputs = {x};
  g.output_names = {"out"};
  const std::string text = print(g);
  CHECK(text ==
        "dlc.graph 1\ngraph @\"a graph\" {\n  in    %\"input:0 (x)\": f32[2]\n  out   %\"input:0 (x)\" \"out\"\n}\n");
  REQUIRE_OK(Graph back, parse_graph(text));
  CHECK(print(back) == text);
}

TEST_CASE("names of several results are read as they stand", "[graph]") {
  // add_node numbers results itself; what it calls one may be the name of another.
  for (const auto& [first, second] :
       {std::pair("2", "1"), std::pair("1", "2"), std::pair("3", "4"), std::pair("4", "3"), std::pair("3", "1")}) {
    const std::string text = std::string("dlc.graph 1\ngraph @g {\n  in    %x: f32[4]\n  %5: f32[4] = relu(%x)\n  %") +
                             first + ": f32[2], %" + second + ": s64[2] = top_k(%5) {axis = 0, k = 2}\n  out   %" +
                             first + " \"v\"\n  out   %" + second + " \"i\"\n}\n";
    REQUIRE_OK(const Graph g, parse_graph(text));
    CHECK(print(g) == text);
  }
  REQUIRE_ERROR(parse_graph("dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %a: f32[2], %a: s64[2] = top_k(%x) {axis = 0, "
                            "k = 2}\n  out %a\n}\n"),
                "there is already a value called a");
}

TEST_CASE("wrong graph text is an error with a place", "[graph]") {
  const auto body = [](const std::string& lines) { return "dlc.graph 1\ngraph @g (N) {\n" + lines + "}\n"; };
  REQUIRE_ERROR(parse_graph("dlc.graph 2\n", "f"), "f:1:1: error: this is graph text of version 2");
  REQUIRE_ERROR(parse_graph("dlc.kernel 1\n", "f"), "f:1:1: error: expected 'dlc.graph'");
  REQUIRE_ERROR(parse_graph("", "f"), "f:1:1: error: expected 'dlc.graph', found the end of the text");
  REQUIRE_ERROR(parse_graph(body("  in %x: f99[2]\n"), "f"), "f:3:10: error: 'f99' is not an element type");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2\n"), "f"), "f:4:1: error: expected ']'");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2]\n  in %x: f32[2]\n"), "f"),
                "f:4:7: error: there is already a value called x");
  REQUIRE_ERROR(parse_graph(body("  out %y\n"), "f"), "f:3:7: error: there is no value called y");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2]\n  out @x\n"), "f"), "x is written %x, since it is no constant");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2]\n  %y: f32[2] = rely(%x)\n"), "f"), "did you mean 'relu'?");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2]\n  %y: f32[3] = relu(%x)\n"), "f"),
                "f:4:3: error: %y is declared f32[3], but relu gives f32[2]");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2]\n  %y: f32[2], %z: f32[2] = relu(%x)\n"), "f"),
                "relu has 1 results, not 2");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2]\n  %y: f32[2] = relu(%x, %x)\n"), "f"),
                "f:4:3: error: relu takes 1 operands, got 2");
  REQUIRE_ERROR(parse_graph(body("  in %x: f32[2]\n  %y: f32[2] = relu()\n"), "f"), "is missing");
  REQUIRE_ERROR(parse_graph(body("  const @c: s8[2] = [1, 200]\n"), "f"), "f:3:25: error: '200' is not a value of s8");
  REQUIRE_ERROR(parse_graph(body("  const @c: s8[2] = [1]\n"), "f"), "fewer elements than s8[2] has");
  REQUIRE_ERROR(parse_graph(body("  const @c: s8[1] = [1, 2]\n"), "f"), "more elements than s8[1] has");
  REQUIRE_ERROR(parse_graph(body("  const @c: s8[N] = 1\n"), "f"), "a constant has a fixed shape, not s8[N]");
  REQUIRE_ERROR(parse_graph(body("  const @c: s8[9000000000000] = 1\n"), "f"), "has at most 1048576 elements");
  REQUIRE_ERROR(parse_graph(body("  const @c: s8[9000000000000] = [1]\n"), "f"), "fewer elements than");
  REQUIRE_ERROR(parse_graph(body("  const @c: s8[4294967296,4294967296] = [1]\n"), "f"), "negative or too large");
  REQUIRE_ERROR(parse_graph("dlc.graph 1\ngraph @g (N in 5..4) {\n}\n", "f"), "f:2:16: error: the range of N is empty");
  REQUIRE_ERROR(parse_graph("dlc.graph 1\ngraph @g (N, N) {\n}\n", "f"), "symbol N is declared twice");
  REQUIRE_ERROR(parse_graph("dlc.graph 1\ngraph @\"g {\n}\n", "f"), "f:2:8: error: this string has no end");
  REQUIRE_ERROR(parse_graph(body("") + "more", "f"), "f:4:1: error: expected the end of the text");
  REQUIRE_ERROR(parse_attrs("{a = 1, a = 2}"), "attribute a is given twice");
  REQUIRE_ERROR(parse_attrs("{a = [1, 0.5]}"), "a list has elements of one kind");
  REQUIRE_ERROR(parse_attrs("{a: f99}"), "'f99' is not an element type");
}

TEST_CASE("damaged text is read or refused, never more", "[graph]") {
  std::mt19937 random(11);
  const std::string alphabet = "%@[](){}=:,.\"\\_#*+-/ 019Nfsinoutconst\n";
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = kMlp;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 8);
          break;
        case 1:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 2:
          text[at] = static_cast<char>(random());
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
      if (text.empty()) text = "d";
    }
    auto g = parse_graph(text);
    if (!g) {
      CHECK_FALSE(g.error().empty());
      continue;
    }
    ++read;
    REQUIRE_OK(Graph back, parse_graph(print(*g)));
    CHECK(print(back) == print(*g));
  }
  CHECK(read > 100);
}
