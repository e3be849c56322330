// What a warp does together, on plain arrays: fragments of the lanes in, fragments out. No scheduling, no checks.
#pragma once

#include <array>
#include <cstdint>

#include "plugins/cuda/device/dlc_emu.h"

namespace dlc::emu {

inline constexpr int kLanes = 32;

// The lane that `lane` reads from.
int shuffle_source(DlcEmuShuffle how, int lane, uint32_t arg);

// c += a b, as dlc_mma.h has the fragments. c: 4 words a lane, floats or int32.
struct MmaOperands {
  void* c = nullptr;
  const uint32_t* a = nullptr;
  const uint32_t* b = nullptr;
};
void mma(DlcEmuElement a_type, DlcEmuElement b_type, const std::array<MmaOperands, kLanes>& lanes);

// Register `matrix` of every lane, from the addresses of the rows.
void ldmatrix(int matrix, bool transposed, const std::array<const void*, 8>& rows,
              const std::array<uint32_t*, kLanes>& out);

}  // namespace dlc::emu
