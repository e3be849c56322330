// bench_gemm: the contraction skeleton against the machine's multiply-add peak, as JSON. With --kernel, any kernel's
// text without symbols instead of the built-in cases.
//
//   bench_gemm [--filter=TEXT] [--kernel=FILE] [--hw=native|hwdesc/x86-64-v3.yaml] [--tile=VECTORS,ROWS,COLS]
//   [--unroll=N] [--block=KIB] [--no-prefetch] [--assembly]
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "dlc/hw/load.h"
#include "dlc/interp/interp.h"
#include "dlc/kernel/access.h"
#include "peak.h"
#include "plugins/cpu/codegen/contraction.h"

using namespace dlc;

namespace {

struct Case {
  std::string name;
  Kernel kernel;
  double flops = 0;
};

Result<Case> gemm(int64_t m, int64_t n, int64_t k) {
  const std::string text = fmt::format(
      "dlc.kernel 1\nkernel @gemm {{\n in A: f32[{0},{2}]\n const W: f32[{2},{1}]\n const B: f32[{1}]\n out Y: "
      "f32[{0},{1}]\n"
      " for m < {0}, n < {1}: Y[m, n] = (sum[k < {2}] A[m, k] * W[k, n]) + B[n]\n}}\n",
      m, n, k);
  DLC_TRY(Kernel kernel, parse_kernel(text));
  return Case{fmt::format("gemm {}x{}x{}", m, n, k), std::move(kernel), 2.0 * static_cast<double>(m * n * k)};
}

// Channels in blocks of `b`, the input with its halo, relu fused.
Result<Case> conv(int64_t ic, int64_t oc, int64_t h, int64_t k, int64_t stride, int64_t b) {
  const int64_t pad = k / 2, hp = h + 2 * pad, oh = (hp - k) / stride + 1;
  const std::string text = fmt::format(
      "dlc.kernel 1\nkernel @conv {{\n in X: f32[{0},{1},{1},{5}]\n const W: f32[{2},{5},{0},{5},{3},{3}]\n const B: "
      "f32[{2},{5}]\n"
      " out Y: f32[{2},{4},{4},{5}]\n for o < {2}, y < {4}, x < {4}, oi < {5}:\n"
      "  Y[o, y, x, oi] = max(B[o, oi] + (sum[c < {0}, ci < {5}, kh < {3}, kw < {3}] X[c, {6}*y + kh, {6}*x + kw, ci] "
      "* W[o, oi, c, ci, kh, kw]), 0)\n}}\n",
      ic / b, hp, oc / b, k, oh, b, stride);
  DLC_TRY(Kernel kernel, parse_kernel(text));
  return Case{fmt::format("conv{0}x{0} {1}x{2}x{2} to {3}{4}", k, ic, h, oc,
                          stride > 1 ? fmt::format(" stride {}", stride) : ""),
              std::move(kernel), 2.0 * static_cast<double>(ic * oc * k * k * oh * oh)};
}

Result<Case> from_file(const std::string& path) {
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  DLC_TRY(Kernel kernel, parse_kernel(text, path));
  const auto operations = flops(kernel).constant();
  if (!operations) return fail({path, 0, 0, {}}, "the kernel has symbols, so its work is not known");
  return Case{kernel.name, std::move(kernel), static_cast<double>(*operations)};
}

int64_t bytes_of(const KernelTensor& t) {
  int64_t n = t.dtype.bytes();
  for (const Expr& e : t.shape) n *= e.constant().value_or(0);
  return n;
}

void fill(void* p, int64_t bytes, unsigned seed) {
  std::minstd_rand random(seed);
  auto* f = static_cast<float*>(p);
  for (int64_t i = 0; i < bytes / 4; ++i) f[i] = static_cast<float>(random() % 2048) / 1024.0f - 1.0f;
}

// The value at a few points against a double sum of the original kernel.
Result<double> worst_error(const Kernel& original, const std::vector<void*>& buffers) {
  std::vector<Buffer> copies;
  for (size_t i = 0; i < original.tensors.size(); ++i) {
    const int64_t n = bytes_of(original.tensors[i]);
    const bool output = original.tensors[i].role == Role::output;
    copies.push_back({static_cast<std::byte*>(output ? bench::arena(n) : buffers[i]), n});
  }
  DLC_TRY(const auto prepared, PreparedKernel::prepare(original));
  DLC_CHECK(prepared.run(copies));
  double worst = 0;
  for (size_t i = 0; i < original.tensors.size(); ++i) {
    if (original.tensors[i].role != Role::output) continue;
    const auto* want = reinterpret_cast<const float*>(copies[i].data);
    const auto* got = static_cast<const float*>(buffers[i]);
    for (int64_t e = 0; e < copies[i].bytes / 4; ++e)
      worst = std::max(worst, std::abs(static_cast<double>(got[e]) - static_cast<double>(want[e])) /
                                  std::max(1.0, std::abs(static_cast<double>(want[e]))));
  }
  return worst;
}

Result<std::string> run(const Case& c, const cpu::Target& target, const cpu::ContractionTile& tile, bool assembly) {
  DLC_TRY(const cpu::Plan plan, cpu::plan_contractions(c.kernel, target, tile));
  const cpu::Unit unit = plan.unit();
  DLC_TRY(const auto code, cpu::compile(std::span(&unit, 1), target, {.opt_level = 1, .keep_assembly = true}));
  if (assembly) std::fputs(code.assembly().c_str(), stderr);
  std::vector<void*> buffers;
  for (size_t i = 0; i < plan.kernel.tensors.size(); ++i) {
    const int64_t n = bytes_of(plan.kernel.tensors[i]);
    buffers.push_back(bench::arena(n));
    const Role role = plan.kernel.tensors[i].role;
    if (role == Role::input || role == Role::constant) fill(buffers[i], n, static_cast<unsigned>(i + 1));
  }
  for (const cpu::PackedTensor& p : plan.packed) {
    const cpu::Unit pack{&p.pack, {}};
    DLC_TRY(const auto packer, cpu::compile(std::span(&pack, 1), target));
    void* operands[] = {buffers[static_cast<size_t>(p.source)], buffers[static_cast<size_t>(p.packed)]};
    if (packer.kernels()[0].entry(operands, nullptr) != 0) return fail({}, "packing failed");
  }
  const auto entry = code.kernels()[0].entry;
  if (entry(buffers.data(), nullptr) != 0) return fail({}, "the kernel reported an undefined value");
  DLC_TRY(const double error, worst_error(c.kernel, buffers));
  const bench::Sample s = bench::measure(c.flops, [&] { entry(buffers.data(), nullptr); });
  return fmt::format(
      "{{\"name\": \"{}\", \"percent_of_peak\": {:.1f}, \"gflops\": {:.1f}, \"ms\": {:.4f}, \"macs\": {:.0f}, "
      "\"error\": {:.1e}, "
      "\"spills\": {}, \"ir_ms\": {:.1f}, \"passes_ms\": {:.1f}, \"codegen_ms\": {:.1f}, \"tile\": \"{}\"}}",
      c.name, s.percent_of_peak, s.gflops, s.ms, c.flops / 2, error, code.stats().spills, code.stats().ir_ms,
      code.stats().passes_ms, code.stats().codegen_ms, plan.notes.back());
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter, file;
  bool assembly = false;
  std::string machine = "native";
  cpu::ContractionTile tile;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a.starts_with("--filter="))
      filter = a.substr(9);
    else if (a.starts_with("--kernel="))
      file = a.substr(9);
    else if (a == "--assembly")
      assembly = true;
    else if (a.starts_with("--hw="))
      machine = a.substr(5);
    else if (a == "--no-prefetch")
      tile.prefetch = false;
    else if (a.starts_with("--block="))
      tile.block_bytes = std::stoll(a.substr(8)) << 10;
    else if (a.starts_with("--unroll="))
      tile.unroll = std::stoll(a.substr(9));
    else if (!(a.starts_with("--tile=") &&
               std::sscanf(a.c_str() + 7, "%d,%ld,%ld", &tile.vectors, &tile.rows, &tile.cols) == 3)) {
      std::fprintf(stderr,
                   "usage: bench_gemm [--filter=TEXT] [--kernel=FILE] [--hw=native|hwdesc/x86-64-v3.yaml] "
                   "[--tile=VECTORS,ROWS,COLS] "
                   "[--unroll=N] [--block=KIB] [--no-prefetch] [--assembly]\n");
      return 2;
    }
  }
  const auto hw = load_hw(machine);
  const auto target_of_it = hw ? cpu::Target::of(*hw) : std::unexpected(hw.error());
  if (!target_of_it) {
    std::fprintf(stderr, "%s\n", to_string(target_of_it.error()).c_str());
    return 1;
  }
  const cpu::Target& target = *target_of_it;
  const int64_t b = target.vector_bytes / 4;
  std::vector<Result<Case>> cases;
  if (!file.empty()) cases.push_back(from_file(file));
  for (auto [m, n, k] : {std::tuple{512, 512, 512},
                         {1024, 1024, 1024},
                         {128, 3072, 768},
                         {128, 768, 3072},
                         {128, 768, 768},
                         {1, 1024, 1024}})
    cases.push_back(gemm(m, n, k));
  for (auto [ic, oc, h, k, s] : {std::tuple{64, 64, 56, 3, 1},
                                 {128, 128, 28, 3, 1},
                                 {256, 256, 14, 3, 1},
                                 {512, 512, 7, 3, 1},
                                 {256, 64, 56, 1, 1},
                                 {64, 256, 56, 1, 1},
                                 {512, 128, 28, 1, 1},
                                 {1024, 256, 14, 1, 1},
                                 {2048, 512, 7, 1, 1},
                                 {128, 128, 56, 3, 2}})
    cases.push_back(conv(ic, oc, h, k, s, b));
  if (!file.empty()) cases.resize(1, cases[0]);
  std::printf("{\"peak\": {\"kind\": \"%s\", \"gflops\": %.1f},\n \"cases\": [", bench::fma_peak_kind().c_str(),
              bench::fma_peak_gflops());
  bool first = true;
  for (const auto& c : cases) {
    if (c && c->name.find(filter) == std::string::npos) continue;
    const auto line = c ? run(*c, target, tile, assembly) : std::unexpected(c.error());
    if (!line) {
      std::fprintf(stderr, "%s\n", to_string(line.error()).c_str());
      return 1;
    }
    std::printf("%s\n  %s", first ? "" : ",", line->c_str());
    std::fflush(stdout);
    first = false;
  }
  std::printf("\n]}\n");
  return 0;
}
