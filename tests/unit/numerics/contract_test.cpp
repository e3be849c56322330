// A machine's recipes are held to the contract: their signatures, and what they compute. What they cannot say to enough
// digits, or at all, stays in float.
#include "core/numerics/contract.h"

#include <fmt/format.h>

#include <algorithm>

#include "dlc/hw/load.h"
#include "dlc/io/file.h"
#include "dlc/numerics/commit.h"
#include "dlc_test/catch.h"

using namespace dlc;
using namespace dlc::numerics;
using Catch::Matchers::Contains;

namespace {

std::string shipped() {
  REQUIRE_OK(const MappedFile file, map_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  return std::string(file.text());
}

// nx16's recipes with something else in place of `was`, everywhere.
std::string changed(const std::string& was, const std::string& is) {
  std::string text = shipped();
  size_t at = text.find(was);
  INFO(was);
  REQUIRE(at != std::string::npos);
  for (; at != std::string::npos; at = text.find(was, at + is.size())) text.replace(at, was.size(), is);
  return text;
}

Result<RecordSet> parsed(const std::string& text) {
  REQUIRE_OK(const HwDescription hw, load_hw(DLC_SOURCE_DIR "/hwdesc/asic.yaml"));
  REQUIRE_OK(const RecordSet defs, RecordSet::parse(hw.defs_text, hw.file, &RecordSet::builtin()));
  return RecordSet::parse(text, "m.recipes", &defs);
}

// The errors, or "".
std::string checked(const std::string& text) {
  const auto set = parsed(text);
  if (!set) return to_string(set.error());
  const auto ok = check_recipes(*set, "m.recipes");
  return ok ? "" : to_string(ok.error());
}

// Why the node stays in float with these recipes, or "".
std::string kept(const std::string& recipes, const std::string& operation, const std::string& scale = "0.0117",
                 const std::string& result_scale = "0.25") {
  REQUIRE_OK(RecordSet set, parsed(recipes));
  REQUIRE_OK(Graph g, parse_graph(fmt::format(R"(dlc.graph 1
graph @g {{
  in %x: s8[1,4,3,3]
  in %x2: s8[1,4,3,3]
  const @s: f32[] = 0.25
  const @t: f32[] = {}
  const @u: f32[] = {}
  const @z: s8[] = 0
  const @w: s8[4,4,1,1] = 100
  %xf: f32[1,4,3,3] = dequantize_linear(%x, @s, @z)
  %x2f: f32[1,4,3,3] = dequantize_linear(%x2, @s, @z)
  %wf: f32[4,4,1,1] = dequantize_linear(@w, @t)
  %yf: f32[1,4,3,3] = {} loc "n"
  %y: s8[1,4,3,3] = quantize_linear(%yf, @u, @z)
  out %y "y"
}}
)",
                                              scale, result_scale, operation)));
  REQUIRE_OK(const NumericsReport report, commit_numerics(g, std::make_shared<const RecordSet>(std::move(set))));
  return report.kept.empty() ? "" : report.kept[0].why;
}

}  // namespace

TEST_CASE("the contract is right, and the shipped recipes follow it") {
  CHECK(to_string(contract_errors()) == "");
  for (const char* name : {"asic", "os8"}) {
    REQUIRE_OK(const HwDescription hw, load_hw(fmt::format("{}/hwdesc/{}.yaml", DLC_SOURCE_DIR, name)));
    REQUIRE_OK(const auto recipes, load_recipes(hw));
    CHECK(recipes->find("requantize") != nullptr);
  }
}

