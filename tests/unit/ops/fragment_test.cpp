#include "dlc/ops/record.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

const std::string kDefs = R"(
def rshr(x: s64, s: u6) -> s64 = if s == 0 then x else (x + (1 << (s-1)) - 1 + ((x >> s) & 1)) >> s
def sat8(x: s64, lo: s8, hi: s8) -> s8 = min(max(x, lo), hi)
def requant(a: s32, m: u31, s: u6) -> s64 = rshr(a*m, s)
def BIG = 1 << 20
)";

FragmentContext mac() {
  FragmentContext c;
  c.defs = kDefs;
  c.symbols = {"n_oh", "n_ow", "n_ci", "base", "acc_base", "zin", "accum", "s_ci", "in"};
  c.loops = {
      {"ci", Expr::symbol("n_ci")}, {"oh", Expr::symbol("n_oh")}, {"ow", Expr::symbol("n_ow")}, {"k", 16}, {"c", 8}};
  c.tensors = {{"in", kS8, {4096, 16}, Role::input, {}},
               {"w", kS8, {4096, 8}, Role::input, {}},
               {"acc", kS32, {2048, 8}, Role::state, {}},
               {"par.mul", DType{DType::Kind::unsigned_int, 31}, {64, 8}, Role::input, {}}};
  return c;
}

std::string text(const Result<Kernel>& k) {
  if (!k) FAIL(to_string(k.error()));
  if (auto ok = verify(*k); !ok) FAIL(to_string(ok.error()) + "\n" + print(*k));
  return print(*k);
}

std::string error(std::string_view fragment) {
  const auto k = parse_fragment(fragment, mac(), {"hw.yaml", 48, 12, ""});
  REQUIRE_FALSE(k.has_value());
  return to_string(k.error());
}

}  // namespace

TEST_CASE("a fragment runs over the declared loops of its target and reduces over the others") {
  const auto k = parse_fragment(
      "acc[acc_base + oh*n_ow + ow, c] = (if accum then acc[acc_base + oh*n_ow + ow, c] else 0)"
      " + sum:s32[ci, k] (in[base + ci*s_ci + oh, k] - zin) * w[ci*16 + k, c]",
      mac(), {"hw.yaml", 1, 1, ""});
  CHECK_THAT(text(k), Catch::Matchers::Contains("for oh < n_oh, ow < n_ow, c < 8:"));
  CHECK_THAT(text(k), Catch::Matchers::Contains("sum:s32[ci < n_ci, k < 16]"));
  CHECK(k->inputs.size() == 3);
  CHECK(k->outputs.size() == 1);
}

TEST_CASE("lets of a fragment hold values and may be given again") {
  const auto k = parse_fragment("let x = in[base, c] - zin; let x = requant(x, par.mul[0, c], 3); acc[acc_base, c] = x",
                                mac(), {});
  CHECK_THAT(text(k), Catch::Matchers::Contains("par.mul"));
  CHECK(k->body.size() == 1);
}

TEST_CASE("typed defs are exact in 64 bits and wrap their arguments to the declared types") {
  FragmentContext c;
  c.defs = kDefs;
  c.tensors = {{"y", kS64, {4}, Role::output, {}}};
  const auto k = parse_fragment(
      "y[0] = requant(2147483647, 2147483647, 0); y[1] = rshr(-5, 1); y[2] = sat8(300, -128, 127); y[3] = requant(100, "
      "1073741824, 31)",
      c, {});
  const std::string t = text(k);
  CHECK_THAT(t, Catch::Matchers::Contains("y[0] = 4611686014132420609"));
  CHECK_THAT(t, Catch::Matchers::Contains("y[1] = -2"));
  CHECK_THAT(t, Catch::Matchers::Contains("y[2] = 127"));
  CHECK_THAT(t, Catch::Matchers::Contains("y[3] = 50"));
}

TEST_CASE("seq puts a fragment's loop in order") {
  const auto k = parse_fragment("seq oh by -1: acc[acc_base + oh, c] = acc[acc_base + oh + 1, c] + oh", mac(), {});
  CHECK_THAT(text(k), Catch::Matchers::Contains("seq oh < n_oh by -1"));
}

TEST_CASE("a fragment's errors carry the place and the next step") {
  CHECK(error("acc[acc_bas, c] = 0") ==
        "hw.yaml:48:16: error: `acc_bas` is not declared\n  next: did you mean acc_base?");
  CHECK_THAT(error("ac[0, c] = 0"),
             Catch::Matchers::Contains("`ac` is not declared") && Catch::Matchers::Contains("acc"));
  CHECK_THAT(error("acc[0, c] = inn[0, c]"), Catch::Matchers::Contains("`inn` is not a tensor here"));
  CHECK_THAT(error("acc[0, c] = in[0, k]"), Catch::Matchers::Contains("loop `k` is in the value of `acc`"));
  CHECK_THAT(error("acc[0] = 0"), Catch::Matchers::Contains("has 2 dims and is written with 1 indices"));
  CHECK_THAT(error("acc[0, c] = 0.5 * in[0, c]"), Catch::Matchers::Contains("say how it is converted"));
  CHECK_THAT(error("acc[0, c] = requant(1, 2)"), Catch::Matchers::Contains("requant takes 3 arguments, has 2"));
  CHECK_THAT(error("acc[0, c] = requnt(1, 2, 3)"), Catch::Matchers::Contains("did you mean requant?"));
  CHECK_THAT(error("acc[0, c] = sum[zin < 4] 1"), Catch::Matchers::Contains("`zin` is declared already"));
  CHECK_THAT(error("acc[0, c]\n  = 0 +"), Catch::Matchers::Contains("hw.yaml:49:8: error: expected an expression"));
  CHECK_THAT(error(""), Catch::Matchers::Contains("no statement"));
  CHECK_THAT(error("require 1 == 1"), Catch::Matchers::Contains("require has no meaning here"));
}

TEST_CASE("recursive defs are refused") {
  FragmentContext c;
  c.defs = "def f(x) = f(x) + 1";
  c.tensors = {{"y", kS64, {1}, Role::output, {}}};
  REQUIRE_ERROR(parse_fragment("y[0] = f(1)", c, {}), "calls itself");
}

TEST_CASE("lets that double a value are refused before the value is walked") {
  std::string text = "let x = in[0, c]\n";
  for (int i = 0; i < 60; ++i) text += "let x = x * x\n";
  CHECK_THAT(error(text + "acc[0, c] = x"), Catch::Matchers::Contains("too large"));
}
