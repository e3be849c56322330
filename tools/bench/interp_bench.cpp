// Speed of the kernel interpreter: nanoseconds per multiply-accumulate, and what a small run costs, as JSON.
//
//   bench_interp            {"conv_f32":{"ns_per_mac":0.21,...},...}
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "dlc/interp/interp.h"

namespace {

using dlc::Tensor;

struct Case {
  std::string name;
  std::string text;
  double operations;  // multiply-accumulates, or elements where there are none
  dlc::Bindings parameters;
};

std::string conv(const std::string& in, const std::string& acc) {
  return fmt::format(R"(dlc.kernel 1
kernel @conv {{
  in X: {0}[1,64,56,56]
  in W: {0}[64,64,3,3]
  out Y: {1}[1,64,56,56]
  for n < 1, o < 64, y < 56, x < 56:
    Y[n, o, y, x] = sum:{1}[c < 64, kh < 3, kw < 3] (X[n, c, y + kh - 1, x + kw - 1] ?: 0) * W[o, c, kh, kw]
}}
)",
                     in, acc);
}

std::string gemm(const std::string& in, const std::string& acc, int m, int n, int k) {
  return fmt::format(R"(dlc.kernel 1
kernel @gemm {{
  in A: {0}[{2},{4}]
  in B: {0}[{4},{3}]
  out Y: {1}[{2},{3}]
  for i < {2}, j < {3}: Y[i, j] = sum:{1}[k < {4}] A[i, k] * B[k, j]
}}
)",
                     in, acc, m, n, k);
}

const char* const kDepthwise = R"(dlc.kernel 1
kernel @depthwise {
  in X: f32[1,64,56,56]
  in W: f32[64,1,3,3]
  out Y: f32[1,64,56,56]
  for n < 1, o < 64, y < 56, x < 56:
    Y[n, o, y, x] = sum:f32[kh < 3, kw < 3] (X[n, o, y + kh - 1, x + kw - 1] ?: 0) * W[o, 0, kh, kw]
}
)";

const char* const kZeroPoint = R"(dlc.kernel 1
kernel @qconv {
  in X: u8[1,64,56,56]
  in Z: u8[]
  in W: s8[64,64,3,3]
  out Y: s32[1,64,56,56]
  for n < 1, o < 64, y < 56, x < 56:
    Y[n, o, y, x] = sum:s32[c < 64, kh < 3, kw < 3] ((X[n, c, y + kh - 1, x + kw - 1] - Z[]) ?: 0) * W[o, c, kh, kw]
}
)";

const char* const kRequantise = R"(dlc.kernel 1
kernel @requantise {
  in X: s32[64,3136]
  in M: s32[64]
  out Y: s8[64,3136]
  for c < 64, x < 3136: Y[c, x] = min(max((X[c, x] * M[c] + 1073741824) >> 31, -128), 127)
}
)";

const char* const kSoftmax = R"(dlc.kernel 1
kernel @softmax {
  in X: f32[512,512]
  temp M: f32[512]
  temp E: f32[512,512]
  temp S: f32[512]
  out Y: f32[512,512]
  for i < 512: M[i] = max:f32[j < 512] X[i, j]
  for i < 512, j < 512: E[i, j] = exp(X[i, j] - M[i])
  for i < 512: S[i] = sum:f32[j < 512] E[i, j]
  for i < 512, j < 512: Y[i, j] = E[i, j] / S[i]
}
)";

// An instruction: addresses and counts are parameters.
const char* const kInstruction = R"(dlc.kernel 1
kernel @mac {
  in X: s8[4096,16]
  in W: s8[1024,16,16]
  state acc: s32[1024,16]
  for oh < n_oh, ow < n_ow, c < 16:
    acc[ab + oh*n_ow + ow, c] = (if accum then acc[ab + oh*n_ow + ow, c] else 0)
      + (sum:s32[ci < n_ci, kh < n_kh, kw < n_kw, k < 16] X[xb + ci*s_ci + (oh + kh)*s_h + ow + kw, k] * W[wb + (ci*n_kh + kh)*n_kw + kw, k, c])
}
)";

