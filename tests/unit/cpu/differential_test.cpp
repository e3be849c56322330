// Kernels from text, compiled and interpreted.
#include <limits>

#include "support.h"

using namespace dlc;
using namespace dlc::test;

TEST_CASE("element-wise kernels of every length around a vector", "[.levels]") {
  for (int n : {0, 1, 3, 4, 15, 16, 17, 31, 33, 64, 100}) {
    INFO("length " << n);
    check_against_interpreter(
        "kernel @k {\n in X: f32[N]\n in B: f32[N]\n out Y: f32[N]\n"
        "for i < N: Y[i] = max(X[i] * B[i] + 1.0, 0.0)\n}\n",
        {.dims = {{"N", n}}});
    check_against_interpreter("kernel @k {\n in X: s8[" + std::to_string(n) + "]\n out Y: s32[" + std::to_string(n) +
                              "]\nfor i < " + std::to_string(n) + ": Y[i] = X[i] * 3 - 7\n}\n");
  }
}

TEST_CASE("loops that are walked as one are one", "[.levels]") {
  const Kernel k = kernel(R"(kernel @relu {
  in X: f32[1,8,7,5]
  out Y: f32[1,8,7,5]
  for n < 1, c < 8, y < 7, x < 5: Y[n, c, y, x] = max(X[n, c, y, x], 0)
}
)");
  CHECK(cpu::to_string(cpu::default_schedule(k, k.body[0], target("x86-64-v4"))) == "x vector 1x16");
  check_against_interpreter(k);
}

TEST_CASE("broadcasts, permutations, slices, concatenation", "[.levels]") {
  check_against_interpreter(R"(kernel @bias {
  in X: f32[3,20,5]
  in B: f32[20]
  out Y: f32[3,20,5]
  for n < 3, c < 20, x < 5: Y[n, c, x] = X[n, c, x] + B[c]
}
)");
  check_against_interpreter(R"(kernel @transpose {
  in X: f32[37,21]
  out Y: f32[21,37]
  for i < 21, j < 37: Y[i, j] = X[j, i]
}
)");
  check_against_interpreter(R"(kernel @flip {
  in X: s16[40]
  out Y: s16[40]
  for i < 40: Y[i] = X[39 - i]
}
)");
  check_against_interpreter(R"(kernel @concat {
  in A: s8[5,30]
  in B: s8[5,50]
  out Y: s8[5,80]
  for i < 5, j < 80: Y[i, j] = if j < 30 then A[i, j] else B[i, j - 30]
}
)");
  check_against_interpreter(R"(kernel @repeat {
  in X: f32[4,9]
  out Y: f32[8,27]
  for i < 8, j < 27: Y[i, j] = X[i // 2, j % 9]
}
)");
  check_against_interpreter(R"(kernel @pad {
  in X: f32[6,11]
  out Y: f32[9,20]
  for i < 9, j < 20: Y[i, j] = X[i - 2, j - 3] ?: 7.5
}
)");
}

TEST_CASE("matrix products in every operand order and awkward sizes", "[.levels]") {
  for (const char* b : {"B[k, j]", "B[j, k]"}) {
    for (const char* a : {"A[i, k]", "A[k, i]"}) {
      const std::string k = std::string("kernel @mm {\n in A: f32[") + (a[2] == 'i' ? "M,K" : "K,M") +
                            "]\n in B: f32[" + (b[2] == 'k' ? "K,N" : "N,K") + "]\n in C: f32[N]\n out Y: f32[M,N]\n" +
                            "for i < M, j < N: Y[i, j] = (sum[k < K] " + a + " * " + b + ") + C[j]\n}\n";
      for (auto [m, n, kk] : {std::tuple{1, 1, 1}, {17, 33, 9}, {5, 100, 64}, {3, 16, 0}, {29, 47, 31}})
        check_against_interpreter(k, {.dims = {{"M", m}, {"N", n}, {"K", kk}}, .tolerance = 1e-5});
    }
  }
}

