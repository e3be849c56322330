// Steps: running a kernel in parts gives what the entry point gives.
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
  REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), cpu::Target::host()));
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
    REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(product, cpu::Target::host(), {.block_bytes = block}));
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
      REQUIRE_OK(const cpu::Plan plan,
                 cpu::plan_contractions(kernel(text), cpu::Target::host(), {.block_bytes = block}));
      const cpu::Unit unit = plan.unit();
      REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), cpu::Target::host()));
      for (const cpu::Step& s : code.kernels()[0].steps) CHECK(evaluate(s.extent, dims).value_or(0) >= 4);
      check_parts(plan.kernel, dims, plan.schedules);
    }
  }
}

TEST_CASE("features of a description and of LLVM give the same target") {
  const std::vector<std::string> named = {"avx2", "fma", "avx512_vnni", "sse4_1", "bmi1", "amx_tile"};
  const cpu::Target t = cpu::Target::with(named);
  CHECK(t.vector_bytes == 32);
  for (const char* f : {"avx512vnni", "sse4.1", "bmi", "amx-tile", "lzcnt"}) CHECK(t.has(f));
  const std::vector<std::string> v4 = {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"};
  CHECK(cpu::Target::with(v4).features == cpu::Target::avx512().features);
  CHECK(cpu::Target::with({}).features == cpu::Target::baseline().features);
  CHECK(cpu::Target::host().missing_here().empty());
  CHECK(cpu::Target{.features = "+sse2,+telepathy,+levitation"}.missing_here() == "telepathy, levitation");
}

TEST_CASE("an object that was linked gives what the compiler's own link gives, and damaged ones are errors") {
  const Kernel k = kernel("kernel @k {\n in X: f32[100]\n out Y: f32[100]\nfor i < 100: Y[i] = X[i] * 2.0 + 1.0\n}\n");
  const cpu::Unit unit{&k, {}};
  REQUIRE_OK(cpu::ObjectFile object, cpu::compile_to_object(std::span(&unit, 1), cpu::Target::baseline()));
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
  REQUIRE_OK(const auto code, cpu::compile_to_object(std::span(&unit, 1), cpu::Target::baseline()));
  REQUIRE(code.kernels[0].steps.size() == 2);
  CHECK(code.kernels[0].steps[0].extent.is(12));
  CHECK(code.kernels[0].steps[1].extent.is(1));
  CHECK(code.kernels[0].entry == nullptr);
  REQUIRE(code.bytes.size() > 64);
  CHECK(static_cast<char>(code.bytes[1]) == 'E');
}
