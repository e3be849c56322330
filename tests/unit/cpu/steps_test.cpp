// Steps: running a kernel in parts gives what the entry point gives.
#include <sstream>

#include "plugins/cpu/codegen/contraction.h"
#include "support.h"

using namespace dlc;
using namespace dlc::test;

namespace {

// Runs every step in parts of `part`, the last part first.
void run_in_parts(const cpu::CompiledKernel& k, const std::vector<void*>& pointers, const Bindings& dims,
                  int64_t part) {
  const auto values = dim_values(k, dims);
  for (const cpu::Step& s : k.steps) {
    const auto extent = evaluate(s.extent, dims);
    REQUIRE(extent.has_value());
    for (int64_t begin = (*extent - 1) / part * part; begin >= 0; begin -= part)
      REQUIRE(s.run(pointers.data(), values.data(), begin, std::min(begin + part, *extent)) == 0);
  }
}

void check_parts(const Kernel& k, const Bindings& dims = {}, const std::vector<cpu::Schedule>& schedules = {}) {
  const cpu::Unit unit{&k, schedules};
  REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target("native")));
  Memory want = memory(k, dims);
  const auto values = dim_values(code.kernels()[0], dims);
  REQUIRE(code.kernels()[0].entry(want.pointers().data(), values.data()) == 0);
  for (int64_t part : {1, 2, 5}) {
    Memory got = memory(k, dims);
    run_in_parts(code.kernels()[0], got.pointers(), dims, part);
    check_same(k, want, got, 0);
  }
}

}  // namespace

TEST_CASE("steps in parts: long element-wise loops, rows, matrix products with cache blocks") {
  check_parts(kernel("kernel @k {\n in X: f32[N]\n out Y: f32[N]\nfor i < N: Y[i] = X[i] * 2.0\n}\n"), {{"N", 20001}});
  check_parts(kernel(
      "kernel @k {\n in X: f32[13,50]\n temp M: f32[13]\n out Y: f32[13,50]\nfor i < 13: M[i] = max[j < 50] X[i, j]\n"
      "for i < 13, j < 50: Y[i, j] = X[i, j] - M[i]\n}\n"));
  const Kernel product = kernel(
      "kernel @k {\n in A: f32[100,64]\n in W: f32[64,200]\n out Y: f32[100,200]\n"
      "for i < 100, j < 200: Y[i, j] = sum[k < 64] A[i, k] * W[k, j]\n}\n");
  for (int64_t block : {0, 64 * 4 * 30}) {
    REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(product, target("native"), {.block_bytes = block}));
    check_parts(plan.kernel, {}, plan.schedules);
  }
}

TEST_CASE("a product of one panel is split along its rows, at whole tiles") {
  for (const char* rows : {"100", "M"}) {
    std::string text =
        "kernel @k {\n in A: f32[ROWS,64]\n const W: f32[64,32]\n out Y: f32[ROWS,32]\n"
        "for i < ROWS, j < 32: Y[i, j] = sum[k < 64] A[i, k] * W[k, j]\n}\n";
    for (size_t at = 0; (at = text.find("ROWS", at)) != std::string::npos;) text.replace(at, 4, rows);
    const Bindings dims{{"M", 101}};
    for (int64_t block : {0, 64 * 4 * 24}) {
      REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(kernel(text), target("native"), {.block_bytes = block}));
      const cpu::Unit unit = plan.unit();
      REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target("native")));
      for (const cpu::Step& s : code.kernels()[0].steps) CHECK(evaluate(s.extent, dims).value_or(0) >= 4);
      check_parts(plan.kernel, dims, plan.schedules);
    }
  }
}

