// The contraction skeleton: the same values as the interpreter on the original kernel, no spilled accumulators, and a
// reason where it does not match.
#include "plugins/cpu/codegen/contraction.h"

#include "support.h"

using namespace dlc;
using namespace dlc::test;

namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// Runs the plan of k on every level and compares with k itself. Returns the notes of the plan for this machine.
std::vector<std::string> check_plan(const Kernel& k, const cpu::ContractionTile& tile = {}, const Bindings& dims = {}) {
  // Exact sums, and how far plain f32 arithmetic is from them.
  const auto interpreted = [&](bool as_double) {
    Memory m = memory(k, dims);
    REQUIRE_OK(const auto prepared, PreparedKernel::prepare(k, {}, {.floats_as_double = as_double, .tree_walk = true}));
    const auto buffers = m.buffers();
    if (const auto ok = prepared.run(buffers, dims); !ok) FAIL(to_string(ok.error()));
    return m;
  };
  const Memory want = interpreted(true), plain = interpreted(false);
  const bool is_float = k.tensors[0].dtype.is_float();
  for (const auto& [name, target, opt_level] : levels()) {
    INFO("target " << name);
    REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(k, target, tile));
    const cpu::Unit unit = plan.unit();
    REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target, {.opt_level = 1, .keep_assembly = true}));
    // Products that are not fused with their sum need registers that vary; there the rule is only a good guess.
    if (target.has("fma") && is_float) CHECK(code.stats().spills == 0);
    Memory got = memory(plan.kernel, dims);
    for (size_t i = 0; i < k.tensors.size(); ++i)
      if (want.tensors[i].is_valid() && (k.tensors[i].role == Role::input || k.tensors[i].role == Role::constant))
        got.tensors[i] = want.tensors[i];
    for (const cpu::PackedTensor& p : plan.packed) {
      if (const auto ok = verify(p.pack); !ok) FAIL(to_string(ok.error()));
      const cpu::Unit pack{&p.pack, {}};
      REQUIRE_OK(const auto packer, cpu::compile(std::span(&pack, 1), target));
      void* operands[] = {got.tensors[static_cast<size_t>(p.source)].mutable_bytes(),
                          got.tensors[static_cast<size_t>(p.packed)].mutable_bytes()};
      REQUIRE(packer.kernels()[0].entry(operands, nullptr) == 0);
    }
    if (const auto ok = verify(plan.kernel); !ok) FAIL(to_string(ok.error()));
    const auto pointers = got.pointers();
    const auto values = dim_values(code.kernels()[0], dims);
    REQUIRE(code.kernels()[0].entry(pointers.data(), values.data()) == 0);
    got.tensors.resize(k.tensors.size());
    check_as_good_as(k, want, plain, got);
  }
  REQUIRE_OK(const cpu::Plan here, cpu::plan_contractions(k, target("native"), tile));
  return here.notes;
}

std::string gemm(int m, int n, int k, const char* a = "A[i, k]", const char* w = "W[k, j]",
                 const char* role = "const") {
  const auto s = [](int x) { return std::to_string(x); };
  const bool a_rows = a[2] == 'i', w_rows = w[2] == 'k';
  return "kernel @gemm {\n in A: f32[" + (a_rows ? s(m) + "," + s(k) : s(k) + "," + s(m)) + "]\n " + role + " W: f32[" +
         (w_rows ? s(k) + "," + s(n) : s(n) + "," + s(k)) + "]\n const B: f32[" + s(n) + "]\n temp T: f32[" + s(m) +
         "," + s(n) + "]\n out Y: f32[" + s(m) + "," + s(n) + "]\n for i < " + s(m) + ", j < " + s(n) +
         ": T[i, j] = sum[k < " + s(k) + "] " + a + " * " + w + "\n for i < " + s(m) + ", j < " + s(n) +
         ": Y[i, j] = max(T[i, j] + B[j], 0.0)\n}\n";
}

}  // namespace

