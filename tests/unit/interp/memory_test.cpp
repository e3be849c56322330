// Views, states, parameters and doubles: what a kernel runs over.
#include "support.h"

using namespace dlc;
using namespace dlc::test;

namespace {

template <class T>
Buffer buffer(std::vector<T>& v) {
  return {reinterpret_cast<std::byte*>(v.data()), static_cast<int64_t>(v.size() * sizeof(T))};
}

// A kernel over a byte memory `mem` with an s16 window at byte `at`, stride `step` bytes.
Kernel window_kernel() {
  Kernel k = kernel(R"(dlc.kernel 1
kernel @k {
  in X: s16[n]
  state mem: u8[32]
  state W: s16[n]
  for i < n: W[i] = W[i] + X[i]
}
)");
  View v;
  v.base = k.find("mem");
  v.byte_offset = Expr::symbol("at");
  v.byte_strides = {Expr::symbol("step")};
  k.tensors[static_cast<size_t>(k.find("W"))].view = v;
  return k;
}

}  // namespace

TEST_CASE("a view is a typed window into another tensor, placed by parameters") {
  for (const bool tree : {true, false}) {
    REQUIRE_OK(const auto p, PreparedKernel::prepare(window_kernel(), {}, {.tree_walk = tree}));
    std::vector<int16_t> x{1, 2, 300};
    std::vector<uint8_t> mem(32, 0);
    std::vector<Buffer> buffers{buffer(x), buffer(mem), Buffer{}};
    REQUIRE(p.run(buffers, {{"n", 3}, {"at", 4}, {"step", 8}}).has_value());
    REQUIRE(p.run(buffers, {{"n", 3}, {"at", 4}, {"step", 8}}).has_value());
    CHECK(mem[4] == 2);
    CHECK(mem[12] == 4);
    CHECK(mem[20] == 600 % 256);
    CHECK(mem[21] == 600 / 256);
    REQUIRE(p.run(buffers, {{"n", 3}, {"at", 30}, {"step", -2}}).has_value());
    CHECK(mem[30] == 1);
    CHECK(mem[28] == 2);
    REQUIRE_ERROR(p.run(buffers, {{"n", 3}, {"at", 26}, {"step", 4}}), "outside the memory it is a view of");
  }
}

TEST_CASE("a state is read and written, and fields choose what happens") {
  const Kernel k = kernel(R"(dlc.kernel 1
kernel @mac {
  in X: s8[8, 4]
  in W: s8[4, 4]
  state acc: s32[8, 4]
  for p < n, c < 4: acc[p, c] = (if accum then acc[p, c] else 0) + (sum:s32[k < 4] (X[p, k] - zp) * W[k, c])
}
)");
  for (const bool tree : {true, false}) {
    REQUIRE_OK(const auto p, PreparedKernel::prepare(k, {}, {.tree_walk = tree}));
    std::vector<int8_t> x(32), w(16);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i);
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(i % 5 == 0 ? 2 : 0);  // twice the identity
    std::vector<int32_t> acc(32, 7);
    const std::vector<Buffer> buffers{buffer(x), buffer(w), buffer(acc)};
    REQUIRE(p.run(buffers, {{"n", 2}, {"accum", 0}, {"zp", 1}}).has_value());
    CHECK(acc[0] == -2);
    CHECK(acc[7] == 12);
    CHECK(acc[8] == 7);
    REQUIRE(p.run(buffers, {{"n", 8}, {"accum", 1}, {"zp", 0}}).has_value());
    CHECK(acc[7] == 26);
    CHECK(acc[31] == 69);
  }
}

TEST_CASE("floats_as_double keeps temporaries in f64") {
  const Kernel k = kernel(R"(dlc.kernel 1
kernel @k {
  in X: f32[1]
  temp T: f32[1]
  out Y: f32[1]
  for i < 1: T[i] = X[i] + 16777216
  for i < 1: Y[i] = T[i] - 16777216
}
)");
  for (const bool tree : {true, false}) {
    REQUIRE_OK(const auto single, run_kernel(k, std::vector<Tensor>{floats({1}, {1})}, {.tree_walk = tree}));
    CHECK(elements(single[0])[0] == 0);
    REQUIRE_OK(const auto twice,
               run_kernel(k, std::vector<Tensor>{floats({1}, {1})}, {.floats_as_double = true, .tree_walk = tree}));
    CHECK(elements(twice[0])[0] == 1);
  }
}

TEST_CASE("integers of odd widths wrap to their width") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: s32[3]
  temp T: s9[3]
  temp U: u3[3]
  out Y: s32[3]
  for i < 3: T[i] = X[i]
  for i < 3: U[i] = X[i]
  for i < 3: Y[i] = T[i]*10 + U[i]
}
)",
                 {tensor<int>(kS32, {3}, {255, 256, -1})}) == std::vector<double>{2557, -2560, -3});
}