TEST_CASE("a description's features, in LLVM's words, and the widest vectors that they allow") {
  const auto with = [](const std::string& features) {
    return parse_hw("dlc_hw: 1\nname: m\nlike: x86-64-v4.yaml\nisa: {features: [" + features + "]}\n",
                    DLC_SOURCE_DIR "/hwdesc/m.yaml");
  };
  REQUIRE_OK(const HwDescription hw, with("sse2, sse4_1, avx2, fma, bmi1, avx512_vnni, amx_tile"));
  REQUIRE_OK(const cpu::Target t, cpu::Target::of(hw));
  CHECK(t.features == "+sse2,+sse4.1,+avx2,+fma,+bmi,+avx512vnni,+amx-tile");
  CHECK(t.vector_bytes == 32);
  CHECK(t.registers == 16);
  CHECK(t.l2_bytes == 1 << 20);
  CHECK(t.has("fma"));
  CHECK_FALSE(t.has("avx512"));
  const cpu::Target v4 = target("x86-64-v4");
  CHECK(v4.vector_bytes == 64);
  CHECK(v4.registers == 32);
  for (const char* f : {"cmov", "sse2", "cx16", "lzcnt", "avx2", "avx512vl"}) CHECK(v4.has(f));
  const cpu::Target native = target("native");
  CHECK(native.missing_here().empty());
  for (const char* level : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    INFO(level);
    const cpu::Target its = target(level);
    if (its.runs_here()) CHECK(native.vector_bytes >= its.vector_bytes);
    std::istringstream features(its.features);
    for (std::string f; std::getline(features, f, ',');)
      if (cpu::Target{.features = f}.runs_here()) CHECK(native.has(f.substr(1)));
  }
  CHECK(cpu::Target{.features = "+sse2,+telepathy,+levitation"}.missing_here() == "telepathy, levitation");
  REQUIRE_OK(const HwDescription bare, with("fma"));
  REQUIRE_ERROR(cpu::Target::of(bare), "m.yaml: error: 'isa' has no vectors that its features allow");
  REQUIRE_OK(const HwDescription wrong, with("sse2, avx22, -avx"));
  const auto refused = cpu::Target::of(wrong);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(to_string(refused.error()),
             Catch::Matchers::Contains("m.yaml:4:24: error: x86-64 has no feature 'avx22'") &&
                 Catch::Matchers::Contains("did you mean 'avx2'?") &&
                 Catch::Matchers::Contains("m.yaml:4:31: error: x86-64 has no feature '-avx'"));
  const auto vectors = [](const std::string& v) {
    return parse_hw("dlc_hw: 1\nname: m\nlike: x86-64.yaml\nisa: {vectors: {v: {" + v + "}}}\n",
                    DLC_SOURCE_DIR "/hwdesc/m.yaml");
  };
  REQUIRE_OK(const HwDescription odd, vectors("bytes: 24, registers: 16, needs: [sse2]"));
  REQUIRE_ERROR(cpu::Target::of(odd), "m.yaml:4:17: error: vectors 'v' have 24 bytes: code is made for 16, 32 and 64");
  REQUIRE_OK(const HwDescription needy, vectors("bytes: 32, registers: 16, needs: [ssse22]"));
  REQUIRE_ERROR(cpu::Target::of(needy), "m.yaml:4:55: error: x86-64 has no feature 'ssse22'");
}

TEST_CASE("an object that was linked gives what the compiler's own link gives, and damaged ones are errors") {
  const Kernel k = kernel("kernel @k {\n in X: f32[100]\n out Y: f32[100]\nfor i < 100: Y[i] = X[i] * 2.0 + 1.0\n}\n");
  const cpu::Unit unit{&k, {}};
  REQUIRE_OK(cpu::ObjectFile object, cpu::compile_to_object(std::span(&unit, 1), target("x86-64")));
  REQUIRE_OK(const auto code, cpu::link(object));
  Memory m = memory(k, {});
  REQUIRE(code.kernels()[0].entry(m.pointers().data(), nullptr) == 0);
  for (int64_t i = 0; i < 100; ++i)
    CHECK(m.tensors[1].get_double(i) == static_cast<float>(m.tensors[0].get_double(i)) * 2.0f + 1.0f);
  cpu::ObjectFile renamed = object;
  renamed.kernels[0].name = "somebody_else";
  CHECK_FALSE(cpu::link(renamed).has_value());
  object.bytes.resize(object.bytes.size() / 2);
  CHECK_FALSE(cpu::link(object).has_value());
}

TEST_CASE("the extent of a step says how far it can be split") {
  const Kernel k = kernel(
      "kernel @k {\n in X: f32[1,12,9,16]\n out Y: f32[1,12,9,16]\n out Z: f32[4]\n"
      "for n < 1, c < 12, y < 9, x < 16: Y[n, c, y, x] = X[n, c, 8 - y, x]\nfor i < 4: Z[i] = X[0, 0, 0, i]\n}\n");
  const cpu::Unit unit{&k, {}};
  REQUIRE_OK(const auto code, cpu::compile_to_object(std::span(&unit, 1), target("x86-64")));
  REQUIRE(code.kernels[0].steps.size() == 2);
  CHECK(code.kernels[0].steps[0].extent.is(12));
  CHECK(code.kernels[0].steps[1].extent.is(1));
  CHECK(code.kernels[0].entry == nullptr);
  REQUIRE(code.bytes.size() > 64);
  CHECK(static_cast<char>(code.bytes[1]) == 'E');
}
