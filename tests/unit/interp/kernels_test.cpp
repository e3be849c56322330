// Kernels as the op records make them, against values computed by hand.
#include <cmath>

#include "support.h"

using namespace dlc;
using namespace dlc::test;
using Values = std::vector<double>;

TEST_CASE("element-wise with broadcast and a default") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[2,3]
  in B: f32[3]
  out Y: f32[2,3]
  for i < 2, j < 3: Y[i, j] = max(X[i, j] + B[j], 0)
}
)",
                 {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3}, {-2, 0, -10})}) == Values{0, 2, 0, 2, 5, 0});
}

TEST_CASE("matrix product") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in A: f32[2,3]
  in B: f32[3,2]
  out Y: f32[2,2]
  for i < 2, j < 2: Y[i, j] = sum:f32[k < 3] A[i, k] * B[k, j]
}
)",
                 {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3, 2}, {1, 0, 0, 1, 2, 2})}) == Values{7, 8, 16, 17});
}

TEST_CASE("convolution with a padding guard") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[1,1,3,3]
  in W: f32[1,1,3,3]
  out Y: f32[1,1,3,3]
  for n < 1, o < 1, y < 3, x < 3:
    Y[n, o, y, x] = sum:f32[c < 1, kh < 3, kw < 3] (X[n, c, y + kh - 1, x + kw - 1] ?: 0) * W[o, c, kh, kw]
}
)",
                 {floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), floats({1, 1, 3, 3}, Values(9, 1))}) ==
        Values{12, 21, 16, 27, 45, 33, 24, 39, 28});
}

TEST_CASE("strided and dilated convolution") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[1,8]
  in W: f32[2,1,2]
  out Y: f32[2,3]
  for o < 2, x < 3: Y[o, x] = sum:f32[c < 1, k < 2] (X[c, 2*x + 3*k - 1] ?: 0) * W[o, c, k]
}
)",
                 {floats({1, 8}, {1, 2, 3, 4, 5, 6, 7, 8}), floats({2, 1, 2}, {1, 10, 100, 1000})}) ==
        Values{30, 52, 74, 3000, 5200, 7400});
}

TEST_CASE("grouped convolution reads its group's channels") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[4,2]
  in W: f32[4,2]
  out Y: f32[4,2]
  for o < 4, x < 2: Y[o, x] = sum:f32[c < 2] X[(o // 2)*2 + c, x] * W[o, c]
}
)",
                 {floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), floats({4, 2}, {1, 0, 0, 1, 1, 1, 2, 0})}) ==
        Values{1, 2, 3, 4, 12, 14, 10, 12});
}

TEST_CASE("softmax over the last axis") {
  const auto y = run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[2,3]
  temp M: f32[2]
  temp E: f32[2,3]
  out Y: f32[2,3]
  for i < 2: M[i] = max:f32[j < 3] X[i, j]
  for i < 2, j < 3: E[i, j] = exp(X[i, j] - M[i])
  for i < 2, j < 3: Y[i, j] = E[i, j] / (sum:f32[k < 3] E[i, k])
}
)",
                          {floats({2, 3}, {0, 0, 0, 0, std::log(2.0), 100})});
  CHECK(y[0] == Approx(1.0 / 3));
  CHECK(y[5] == Approx(1.0));
}

TEST_CASE("max pool with padding takes the lowest value outside") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: s8[4]
  out Y: s8[3]
  for x < 3: Y[x] = max:s8[k < 2] (X[2*x + k - 1] ?: -inf)
}
)",
                 {tensor<int>(kS8, {4}, {-5, -7, 3, -128})}) == Values{-5, 3, -128});
}

TEST_CASE("cumulative sum forward and backward in a seq") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[4]
  out Y: f32[4]
  seq t < 4 by 1 { Y[t] = (Y[t - 1] ?: 0) + X[t] }
}
)",
                 {floats({4}, {1, 2, 3, 4})}) == Values{1, 3, 6, 10});
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[4]
  out Y: f32[4]
  seq t < 4 by -1 { Y[t] = (Y[t + 1] ?: 0) + X[t] }
}
)",
                 {floats({4}, {1, 2, 3, 4})}) == Values{10, 9, 7, 4});
}

