// Kernels and values the tests share, kernels in canonical text.
#pragma once

#include "dlc/kernel/kernel.h"

inline dlc::Val sym(const char* name) { return dlc::val::index(dlc::Expr::symbol(name)); }

inline constexpr const char* kConv = R"(dlc.kernel 1
kernel @conv1 {
  in    X: s8[1,64,58,58]
  const W: s8[64,64,3,3]
  const B: s32[64]
  temp  acc: s32[1,64,56,56]
  out   Y: s8[1,64,56,56]
  for n < 1, o < 64, y < 56, x < 56:
    acc[n, o, y, x] = sum:s32[c < 64, kh < 3, kw < 3] X[n, c, kh + y, kw + x] * W[o, c, kh, kw]
  for n < 1, o < 64, y < 56, x < 56:
    Y[n, o, y, x] = sat(max(acc[n, o, y, x] + B[o], 0), s8)
  loc "layer1.0.conv1", "layer1.0.relu"
}
)";

inline constexpr const char* kSoftmax = R"(dlc.kernel 1
kernel @softmax {
  in    X: f32[N,S]
  temp  E: f32[N,S]
  out   Y: f32[N,S]
  for n < N, s < S:
    E[n, s] = exp(X[n, s] - (max[j < S] X[n, j]))
  for n < N, s < S:
    Y[n, s] = E[n, s] / (sum[j < S] E[n, j])
}
)";

// One gate of a recurrent network: the part of X is a matrix product over all steps, the part of H is not.
inline constexpr const char* kLstm = R"(dlc.kernel 1
kernel @lstm {
  in    X: f32[T,B,I]
  const W: f32[H,I]
  const R: f32[H,H]
  const bias: f32[H]
  out   Y: f32[T,B,H]
  seq t < T by 1 {
    for b < B, h < H:
      Y[t, b, h] = tanh((sum[i < I] X[t, b, i] * W[h, i]) + (sum[k < H] (Y[t - 1, b, k] ?: 0.0) * R[h, k]) + bias[h])
  }
}
)";

inline constexpr const char* kEverything = R"(dlc.kernel 1
kernel @"every/thing" {
  in    I: s64[N]
  in    X: f16[N,C]
  state cache: bf16[M,C]
  temp  raw: u8[16*N]
  temp  words: s32[4*N] view raw at 0 strides [4]
  out   Y: f32[N,C]
  out   hit: bool[N]
  inputs [X, -, I, cache]
  outputs [hit, Y]
  assume M - N >= 0
  assume -M + N >= 0
  for n < N:
    hit[n] = I[n] >= 0 and I[n] < M
  seq n < N by -1 {
    for c < C:
      cache[I[n] % M, c] = X[n, c] ?: 0.0
  }
  for n < N:
    raw[n] = n % 256
  for n < N, c < C:
    Y[n, c] = if hit[n] then cache[I[n], c] else cast(words[n // 2] + (if I[n] == 3 then 1 else n), f32)
  loc "a \"quoted\" name"
}
)";