std::vector<Case> cases() {
  const double conv_macs = 64.0 * 56 * 56 * 64 * 9, gemm_macs = 256.0 * 256 * 256;
  const dlc::Bindings mac{{"n_oh", 14}, {"n_ow", 14}, {"n_ci", 4},   {"n_kh", 3}, {"n_kw", 3}, {"ab", 8},
                          {"xb", 16},   {"wb", 3},    {"s_ci", 256}, {"s_h", 16}, {"accum", 1}};
  dlc::Bindings small = mac;
  for (const char* one : {"n_oh", "n_ow", "n_ci", "n_kh", "n_kw"}) small[one] = 1;
  return {{"conv_f32", conv("f32", "f32"), conv_macs, {}},
          {"conv_s8", conv("s8", "s32"), conv_macs, {}},
          {"conv_u8_zero_point", kZeroPoint, conv_macs, {}},
          {"gemm_f32", gemm("f32", "f32", 256, 256, 256), gemm_macs, {}},
          {"gemm_s8", gemm("s8", "s32", 256, 256, 256), gemm_macs, {}},
          {"gemv_f32", gemm("f32", "f32", 1, 1024, 1024), 1024.0 * 1024, {}},
          {"depthwise_f32", kDepthwise, 64.0 * 56 * 56 * 9, {}},
          {"softmax_f32", kSoftmax, 512.0 * 512, {}},
          {"requantise", kRequantise, 64.0 * 3136, {}},
          {"mac_instruction", kInstruction, 14.0 * 14 * 4 * 9 * 256, mac},
          {"mac_instruction_small", kInstruction, 256, small}};
}

double measure(const dlc::PreparedKernel& kernel, std::vector<dlc::Buffer>& buffers, const dlc::Bindings& parameters) {
  double best = 1e30, spent = 0;
  for (int i = 0; i < 200 && (i < 3 || spent < 0.5); ++i) {
    const auto t0 = std::chrono::steady_clock::now();
    if (const auto r = kernel.run(buffers, parameters); !r) {
      fmt::print(stderr, "{}\n", dlc::to_string(r.error()));
      std::exit(1);
    }
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    best = std::min(best, s);
    spent += s;
  }
  return best;
}

std::string run(const Case& c) {
  auto kernel = dlc::parse_kernel(c.text);
  if (!kernel) {
    fmt::print(stderr, "{}\n", dlc::to_string(kernel.error()));
    std::exit(1);
  }
  std::vector<Tensor> tensors;
  std::vector<dlc::Buffer> buffers;
  for (const auto& t : kernel->tensors) {
    std::vector<int64_t> shape;
    for (const auto& d : t.shape) shape.push_back(d.constant().value_or(1));
    tensors.push_back(*Tensor::make(t.dtype, shape));
    for (int64_t i = 0; i < tensors.back().elements(); ++i) tensors.back().set_int(i, (i * 7919 + i / 13) % 17 - 8);
  }
  for (auto& t : tensors) buffers.push_back({t.mutable_bytes(), static_cast<int64_t>(t.byte_size())});
  const auto t0 = std::chrono::steady_clock::now();
  auto prepared = dlc::PreparedKernel::prepare(*kernel);
  const double prepare_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
  if (!prepared) {
    fmt::print(stderr, "{}\n", dlc::to_string(prepared.error()));
    std::exit(1);
  }
  const double s = measure(*prepared, buffers, c.parameters);
  return fmt::format("\"{}\":{{\"ns_per_mac\":{:.3f},\"us\":{:.1f},\"prepare_us\":{:.1f}}}", c.name,
                     s * 1e9 / c.operations, s * 1e6, prepare_s * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  std::string out;
  for (const Case& c : cases())
    if (argc < 2 || c.name.find(argv[1]) != std::string::npos) out += (out.empty() ? "" : ",\n ") + run(c);
  fmt::print("{{{}}}\n", out);
}