TEST_CASE("matrix products of awkward sizes, every order of the operands", "[.levels]") {
  for (auto [m, n, k] :
       {std::tuple{1, 1, 1}, {1, 100, 7}, {13, 32, 16}, {14, 64, 12}, {29, 33, 5}, {65, 100, 31}, {7, 250, 40}}) {
    INFO(m << " x " << n << " x " << k);
    for (const char* a : {"A[i, k]", "A[k, i]"})
      for (const char* w : {"W[k, j]", "W[j, k]"}) check_plan(kernel(gemm(m, n, k, a, w)));
    check_plan(kernel(gemm(m, n, k, "A[i, k]", "W[j, k]", "in")));
  }
  const auto notes = check_plan(kernel(gemm(64, 96, 32)));
  REQUIRE(notes.size() == 1);  // the epilogue is fused
  CHECK_THAT(notes[0], StartsWith("contraction"));
}

TEST_CASE("every tile shape gives the same product", "[.levels]") {
  for (int vectors : {1, 2, 3, 4})
    for (int cols : {1, 3, 6, 9}) {
      if (vectors * cols + vectors + 1 > 15) continue;
      check_plan(kernel(gemm(20, 112, 24)), {.vectors = vectors, .rows = 1, .cols = cols, .unroll = 3});
    }
  check_plan(kernel(gemm(100, 200, 64)), {.block_bytes = 64 * 64 * 4});
}

TEST_CASE("rows of unknown number", "[.levels]") {
  const Kernel k = kernel(R"(kernel @gemm {
  in A: f32[M,24]
  const W: f32[24,80]
  out Y: f32[M,80]
  for i < M, j < 80: Y[i, j] = sum[k < 24] A[i, k] * W[k, j]
}
)");
  for (int m : {1, 5, 14, 40}) check_plan(k, {}, {{"M", m}});
}

TEST_CASE("batched products, both operands computed", "[.levels]") {
  const auto notes = check_plan(kernel(R"(kernel @scores {
  in Q: f32[3,20,16]
  in K: f32[3,24,16]
  out S: f32[3,20,24]
  for b < 3, i < 20, j < 24: S[b, i, j] = (sum[d < 16] Q[b, i, d] * K[b, j, d]) * 0.25
}
)"));
  CHECK_THAT(notes.back(), StartsWith("contraction"));
}

TEST_CASE("an epilogue that uses the sum twice, beside a loop of one point", "[.levels]") {
  const auto notes = check_plan(kernel(R"(kernel @gelu {
  in X: f32[1,20,24]
  const W: f32[24,40]
  const B: f32[40]
  temp T: f32[20,40]
  out Y: f32[1,20,40]
  for m < 20, n < 40: T[m, n] = sum[k < 24] X[0, m, k] * W[k, n]
  for i < 1, j < 20, l < 40: Y[0, j, l] = (B[l] + T[j, l]) * (erf((B[l] + T[j, l]) / 1.4142135) + 1.0) * 0.5
}
)"));
  REQUIRE_FALSE(notes.empty());  // nothing but panels: the sum is not stored
  for (const std::string& note : notes) {
    CHECK_THAT(note, StartsWith("contraction"));
    CHECK_THAT(note, Contains("j tile"));  // the rows make the register tile, not the loop of one point
  }
}

TEST_CASE("convolutions over blocks of channels", "[.levels]") {
  for (auto [k, stride, h] : {std::tuple{1, 1, 7}, {3, 1, 9}, {3, 2, 13}, {5, 1, 9}}) {
    const int out = (h - k) / stride + 1;
    const auto s = [](int x) { return std::to_string(x); };
    const std::string ks = s(k), o = s(out), hs = s(h), st = s(stride);
    const auto notes = check_plan(kernel(
        "kernel @conv {\n in X: f32[2," + hs + "," + hs + ",16]\n const W: f32[5,2," + ks + "," + ks +
        ",16,16]\n const B: f32[5,16]\n in R: f32[5," + o + "," + o + ",16]\n out Y: f32[5," + o + "," + o + ",16]\n" +
        " for o < 5, y < " + o + ", x < " + o +
        ", oi < 16: Y[o, y, x, oi] = max(B[o, oi] + (sum[c < 2, ci < 16, kh < " + ks + ", kw < " + ks + "] X[c, " + st +
        "*y + kh, " + st + "*x + kw, ci] * W[o, c, kh, kw, ci, oi]) + R[o, y, x, oi], 0)\n}\n"));
    CHECK_THAT(notes.back(), StartsWith("contraction"));
  }
}

