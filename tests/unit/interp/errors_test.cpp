// Every error names the kernel, the statement and the point, and both ways of evaluation give the same one.
#include "support.h"

using namespace dlc;
using namespace dlc::test;
using Catch::Matchers::Contains;

TEST_CASE("a store out of bounds is an error") {
  const auto e = error_of(R"(dlc.kernel 1
kernel @late {
  in X: f32[4]
  out Y: f32[4]
  for i < 4: Y[i + 2] = X[i]
}
)",
                          {floats({4}, {1, 2, 3, 4})});
  CHECK_THAT(e,
             Contains("kernel late") && Contains("i=2") && Contains("Y[") && Contains("index 0 is 4, the extent is 4"));
}

TEST_CASE("a scattered store out of bounds is an error") {
  const auto e = error_of(R"(dlc.kernel 1
kernel @k {
  in I: s64[3]
  out Y: f32[4]
  for i < 3: Y[I[i]] = 1
}
)",
                          {tensor<int>(kS64, {3}, {1, -1, 2})});
  CHECK_THAT(e, Contains("i=1") && Contains("index 0 is -1"));
}

TEST_CASE("an undefined value at a store is an error") {
  const auto e = error_of(R"(dlc.kernel 1
kernel @k {
  in X: f32[4]
  out Y: f32[4]
  for i < 4: Y[i] = X[i + 1]
}
)",
                          {floats({4}, {1, 2, 3, 4})});
  CHECK_THAT(e, Contains("an undefined value is stored to Y") && Contains("i=3"));
}

TEST_CASE("an undefined value inside a reduction is an error") {
  const auto e = error_of(R"(dlc.kernel 1
kernel @k {
  in X: f32[4]
  in W: f32[2]
  out Y: f32[4]
  for i < 4: Y[i] = sum:f32[k < 2] X[i + k] * W[k]
}
)",
                          {floats({4}, {1, 2, 3, 4}), floats({2}, {1, 1})});
  CHECK_THAT(e, Contains("undefined value") && Contains("i=3"));
}

TEST_CASE("an undefined condition is an error, but only where it is evaluated") {
  const std::string text = R"(dlc.kernel 1
kernel @k {
  in X: f32[4]
  in N: s64[1]
  out Y: f32[4]
  for i < 4: Y[i] = if i < N[0] then (if X[i + 1] > 0 then 1 else 2) else 3
}
)";
  const auto x = floats({4}, {1, 2, -3, 4});
  CHECK(run_both(text, {x, tensor<int>(kS64, {1}, {3})}) == std::vector<double>{1, 2, 1, 3});
  CHECK_THAT(error_of(text, {x, tensor<int>(kS64, {1}, {4})}), Contains("a condition is undefined") && Contains("i=3"));
}

TEST_CASE("an error inside a seq names the seq's point") {
  const auto e = error_of(R"(dlc.kernel 1
kernel @k {
  in X: f32[4]
  out Y: f32[4]
  seq t < 4 by 1 { for i < 1: Y[t + i] = X[t + i + 1] }
}
)",
                          {floats({4}, {1, 2, 3, 4})});
  CHECK_THAT(e, Contains("t=3, i=0"));
}

TEST_CASE("shapes and dtypes of operands are checked") {
  const Kernel k = kernel(R"(dlc.kernel 1
kernel @k {
  in X: f32[N, 2*N]
  in B: f32[N]
  out Y: f32[N, 2*N]
  for i < N, j < 2*N: Y[i, j] = X[i, j] + B[i]
}
)");
  const auto x = floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  REQUIRE_ERROR(run_kernel(k, std::vector<Tensor>{x}), "takes 2 operands, 1 were given");
  REQUIRE_ERROR(run_kernel(k, std::vector<Tensor>{x, floats({3}, {1, 2, 3})}), "tensor B is f32[2], f32[3] was given");
  REQUIRE_ERROR(run_kernel(k, std::vector<Tensor>{x, tensor<int>(kS32, {2}, {1, 2})}), "B is f32, s32 was given");
  REQUIRE_ERROR(run_kernel(k, std::vector<Tensor>{x, floats({2, 1}, {1, 2})}), "B has rank 1, rank 2 was given");
  REQUIRE_ERROR(run_kernel(k, std::vector<Tensor>{x, Tensor()}), "B was not given");
  REQUIRE_OK(const auto y, run_kernel(k, std::vector<Tensor>{x, floats({2}, {10, 20})}));
  CHECK(elements(y[0]) == std::vector<double>{11, 12, 13, 14, 25, 26, 27, 28});
}

TEST_CASE("a dim that only a product names is solved or refused") {
  const Kernel k = kernel(R"(dlc.kernel 1
kernel @k {
  in X: f32[2*N + 1]
  out Y: f32[N]
  for i < N: Y[i] = X[2*i]
}
)");
  REQUIRE_OK(const auto y, run_kernel(k, std::vector<Tensor>{floats({5}, {1, 2, 3, 4, 5})}));
  CHECK(elements(y[0]) == std::vector<double>{1, 3});
  REQUIRE_ERROR(run_kernel(k, std::vector<Tensor>{floats({4}, {1, 2, 3, 4})}), "but the dim is");
}

TEST_CASE("assumptions over dims are checked at run time") {
  Kernel k = kernel(R"(dlc.kernel 1
kernel @k {
  in X: f32[N]
  in Z: f32[M]
  out Y: f32[N]
  for i < N: Y[i] = X[i] + Z[i]
}
)");
  const Expr n = Expr::symbol("N"), m = Expr::symbol("M");
  k.assumptions = {n - m, m - n};
  const auto x = floats({2}, {1, 2});
  REQUIRE_OK(const auto y, run_kernel(k, std::vector<Tensor>{x, x}));
  CHECK(elements(y[0]) == std::vector<double>{2, 4});
  REQUIRE_ERROR(run_kernel(k, std::vector<Tensor>{x, floats({1}, {1})}), "M=1, N=2");
}

TEST_CASE("buffers and parameters of a prepared kernel are checked") {
  const Kernel k = kernel(R"(dlc.kernel 1
kernel @k {
  in X: f32[N]
  out Y: f32[N]
  for i < N: Y[i] = X[i]
}
)");
  REQUIRE_OK(const auto p, PreparedKernel::prepare(k));
  std::vector<float> x(4), y(4);
  const auto bytes = [](std::vector<float>& v, int64_t n) { return Buffer{reinterpret_cast<std::byte*>(v.data()), n}; };
  REQUIRE_ERROR(p.run(std::vector{bytes(x, 16), bytes(y, 16)}), "no value for the symbol N");
  REQUIRE_ERROR(p.run(std::vector{bytes(x, 16)}, {{"N", 4}}), "has 2 tensors, 1 buffers were given");
  REQUIRE_ERROR(p.run(std::vector{bytes(x, 16), bytes(y, 12)}, {{"N", 4}}), "Y needs 16 bytes, its buffer has 12");
  REQUIRE_ERROR(p.run(std::vector{bytes(x, 16), Buffer{}}, {{"N", 4}}), "Y needs 16 bytes, its buffer has 0");
  REQUIRE_ERROR(p.run(std::vector{bytes(x, 16), bytes(y, 16)}, {{"N", -1}}), "negative");
  CHECK(p.run(std::vector{bytes(x, 16), bytes(y, 16)}, {{"N", 4}}).has_value());
  CHECK(p.run(std::vector{bytes(x, 16), bytes(y, 16)}, {{"N", 0}}).has_value());
}