TEST_CASE("gather and scatter") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[3,2]
  in I: s64[4]
  out Y: f32[4,2]
  for i < 4, j < 2: Y[i, j] = X[I[i], j]
}
)",
                 {floats({3, 2}, {1, 2, 3, 4, 5, 6}), tensor<int>(kS64, {4}, {2, 0, 0, 1})}) ==
        Values{5, 6, 1, 2, 1, 2, 3, 4});
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in I: s64[4]
  in U: f32[4]
  out Y: f32[3]
  for i < 3: Y[i] = 0
  seq n < 4 by 1 { Y[I[n]] = Y[I[n]] + U[n] }
}
)",
                 {tensor<int>(kS64, {4}, {2, 0, 2, 2}), floats({4}, {1, 10, 100, 1000})}) == Values{10, 0, 1101});
}

TEST_CASE("integer convolution with zero points is exact and wraps at the store") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: u8[1,3]
  in W: s8[2,1,2]
  in Z: u8[1]
  temp acc: s32[2,2]
  out Y: s8[2,2]
  for o < 2, x < 2: acc[o, x] = sum:s32[c < 1, k < 2] (X[c, x + k] - Z[0]) * W[o, c, k]
  for o < 2, x < 2: Y[o, x] = acc[o, x]
}
)",
                 {tensor<int>(kU8, {1, 3}, {130, 120, 255}), tensor<int>(kS8, {2, 1, 2}, {1, 2, -3, 100}),
                  tensor<int>(kU8, {1}, {128})}) == Values{-14, -10, -38, -76});
}

TEST_CASE("16-bit floats round at the store") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[2]
  out Y: f16[2]
  out Z: bf16[2]
  for i < 2: Y[i] = X[i]
  for i < 2: Z[i] = X[i] + 0
}
)",
                 {floats({2}, {1.0 + 0x1p-12, 65536})}) == Values{1, HUGE_VAL});
}

TEST_CASE("argmax takes the first of equals") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: f32[2,4]
  out Y: s64[2]
  for i < 2: Y[i] = argmax[j < 4] X[i, j]
}
)",
                 {floats({2, 4}, {1, 3, 3, 2, -1, -1, -2, -1})}) == Values{1, 0});
}

TEST_CASE("if is lazy and division by zero is undefined") {
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: s32[3]
  in D: s32[3]
  out Y: s32[3]
  for i < 3: Y[i] = if D[i] == 0 then -1 else X[i] // D[i]
}
)",
                 {tensor<int>(kS32, {3}, {7, -7, 5}), tensor<int>(kS32, {3}, {2, 2, 0})}) == Values{3, -4, -1});
  CHECK(run_both(R"(dlc.kernel 1
kernel @k {
  in X: s32[3]
  in D: s32[3]
  out Y: s32[3]
  for i < 3: Y[i] = X[i] % D[i] ?: X[i + 2] ?: 99
}
)",
                 {tensor<int>(kS32, {3}, {7, -7, 5}), tensor<int>(kS32, {3}, {0, 2, 0})}) == Values{5, 1, 99});
}

TEST_CASE("loops of no steps need no meaning of a remainder by their extent") {
  const std::string text = R"(dlc.kernel 1
kernel @k {
  in    X: f32[N]
  out   S: f32[2]
  temp  T: f32[2*N]
  for o < 2*N: T[o] = X[o % N]
  seq k < N {
    for o < 2: S[o] = X[k % N]
  }
  for o < 2: S[o] = sum[k < 2*N] T[k] * X[k % N]
}
)";
  const Kernel k = kernel(text);
  const Tensor none = floats({0}, {});
  for (const bool tree_walk : {true, false}) {
    REQUIRE_OK(const auto y, run_kernel(k, std::vector<Tensor>{none}, {.tree_walk = tree_walk}));
    CHECK(elements(y[0]) == std::vector<double>{0, 0});
  }
  CHECK(run_both(text, {floats({2}, {1, 2})}) == std::vector<double>{10, 10});
}
