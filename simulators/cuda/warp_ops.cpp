#include "simulators/cuda/warp_ops.h"

#include <bit>
#include <cstring>

#include "dlc/base/float_format.h"

namespace dlc::emu {
namespace {

int bits_of(DlcEmuElement t) {
  switch (t) {
    case kEmuTF32:
      return 32;
    case kEmuF16:
    case kEmuBF16:
      return 16;
    default:
      return 8;
  }
}

float decode(const FloatFormat& format, uint32_t bits) { return std::bit_cast<float>(words::decode(format, bits)); }

float to_float(DlcEmuElement t, uint32_t bits) {
  switch (t) {
    case kEmuF16:
      return decode(kFormatF16, bits);
    case kEmuBF16:
      return std::bit_cast<float>(bits << 16);
    case kEmuTF32:
      return std::bit_cast<float>(bits & ~0x1fffu);  // what the multiplier does not see
    case kEmuE4M3:
      return decode(kFormatE4M3FN, bits);
    default:
      return decode(kFormatE5M2, bits);
  }
}

uint32_t to_integer(DlcEmuElement t, uint32_t bits) {
  return static_cast<uint32_t>(t == kEmuS8 ? int32_t{static_cast<int8_t>(bits)} : int32_t{static_cast<uint8_t>(bits)});
}

uint32_t element(uint32_t word, int i, int bits) { return bits == 32 ? word : word >> (i * bits) & ((1u << bits) - 1); }

// A [16][K] and B [K][8], K = 256 / bits, from the lanes' words.
template <class T, class F>
void gather(DlcEmuElement a_type, DlcEmuElement b_type, const std::array<MmaOperands, kLanes>& lanes, T (&a)[16][32],
            T (&b)[32][8], F convert) {
  const int bits = bits_of(a_type), per = 32 / bits;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < per; ++i) {
      for (int r = 0; r < 4; ++r)
        a[g + 8 * (r % 2)][per * (t + 4 * (r / 2)) + i] = convert(a_type, element(lanes[lane].a[r], i, bits));
      for (int r = 0; r < 2; ++r) b[per * (t + 4 * r) + i][g] = convert(b_type, element(lanes[lane].b[r], i, bits));
    }
  }
}

template <class Sum>
void accumulate(int depth, const std::array<MmaOperands, kLanes>& lanes, const Sum (&a)[16][32],
                const Sum (&b)[32][8]) {
  Sum product[16][8] = {};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < depth; ++k)
      for (int column = 0; column < 8; ++column) product[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < 4; ++i) {
      unsigned char* c = static_cast<unsigned char*>(lanes[lane].c) + 4 * i;
      Sum sum;
      std::memcpy(&sum, c, 4);
      sum += product[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2];
      std::memcpy(c, &sum, 4);
    }
}

}  // namespace

int shuffle_source(DlcEmuShuffle how, int lane, uint32_t arg) {
  const auto by = static_cast<int64_t>(static_cast<int32_t>(arg));
  switch (how) {
    case kEmuShuffleXor:
      return static_cast<int>((lane ^ by) < kLanes && (lane ^ by) >= 0 ? lane ^ by : lane);
    case kEmuShuffleDown:
      return static_cast<int>(lane + by < kLanes ? lane + by : lane);
    case kEmuShuffleUp:
      return static_cast<int>(lane - by >= 0 ? lane - by : lane);
    default:
      return static_cast<int>(arg % kLanes);
  }
}

void mma(DlcEmuElement a_type, DlcEmuElement b_type, const std::array<MmaOperands, kLanes>& lanes) {
  const int depth = 256 / bits_of(a_type);
  if (a_type == kEmuS8 || a_type == kEmuU8) {
    uint32_t a[16][32], b[32][8];  // sums wrap
    gather(a_type, b_type, lanes, a, b, to_integer);
    accumulate(depth, lanes, a, b);
    return;
  }
  float a[16][32], b[32][8];
  gather(a_type, b_type, lanes, a, b, to_float);
  accumulate(depth, lanes, a, b);
}

void ldmatrix(int matrix, bool transposed, const std::array<const void*, 8>& rows,
              const std::array<uint32_t*, kLanes>& out) {
  uint16_t m[8][8];
  for (int r = 0; r < 8; ++r) std::memcpy(m[r], rows[r], 16);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int r = lane / 4, c = lane % 4 * 2;
    const uint16_t low = transposed ? m[c][r] : m[r][c], high = transposed ? m[c + 1][r] : m[r][c + 1];
    out[lane][matrix] = low | static_cast<uint32_t>(high) << 16;
  }
}

}  // namespace dlc::emu