TEST_CASE("convolutions: padded, strided, dilated, grouped, depthwise", "[.levels]") {
  check_against_interpreter(R"(kernel @conv {
  in X: f32[2,3,10,11]
  in W: f32[5,3,3,3]
  in B: f32[5]
  out Y: f32[2,5,10,11]
  for n < 2, o < 5, y < 10, x < 11:
    Y[n, o, y, x] = max(B[o] + (sum[c < 3, kh < 3, kw < 3] (X[n, c, y + kh - 1, x + kw - 1] ?: 0) * W[o, c, kh, kw]), 0)
}
)",
                            {.tolerance = 1e-5});
  check_against_interpreter(R"(kernel @strided {
  in X: f32[1,4,17,17]
  in W: f32[6,2,3,3]
  out Y: f32[1,6,7,7]
  for n < 1, o < 6, y < 7, x < 7:
    Y[n, o, y, x] = sum[c < 2, kh < 3, kw < 3] (X[n, (o // 3)*2 + c, 2*y + 2*kh - 1, 2*x + 2*kw - 1] ?: 0) * W[o, c, kh, kw]
}
)",
                            {.tolerance = 1e-5});
  check_against_interpreter(R"(kernel @depthwise {
  in X: f32[1,3,9,9,16]
  in W: f32[3,3,3,16]
  out Y: f32[1,3,7,7,16]
  for n < 1, c1 < 3, y < 7, x < 7, c0 < 16:
    Y[n, c1, y, x, c0] = sum[kh < 3, kw < 3] X[n, c1, y + kh, x + kw, c0] * W[c1, kh, kw, c0]
}
)",
                            {.tolerance = 1e-5});
  check_against_interpreter(R"(kernel @quantised {
  in X: s8[1,8,12,12]
  in W: s8[10,8,3,3]
  in B: s32[10]
  temp acc: s32[1,10,10,10]
  out Y: s8[1,10,10,10]
  for n < 1, o < 10, y < 10, x < 10:
    acc[n, o, y, x] = sum:s32[c < 8, kh < 3, kw < 3] X[n, c, kh + y, kw + x] * W[o, c, kh, kw]
  for n < 1, o < 10, y < 10, x < 10:
    Y[n, o, y, x] = sat(max((acc[n, o, y, x] + B[o] // 1024) >> 9, 0), s8)
}
)");
}

TEST_CASE("pools and reductions over each axis", "[.levels]") {
  check_against_interpreter(R"(kernel @maxpool {
  in X: f32[1,3,11,13]
  out Y: f32[1,3,6,7]
  for n < 1, c < 3, y < 6, x < 7: Y[n, c, y, x] = max[kh < 3, kw < 3] (X[n, c, 2*y + kh - 1, 2*x + kw - 1] ?: -inf)
}
)");
  check_against_interpreter(R"(kernel @rows {
  in X: f32[7,131]
  out S: f32[7]
  out P: f32[131]
  out M: s64[7]
  out L: s64[131]
  for i < 7: S[i] = sum[j < 131] (X[i, j] * X[i, j])
  for j < 131: P[j] = max[i < 7] X[i, j]
  for i < 7: M[i] = argmax[j < 131] X[i, j]
  for j < 131: L[j] = argmin[i < 7] X[i, j]
}
)",
                            {.tolerance = 1e-5});
  check_against_interpreter(R"(kernel @integers {
  in X: s8[9,50]
  in U: u8[9,50]
  in Q: u64[9,50]
  out S: s16[9]
  out P: s8[9]
  out A: u8[9]
  out B: u64[9]
  out C: bool[9]
  for i < 9: S[i] = sum:s16[j < 50] (X[i, j] * U[i, j])
  for i < 9: P[i] = prod:s8[j < 50] X[i, j]
  for i < 9: A[i] = max:u8[j < 50] (X[i, j] + U[i, j])
  for i < 9: B[i] = min:u64[j < 50] Q[i, j]
  for i < 9: C[i] = any[j < 50] (X[i, j] == 77)
}
)");
}

