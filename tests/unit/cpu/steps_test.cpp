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
  REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), targets().back().second));
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
    REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(product, targets().back().second, {.block_bytes = block}));
    check_parts(plan.kernel, {}, plan.schedules);
  }
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
