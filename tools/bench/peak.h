// The multiply-add peak of one core, measured beside every sample: clocks drift, ratios do not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dlc::bench {

struct Sample {
  double ms = 0;               // median
  double gflops = 0;           // median
  double percent_of_peak = 0;  // median of the ratios to the peak measured just before and after
};

// Measures f, which does `flops` operations, in `rounds` rounds with the peak loop in between. Thread CPU time.
Sample measure(double flops, const std::function<void()>& f, int rounds = 15);

double fma_peak_gflops();     // f32, of the widest vectors of this machine
std::string fma_peak_kind();  // "avx512", "avx2"

// 64-byte aligned (2 MiB and huge pages where large) zeroed memory; freed at exit.
void* arena(int64_t bytes);

}  // namespace dlc::bench