TEST_CASE("softmax, layer norm, gelu", "[.levels]") {
  check_against_interpreter(R"(kernel @softmax {
  in    X: f32[N,S]
  temp  E: f32[N,S]
  out   Y: f32[N,S]
  for n < N, s < S:
    E[n, s] = exp(X[n, s] - (max[j < S] X[n, j]))
  for n < N, s < S:
    Y[n, s] = E[n, s] / (sum[j < S] E[n, j])
}
)",
                            {.dims = {{"N", 5}, {"S", 77}}, .low = -30, .high = 30});
  check_against_interpreter(R"(kernel @norm {
  in X: f32[6,100]
  in G: f32[100]
  temp M: f32[6]
  temp V: f32[6]
  out Y: f32[6,100]
  for i < 6: M[i] = (sum[j < 100] X[i, j]) / 100
  for i < 6: V[i] = (sum[j < 100] (X[i, j] - M[i]) * (X[i, j] - M[i])) / 100
  for i < 6, j < 100: Y[i, j] = (X[i, j] - M[i]) * rsqrt(V[i] + 0.00001) * G[j]
}
)",
                            {.tolerance = 1e-5});
  check_against_interpreter(R"(kernel @gelu {
  in X: f32[1000]
  out Y: f32[1000]
  for i < 1000: Y[i] = 0.5 * X[i] * (1.0 + erf(X[i] * 0.7071067811865476))
}
)",
                            {.low = -6, .high = 6});
}

TEST_CASE("element types: loads, stores, casts", "[.levels]") {
  for (const char* from :
       {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "bool", "s9", "u31"}) {
    for (const char* to :
         {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "bool", "s9", "u31"}) {
      INFO(from << " to " << to);
      const std::string f = from, t = to;
      const auto is_float = [](const std::string& d) { return d.find('f') != std::string::npos; };
      const std::string stored = is_float(f) == is_float(t) ? "X[i]" : "cast(X[i], " + t + ")";
      check_against_interpreter(
          "kernel @store {\n in X: " + f + "[37]\n out Y: " + t + "[37]\nfor i < 37: Y[i] = " + stored + "\n}\n",
          {.low = -300, .high = 300});
      check_against_interpreter("kernel @cast {\n in X: " + f +
                                    "[37]\n out Y: f64[37]\n out Z: " + (t[0] == 's' || t[0] == 'u' ? "s64" : "f64") +
                                    "[37]\n" + "for i < 37: Y[i] = cast(X[i], " + t + ")\n" + "for i < 37: Z[i] = " +
                                    (t[0] == 's' || t[0] == 'u' ? "sat" : "cast") + "(X[i], " + t + ")\n}\n",
                                {.low = -300, .high = 300});
    }
  }
}

TEST_CASE("integer operators", "[.levels]") {
  for (const char* type : {"s8", "s32", "s64", "u64"}) {
    const std::string t = type;
    check_against_interpreter(
        "kernel @ops {\n in X: " + t + "[50]\n in Y: " + t + "[50]\n out A: s64[50]\n out B: s64[50]\n" +
        "out C: s64[50]\n out D: s64[50]\n out E: s64[50]\n out F: bool[50]\n out G: " + t + "[50]\n" +
        "for i < 50: A[i] = (X[i] // Y[i]) ?: 99\n" + "for i < 50: B[i] = (X[i] % Y[i]) ?: 98\n" +
        "for i < 50: C[i] = (X[i] << (Y[i] & 31)) ^ (X[i] >> (Y[i] & 63))\n" +
        "for i < 50: D[i] = tdiv(X[i], Y[i]) ?: 97\n" +
        "for i < 50: E[i] = min(X[i], Y[i]) + max(abs(X[i]), sign(Y[i])) | ~X[i]\n" +
        "for i < 50: F[i] = X[i] < Y[i] and not (X[i] == 3) or Y[i] >= 100\n" +
        "for i < 50: G[i] = cast(pow(X[i], Y[i] & 7), s64) + (X[i] // 7) * (X[i] % 16) - (-X[i])\n}\n");
  }
}

TEST_CASE("float functions and rounding", "[.levels]") {
  for (const char* type : {"f32", "f64"}) {
    const std::string t = type;
    for (const char* f :
         {"exp",   "log",   "sin", "cos",  "tan",   "asin", "acos", "atan",  "sinh", "cosh",  "tanh", "asinh",
          "acosh", "atanh", "erf", "sqrt", "rsqrt", "abs",  "sign", "floor", "ceil", "round", "trunc"}) {
      INFO(f << " of " << t);
      check_against_interpreter(
          "kernel @f {\n in X: " + t + "[203]\n out Y: " + t + "[203]\nfor i < 203: Y[i] = " + f + "(X[i])\n}\n",
          {.low = -4, .high = 4});
    }
    check_against_interpreter("kernel @f {\n in X: " + t + "[203]\n in Z: " + t + "[203]\n out Y: " + t +
                                  "[203]\n out V: bool[203]\n" +
                                  "for i < 203: Y[i] = pow(abs(X[i]), Z[i]) + fmod(X[i], Z[i]) + ((X[i] % Z[i]) ?: 0) "
                                  "+ ((X[i] // Z[i]) ?: 0) + max(X[i], Z[i]) - min(X[i], 0)\n" +
                                  "for i < 203: V[i] = is_nan(X[i]) or is_inf(Z[i]) or X[i] != Z[i]\n}\n",
                              {.low = -4, .high = 4});
  }
}

