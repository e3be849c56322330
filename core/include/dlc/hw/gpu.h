// Section `gpu` of a description: machines that run one text in many threads (docs/hardware.md).
//
//   DLC_TRY(const HwGpu gpu, parse_hw_gpu(text, "nvidia-h200.yaml"));
//   gpu.limit("shared_per_block");   // 232448
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/hw/load.h"

namespace dlc {

struct HwGpuFigure {
  std::string name;
  double value = 0;  // a number, bytes, bytes a second, or seconds
  Loc loc;
};

// A product of tiles: rows x columns x depth.
struct HwMma {
  std::string op;
  int64_t shape[3] = {0, 0, 0};
  DType in = kF16, acc = kF32;
  int64_t ops_per_cycle = 0;  // of one processor; 0: not known
  Loc loc;
};

struct HwGpu {
  std::string arch, fallback;         // what code is made for, "sm_90a", and what any newer machine can load
  std::vector<std::string> features;  // asynchronous copies and the like
  int64_t min_driver = 0;
  std::vector<HwGpuFigure> arch_limits;  // what no machine of the architecture exceeds
  int64_t processors = 1, warp = 32;
  std::vector<HwGpuFigure> limits, rates, costs;
  std::vector<HwMma> mma;
  std::vector<std::string> unmeasured;  // figures that are taken from elsewhere: "rates.dram"

  std::optional<double> limit(std::string_view name) const;
  std::optional<double> rate(std::string_view name) const;  // bytes a second
  std::optional<double> cost(std::string_view name) const;  // seconds
};

// Of a description that is right as a whole, and has the section.
Result<HwGpu> parse_hw_gpu(std::string_view text, const std::string& file, const HwOverrides& overrides = {});

}  // namespace dlc
