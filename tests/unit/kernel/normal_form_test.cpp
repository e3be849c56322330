// Every reduction becomes a statement of its own, and leaves its seq when it can.
#include "dlc/kernel/normal_form.h"

#include "dlc_test/catch.h"
#include "kernels.h"

using namespace dlc;

namespace {

// The statements of the normal form, as text.
std::string statements(const std::string& text) {
  auto k = parse_kernel(text);
  if (!k) return to_string(k.error());
  auto n = normalise(*k);
  if (!n) return to_string(n.error());
  if (auto ok = verify(*n); !ok) return to_string(ok.error());
  auto again = normalise(*n);
  if (!again || print(*again) != print(*n)) return "not a fixed point:\n" + print(*again);
  std::string s = print(*n);
  const size_t first = std::min(s.find("\n  for "), s.find("\n  seq "));
  s = s.substr(first + 1);
  return s.substr(0, s.find("  loc"));
}

std::string kernel(const std::string& body) {
  return "dlc.kernel 1\nkernel @k { in X: f32[N,M] in I: s64[N] temp S: f32[N] out Y: f32[N,M] " + body + " }";
}

}  // namespace

TEST_CASE("a kernel in normal form stays as it is") {
  CHECK(statements(kConv).find("acc_1") == std::string::npos);
  CHECK(std::string(kConv).find(statements(kConv)) != std::string::npos);
}

TEST_CASE("softmax needs five statements") {
  CHECK(statements(kSoftmax) ==
        "  for n < N:\n"
        "    E_1[n] = max[j < S] X[n, j]\n"
        "  for n < N, s < S:\n"
        "    E[n, s] = exp(X[n, s] - E_1[n])\n"
        "  for n < N:\n"
        "    Y_1[n] = sum[j < S] E[n, j]\n"
        "  for n < N, s < S:\n"
        "    Y[n, s] = E[n, s] / Y_1[n]\n"
        "}\n");
}

TEST_CASE("the product with the inputs leaves the recurrence, the one with the state stays") {
  CHECK(statements(kLstm) ==
        "  for t < T, b < B, h < H:\n"
        "    Y_1[t, b, h] = sum[i < I] X[t, b, i] * W[h, i]\n"
        "  seq t < T by 1 {\n"
        "    for b < B, h < H:\n"
        "      Y_2[b, h] = sum[k < H] (Y[t - 1, b, k] ?: 0.0) * R[h, k]\n"
        "    for b < B, h < H:\n"
        "      Y[t, b, h] = tanh(Y_1[t, b, h] + Y_2[b, h] + bias[h])\n"
        "  }\n"
        "}\n");
}

TEST_CASE("a reduction leaves only the seqs it does not depend on") {
  CHECK(statements(kernel("seq t < M { for n < N: S[n] = X[n, t]\n"
                          "seq u < N { Y[u, t] = (sum[n < N] S[n]) + (sum[m < M] X[u, m]) } }")) ==
        "  for u < N:\n"
        "    Y_2[u] = sum[m < M] X[u, m]\n"
        "  seq t < M by 1 {\n"
        "    for n < N:\n"
        "      S[n] = X[n, t]\n"
        "    Y_1[] = sum[n < N] S[n]\n"
        "    seq u < N by 1 {\n"
        "      Y[u, t] = Y_1[] + Y_2[u]\n"
        "    }\n"
        "  }\n"
        "}\n");
}

TEST_CASE("a reduction over fewer loops than its statement gets its own") {
  CHECK(statements(kernel("for n < N, m < M: Y[n, m] = sum[j < M] X[n, j]")) ==
        "  for n < N:\n"
        "    Y_1[n] = sum[j < M] X[n, j]\n"
        "  for n < N, m < M:\n"
        "    Y[n, m] = Y_1[n]\n"
        "}\n");
}

TEST_CASE("equal reductions of a statement share one") {
  CHECK(statements(kernel("for n < N, m < M: Y[n, m] = (X[n, m] - (sum[j < M] X[n, j])) * (sum[j < M] X[n, j])")) ==
        "  for n < N:\n"
        "    Y_1[n] = sum[j < M] X[n, j]\n"
        "  for n < N, m < M:\n"
        "    Y[n, m] = (X[n, m] - Y_1[n]) * Y_1[n]\n"
        "}\n");
}

TEST_CASE("reductions in reductions join or become statements over the outer one's loops") {
  CHECK(statements(kernel("for n < N, m < M: Y[n, m] = sum[i < N] sum[j < M] (X[i, j] + X[n, m])")) ==
        "  for n < N, m < M:\n"
        "    Y[n, m] = sum[i < N, j < M] (X[i, j] + X[n, m])\n"
        "}\n");
  CHECK(statements(kernel("for n < N, m < M: Y[n, m] = sum[i < N] X[i, m] * (max[j < M] X[i, j]) * X[n, m]")) ==
        "  for i < N:\n"
        "    Y_1[i] = max[j < M] X[i, j]\n"
        "  for n < N, m < M:\n"
        "    Y[n, m] = sum[i < N] X[i, m] * Y_1[i] * X[n, m]\n"
        "}\n");
}

TEST_CASE("a guarded reduction moves only when it is defined without the guard") {
  const std::string unsafe = statements(kernel("for n < N, m < M: Y[n, m] = (sum[j < 3] X[n, j + m]) ?: 0"));
  CHECK(unsafe == "  for n < N, m < M:\n    Y[n, m] = (sum[j < 3] X[n, j + m]) ?: 0.0\n}\n");
  const std::string safe = statements(kernel("for n < N, m < M: Y[n, m] = if m > 0 then sum[j < M] X[n, j] else 0"));
  CHECK(safe.starts_with("  for n < N:\n    Y_1[n] = sum[j < M] X[n, j]\n"));
  const std::string data =
      statements(kernel("for n < N, m < M: Y[n, m] = if I[n] < N then sum[j < M] X[I[n], j] else 0"));
  CHECK(data.find("Y_1") == std::string::npos);
  const std::string unwritten = statements(
      kernel("seq t < N { for m < M: Y[t, m] = if t == 0 then X[t, m] else sum[n < N] S[n]   S[t] = X[t, 0] }"));
  CHECK(unwritten.find("Y_1") == std::string::npos);
}

TEST_CASE("the position of a largest element stays where there may be none: in its guard, in loops without points") {
  const std::string guarded =
      statements(kernel("for n < N, m < M: Y[n, m] = if m == ((argmax[j < M] X[n, j]) ?: 0) then 1 else 0"));
  CHECK(guarded.find("Y_1") == std::string::npos);
  const std::string plain =
      statements(kernel("for n < N, m < M: Y[n, m] = if m == (argmax[j < M] X[n, j]) then 1 else 0"));
  CHECK(plain.find("Y_1") == std::string::npos);
  const std::string some =
      statements(kernel("for n < N, m < M: Y[n, m] = if m == (argmax[j < M + 1] X[n, j % M]) then 1 else 0"));
  CHECK(some.find("Y_1") == std::string::npos);  // X[n, j % M] has no meaning for M = 0
  const std::string known = statements(
      "dlc.kernel 1\nkernel @k { in X: f32[N,4] out Y: f32[N,4] "
      "for n < N, m < 4: Y[n, m] = if m == ((argmax[j < 4] X[n, j]) ?: 0) then 1 else 0 }");
  CHECK(known.starts_with("  for n < N:\n    Y_1[n] = argmax[j < 4] X[n, j]\n"));
}

TEST_CASE("an invalid kernel is refused") {
  Kernel k;
  k.inputs = {3};
  CHECK_FALSE(normalise(k).has_value());
}