TEST_CASE("gather, scatter, sequences, views", "[.levels]") {
  check_against_interpreter(R"(kernel @gather {
  in X: f32[10,24]
  in I: s64[30]
  out Y: f32[30,24]
  for i < 30, j < 24: Y[i, j] = X[((I[i] % 10) + 10) % 10, j]
}
)");
  check_against_interpreter(R"(kernel @lookup {
  in T: s16[256]
  in X: u8[100]
  out Y: s16[100]
  for i < 100: Y[i] = T[X[i]]
}
)");
  check_against_interpreter(R"(kernel @histogram {
  in X: u8[100]
  out Y: s32[256]
  for i < 256: Y[i] = 0
  seq i < 100 by 1 {
    Y[X[i]] = Y[X[i]] + 1
  }
}
)");
  check_against_interpreter(R"(kernel @cumsum {
  in X: f32[20,33]
  out Y: f32[20,33]
  seq t < 20 by -1 {
    for j < 33: Y[t, j] = X[t, j] + (Y[t + 1, j] ?: 0)
  }
}
)");
  check_against_interpreter(R"(kernel @views {
  in X: f32[4,8]
  temp raw: u8[256]
  temp left: f32[4,8] view raw at 0 strides [64, 4]
  temp right: f32[4,8] view raw at 32 strides [64, 4]
  temp whole: f32[4,16] view raw at 0 strides [64, 4]
  out Y: f32[4,16]
  for i < 4, j < 8: left[i, j] = X[i, j] + 1
  for i < 4, j < 8: right[i, j] = X[i, j] * 2
  for i < 4, j < 16: Y[i, j] = whole[i, j]
}
)");
}

TEST_CASE("an undefined value at a store is an error with the statement's number", "[.levels]") {
  const Kernel k = kernel(R"(kernel @bad {
  in X: f32[10]
  in I: s64[20]
  out Y: f32[20]
  out Z: f32[20]
  for i < 20: Y[i] = X[i] ?: 0
  for i < 20: Z[i] = X[I[i]]
}
)");
  for (const auto& [name, target, opt_level] : levels()) {
    const cpu::Unit unit{&k, {}};
    REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target));
    Memory m = memory(k, {});
    for (int64_t i = 0; i < 20; ++i) m.tensors[1].set_int(i, i % 10);
    auto pointers = m.pointers();
    CHECK(code.kernels()[0].entry(pointers.data(), nullptr) == 0);
    m.tensors[1].set_int(19, 10);
    pointers = m.pointers();
    CHECK(code.kernels()[0].entry(pointers.data(), nullptr) == 2);
    m.tensors[1].set_int(19, -1);
    pointers = m.pointers();
    CHECK(code.kernels()[0].entry(pointers.data(), nullptr) == 2);
  }
}

TEST_CASE("max and min keep NaN, argmax takes it", "[.levels]") {
  const Kernel k = kernel(R"(kernel @nan {
  in X: f32[40]
  out R: f32[40]
  out M: f32[1]
  out A: s64[1]
  for i < 40: R[i] = max(min(X[i], 6.0), 0.0)
  for o < 1: M[o] = max[i < 40] X[i]
  for o < 1: A[o] = argmax[i < 40] X[i]
}
)");
  for (const auto& [name, target, opt_level] : levels()) {
    const cpu::Unit unit{&k, {}};
    REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target));
    Memory m = memory(k, {});
    m.tensors[0].set_double(21, std::numeric_limits<double>::quiet_NaN());
    auto pointers = m.pointers();
    REQUIRE(code.kernels()[0].entry(pointers.data(), nullptr) == 0);
    CHECK(std::isnan(m.tensors[1].get_double(21)));
    CHECK(std::isnan(m.tensors[2].get_double(0)));
    CHECK(m.tensors[3].get_int(0) == 21);
  }
}
