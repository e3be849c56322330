#include "peak.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

namespace dlc::bench {

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Twelve independent chains hide the latency of two multiply-adds a cycle.
#define DLC_TWELVE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)

__attribute__((target("avx512f"), noinline)) void fma_loop_512(int64_t iterations) {
  const __m512 a = _mm512_set1_ps(1.0001f), b = _mm512_set1_ps(0.9999f);
#define DLC_DECLARE(i) __m512 r##i = a;
  DLC_TWELVE(DLC_DECLARE)
#undef DLC_DECLARE
  for (int64_t k = 0; k < iterations; ++k) {
#define DLC_FMA(i) asm volatile("vfmadd231ps %1,%2,%0" : "+v"(r##i) : "v"(a), "v"(b));
    DLC_TWELVE(DLC_FMA)
  }
}

__attribute__((target("avx2,fma"), noinline)) void fma_loop_256(int64_t iterations) {
  const __m256 a = _mm256_set1_ps(1.0001f), b = _mm256_set1_ps(0.9999f);
#define DLC_DECLARE(i) __m256 r##i = a;
  DLC_TWELVE(DLC_DECLARE)
#undef DLC_DECLARE
  for (int64_t k = 0; k < iterations; ++k) {
    DLC_TWELVE(DLC_FMA)
#undef DLC_FMA
  }
}

bool wide() { return __builtin_cpu_supports("avx512f"); }

double peak_once() {
  constexpr int64_t kIterations = 100000;
  const double start = now();
  wide() ? fma_loop_512(kIterations) : fma_loop_256(kIterations);
  return static_cast<double>(kIterations) * 12 * (wide() ? 32 : 16) / (now() - start) / 1e9;
}

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

}  // namespace

std::string fma_peak_kind() { return wide() ? "avx512" : "avx2"; }

double fma_peak_gflops() {
  peak_once();
  std::vector<double> v;
  for (int i = 0; i < 7; ++i) v.push_back(peak_once());
  return median(v);
}

Sample measure(double flops, const std::function<void()>& f, int rounds) {
  peak_once();
  f();
  double start = now();
  f();
  const int inner = std::max(1, static_cast<int>(2e-3 / std::max(now() - start, 1e-9)));
  std::vector<double> ms, gflops, ratios;
  for (int i = 0; i < rounds; ++i) {
    const double before = peak_once();
    start = now();
    for (int j = 0; j < inner; ++j) f();
    const double seconds = (now() - start) / inner;
    const double peak = (before + peak_once()) / 2;
    ms.push_back(seconds * 1e3);
    gflops.push_back(flops / seconds / 1e9);
    ratios.push_back(100 * flops / seconds / 1e9 / peak);
  }
  return {median(ms), median(gflops), median(ratios)};
}

void* arena(int64_t bytes) {
  constexpr int64_t kHuge = 2 << 20;
  static std::vector<std::unique_ptr<void, decltype(&std::free)>> all;
  const int64_t size = (bytes + 4096 + kHuge - 1) / kHuge * kHuge;
  void* p = std::aligned_alloc(kHuge, static_cast<size_t>(size));
  if (!p) std::abort();
  all.emplace_back(p, &std::free);
  madvise(p, static_cast<size_t>(size), MADV_HUGEPAGE);
  std::memset(p, 0, static_cast<size_t>(size));
  return p;
}

}  // namespace dlc::bench