TEST_CASE("a padded convolution reads a copy with a halo", "[.levels]") {
  const auto notes = check_plan(kernel(R"(kernel @stem {
  in X: f32[1,3,15,15]
  const W: f32[32,3,7,7]
  out Y: f32[1,2,8,8,16]
  for n < 1, o < 2, y < 8, x < 8, oi < 16:
    Y[n, o, y, x, oi] = sum[c < 3, kh < 7, kw < 7] (X[n, c, 2*y + kh - 3, 2*x + kw - 3] ?: 0) * W[16*o + oi, c, kh, kw]
}
)"));
  REQUIRE(notes.size() >= 2);
  CHECK(notes[0] == "the halo of X");
  CHECK_THAT(notes.back(), StartsWith("contraction"));
}

TEST_CASE("a padded convolution over a batch of unknown size", "[.levels]") {
  const Kernel k = kernel(R"(kernel @conv {
  in X: f32[N,8,9,9]
  const W: f32[16,8,3,3]
  out Y: f32[N,9,9,16]
  for n < N, y < 9, x < 9, o < 16:
    Y[n, y, x, o] = sum[c < 8, kh < 3, kw < 3] (X[n, c, y + kh - 1, x + kw - 1] ?: 0) * W[o, c, kh, kw]
}
)");
  CHECK_THAT(check_plan(k, {}, {{"N", 3}}).back(), StartsWith("contraction"));
}

TEST_CASE("grouped convolution: the group is a batch loop", "[.levels]") {
  const auto notes = check_plan(kernel(R"(kernel @grouped {
  in X: f32[3,8,9,9]
  const W: f32[3,20,8,3,3]
  out Y: f32[3,7,7,20]
  for g < 3, y < 7, x < 7, o < 20: Y[g, y, x, o] = sum[c < 8, kh < 3, kw < 3] X[g, c, y + kh, x + kw] * W[g, o, c, kh, kw]
}
)"));
  CHECK_THAT(notes.back(), StartsWith("contraction"));
}

TEST_CASE("integer products accumulate in 32 bits", "[.levels]") {
  check_plan(kernel(R"(kernel @quantised {
  in A: s8[10,40]
  const W: s8[40,70]
  const B: s32[70]
  out Y: s8[10,70]
  for i < 10, j < 70: Y[i, j] = sat((((sum:s32[k < 40] A[i, k] * W[k, j]) + B[j]) >> 8), s8)
}
)"));
}

TEST_CASE("what does not match says why") {
  const auto note = [](const char* text) {
    REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(kernel(text), target("x86-64-v3")));
    return plan.notes.back();
  };
  CHECK_THAT(note("kernel @k {\n in X: f32[9]\n out Y: f32[9]\n for i < 9: Y[i] = X[i] + 1\n}\n"),
             Contains("it has no reduction"));
  CHECK_THAT(note("kernel @k {\n in X: f32[9,5]\n out Y: f32[9]\n for i < 9: Y[i] = max[k < 5] X[i, k]\n}\n"),
             Contains("no sum of products"));
  CHECK_THAT(note("kernel @k {\n in A: f32[9,5]\n in B: f32[5]\n out Y: f32[9]\n for i < 9: Y[i] = sum[k < 5] exp(A[i, "
                  "k]) * B[k]\n}\n"),
             Contains("does not match, because"));
  CHECK_THAT(note("kernel @k {\n in A: f32[9,K]\n in W: f32[8,K]\n out Y: f32[9,8]\n for i < 9, j < 8: Y[i, j] = sum[k "
                  "< K] A[i, k] * W[j, k]\n}\n"),
             Contains("the extent of k is no constant"));
}