TEST_CASE("a recipe that does not mean what its name says is refused at its line") {
  struct Case {
    const char *was, *is, *recipe, *says;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"M[c], S[c]) + zero", "M[c], S[c])", "requantize", "'requantize' is not what its name says"},
           {"M[c], S[c]) + zero", "M[c], S[c]) - zero", "requantize", "'requantize' is not what its name says"},
           {"M[c], S[c]) + zero, lo, hi", "M[c], S[c]) + zero, -128, 127", "requantize", "lo = "},
           {"zero = 0, lo = -128, hi = 127)\n   -> Y[a", "zero = 5, lo = -128, hi = 127)\n   -> Y[a", "requantize",
            "and should be"},
           {"Ma[], B[i...] - b_zero, Mb[]", "Mb[], B[i...] - b_zero, Ma[]", "add_s8",
            "argument mx of add2 is u24, which does not hold every s24"},
           {"Ma[]: u24, Mb[]: s24", "Mb[]: s24, Ma[]: u24", "add_s8", "operand Mb is not what the contract has"},
           {"pad_lo)...] - zero) ?: 0)", "pad_lo)...] + zero) ?: 0)", "window_sum", "'window_sum' is not what"},
           {" - zero) ?: 0)", " - zero))", "window_sum", "'window_sum' has no value"},
           {"T[X[i...] + 128]", "T[X[i...] + 300]", "lookup", "lookup"},
           {"recip(Sum[b, m])", "recip(Sum[b, m] + 40)", "quotient", "quotient"},
           {"(E[b, t, m] - from) * M[]", "E[b, t, m] * M[]", "quotient", "quotient"},
           {"op requantize(", "op requantise(", "requantise", "did you mean 'requantize'?"},
           {"M[c], S[c])", "M[c])", "requantize", "requant takes 3 arguments, has 2"},
           {"S[c]: u6; axis", "S[c]: u6, Q[c]: u6; axis", "requantize", "operand Q is not what the contract has"},
           {"M[c]: u31", "M[c]: f32", "requantize", "operand M is f32, and must be an integer type"},
           {"M[c]: u31", "M[c]: u63", "requantize", "argument m of requant is u31, which does not hold every u63"},
           {"A[i...]: s32", "A[i...]: s64", "rescale", "operand A is s64, and must be s32"},
           {"A[i...]: s32, M[]: u31, S[]: u6; zero = 0,", "A[i...]: s32, M[]: u31, S[]: u6; level in [0, 1], zero = 0,",
            "rescale", "attribute level is not in the contract"},
           {"lookup(X[i...]: s8, T[t]: s8)", "lookup(X[i...]: s8, T[t]: s8; more)", "lookup", "attribute more"},
           {"-> Y[i...]: s8 {", "-> Y[i...]: s32 {", "rescale", "gives s32[]"},
       }) {
    const std::string text = changed(c.was, c.is);
    const size_t at = text.find(fmt::format("op {}(", c.recipe));
    const std::string line = fmt::format("m.recipes:{}:", 1 + std::ranges::count(text.substr(0, at), '\n'));
    const std::string said = checked(text);
    INFO(c.was << " -> " << c.is);
    CHECK_THAT(said, Contains(line) && Contains(c.says));
  }
  CHECK_THAT(checked("# nothing\n"), Contains("m.recipes: error: there is no recipe in it"));
}

TEST_CASE("a scale that multiplier and shift do not hold leaves its node in float") {
  const std::string conv = "conv(%xf, %wf)";
  CHECK(kept(shipped(), conv) == "");
  for (const auto& [was, is] :
       {std::pair("S[c]: u6", "S[c]: u3"), std::pair("S[c]: u6", "S[c]: u2"), std::pair("M[c]: u31", "M[c]: u4"),
        std::pair("M[c]: u31", "M[c]: u2"), std::pair("M[c]: u31", "M[c]: u1")}) {
    INFO(is);
    CHECK_THAT(kept(changed(was, is), conv),
               Contains("the scale ratio 0.0117 would be off by") && Contains("steps of the result"));
  }
  for (const auto& [was, is] : {std::pair("Ma[]: u24", "Ma[]: u1"), std::pair("Mb[]: s24", "Mb[]: s3")}) {
    CHECK_THAT(kept(changed(was, is), "add(%xf, %x2f)", "0.25", "0.31"), Contains("would be off by"));
    CHECK(kept(changed(was, is), "add(%xf, %x2f)", "0.25", "0.25") == "");
  }
  // Few bits are enough where they hold the scale.
  CHECK(kept(changed("M[c]: u31", "M[c]: u1"), conv, "0.25") == "");
  CHECK(kept(changed("S[c]: u6", "S[c]: u5"), conv) == "");
  // An accumulator that is never large moves nothing.
  CHECK(kept(shipped(), conv, "1e-19") == "");
}

TEST_CASE("what a machine has no recipe for stays in float") {
  for (const auto& [recipe, operation] :
       {std::pair("requantize", "conv(%xf, %wf)"), std::pair("add_s8", "add(%xf, %x2f)"),
        std::pair("mul_s8", "mul(%xf, %x2f)"), std::pair("lookup", "sigmoid(%xf)"),
        std::pair("window_sum", "avg_pool(%xf) {kernel = [1, 1]}")}) {
    std::string text = shipped();
    const size_t at = text.find(fmt::format("op {}(", recipe));
    text.erase(at, text.find("\n}\n", at) + 3 - at);
    INFO(recipe);
    CHECK(checked(text) == "");
    CHECK_THAT(kept(text, operation), Contains(fmt::format("the machine's recipes have no '{}'", recipe)));
  }
}
