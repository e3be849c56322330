// Each stage of the vector unit by one example worked by hand: memories before, one vec or vec2, the words it writes.
// The RTL and the simulator that comes from the description must both give these numbers; no model computes them.
//
// A stage is shown with the others neutral: ma=1 sh=0 scales by 1, lo=-128 hi=127 clamps to int8, lut=none.
#include <array>
#include <bit>

#include "dlc/hw/simulator.h"
#include "dlc_test/need.h"
#include "tests/cosim/bench.h"

namespace dlc::cosim {
namespace {

using dlc_test::need;
using Lanes = std::array<int8_t, 8>;  // a word of the 8x8 machine

struct Contents {  // of a memory, from its word 0
  std::string memory;
  std::vector<Lanes> words;
};

struct Written {
  std::string memory;
  uint64_t address;
  std::vector<uint8_t> bytes;

  Written(std::string in, uint64_t at, const Lanes& lanes) : memory(std::move(in)), address(at) {
    for (const int8_t v : lanes) bytes.push_back(std::bit_cast<uint8_t>(v));
  }
  // An accumulator that is the same in all lanes.
  Written(uint64_t at, int32_t v) : memory("acc"), address(at) {
    for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<uint8_t>(v >> (i % 4 * 8)));
  }
};

Lanes all(int8_t v) { return {v, v, v, v, v, v, v, v}; }

// The tables with a few entries of one slot, the rest 0. A slot is 32 words of 8 entries; entry x + 128 is that of x:
// word (x + 128) / 8, lane (x + 128) % 8.
std::vector<Lanes> table(size_t slot) {
  std::vector<Lanes> words(128);
  Lanes* const t = &words[32 * slot];
  t[0][0] = 7;     // -128: entry 0
  t[8][0] = 100;   // -64: entry 64
  t[15][7] = 49;   // -1: entry 127
  t[16][0] = 50;   // 0: entry 128
  t[16][1] = 51;   // 1: entry 129
  t[16][5] = 55;   // 5: entry 133
  t[24][0] = -56;  // 64: entry 192
  t[31][7] = -7;   // 127: entry 255
  return words;
}

// Loads `before`, then runs the instructions, each after the one before it; the last is the vector unit's.
void check(const std::vector<Contents>& before, const std::vector<std::string>& instructions,
           const std::vector<Written>& after) {
  constexpr size_t kRoom = 2048;  // bytes of a memory's contents
  std::vector<uint8_t> arena(kRoom * before.size());
  std::string text;
  for (size_t m = 0; m < before.size(); ++m) {
    const std::vector<Lanes>& words = before[m].words;
    for (size_t i = 0; i < words.size() * 8; ++i) arena[kRoom * m + i] = std::bit_cast<uint8_t>(words[i / 8][i % 8]);
    const std::string n = std::to_string(words.size());
    text += "ld to=" + before[m].memory + " seg=arena off=" + std::to_string(kRoom * m) + " nx=" + n + " x1=" + n +
            " y1=1" + (m + 1 == before.size() ? " sig=1\n" : "\n");
  }
  for (size_t i = 0; i < instructions.size(); ++i)
    text += instructions[i] + " wai=" + std::to_string(1 << i) +
            (i + 1 == instructions.size() ? "\nend" : " sig=" + std::to_string(2 << i) + "\n");

  Bench b(8);
  b.write_dram(b.segment("arena"), arena.data(), arena.size());
  std::vector<Word> want;
  for (const Written& w : after) want.push_back({w.memory, w.address, w.bytes});
  const std::vector<Word> rtl = b.run(text).writes[2];  // of the queue vec
  REQUIRE(rtl.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) CHECK(to_string(rtl[i]) == to_string(want[i]));

  Simulator sim = need(Simulator::make(b.hw()));
  need(sim.bind(b.hw().find_space("dram.arena"), std::as_writable_bytes(std::span(arena)), true));
  const SimResult result = need(sim.run(b.assemble(text)));
  REQUIRE_FALSE(result.fault.has_value());
  for (const Word& w : want) {
    const int space = b.hw().find_space(w.memory);
    const uint64_t begin = w.address * w.bytes.size();
    CHECK(sim.is_defined(space, static_cast<int64_t>(begin), static_cast<int64_t>(begin + w.bytes.size())));
    Word got = w;
    for (size_t b = 0; b < w.bytes.size(); ++b) got.bytes[b] = std::to_integer<uint8_t>(sim.memory(space)[begin + b]);
    CHECK(to_string(got) == to_string(w));
  }
}

}  // namespace

TEST_CASE("vec by hand, stage 1: the maximum of a window") {
  // words 0 and 1 over words 2 and 3; the maximum is 4 -1 6 -127 127 0 11 22, less 3: 1 -4 3 -130 124 -3 8 19,
  // of which the clamp makes -130 into -128
  check({{"out",
          {{1, -1, 5, -128, 127, 0, 10, 20},
           {2, -2, 5, -128, 126, 0, -10, 21},
           {3, -3, 5, -127, 125, 0, 11, 22},
           {4, -4, 6, -128, 124, 0, -11, 19}}}},
        {"vec a=out red=max n_kw=2 s_kw=1 n_kh=2 s_kh=2 za=3 ma=1 lo=-128 hi=127 d_base=4"},
        {{"out", 4, {1, -4, 3, -128, 124, -3, 8, 19}}});
}

TEST_CASE("vec by hand, stage 1: the sum of a window") {
  // two windows of two words that share the middle one, each tap less 5. Lane 0: 1-5 + 10-5 = 1, 10-5 + 100-5 = 100
  check({{"in", {{1, 2, 3, 4, 5, 6, 7, 8}, {10, -10, 20, -20, 30, -30, 40, -40}, {100, 50, 0, -50, -100, 1, -1, 2}}}},
        {"vec a=in red=sum n_ow=2 s_ow=1 n_kw=2 s_kw=1 za=5 ma=1 lo=-128 hi=127 d_ow=1"},
        {{"out", 0, {1, -18, 13, -26, 25, -34, 37, -42}}, {"out", 1, {100, 30, 10, -80, -80, -39, 29, -48}}});
}

TEST_CASE("vec by hand, stage 2: one multiplier for the tensor") {
  // acc = in*w = 128 -128 384 -384 43 42 10000 -10000; times 3/256: 1.5 -1.5 4.5 -4.5 0.504 0.492 117.2 -117.2,
  // halves to even
  check({{"in", {{64, -64, 96, -96, 43, 42, 100, -100}}}, {"w", {{2, 2, 4, 4, 1, 1, 100, 100}}}},
        {"mac wdir=diag", "vec a=acc scl=tensor ma=3 sh=8 lo=-128 hi=127"},
        {{"out", 0, {2, -2, 4, -4, 1, 0, 117, -117}}});
}

TEST_CASE("vec by hand, stage 2: bias, multiplier and shift of each lane") {
  // the parameters from word 2: four words of biases and four of multipliers, four bytes each, low byte first, then
  // one of shifts
  //   x     10  20  30   40    50  60     70      80
  //   bias   1  -2 256 -256     0   5  65536  -65536    sum 11 18 286 -216 50 65 65606 -65456
  //   mul    1   3   1    1 65536   2      1       1
  //   sh     0   2   2    3    16   2     10      10    so 11 13.5 71.5 -27 50 32.5 64.07 -63.92
  check({{"out", {{10, 20, 30, 40, 50, 60, 70, 80}}},
         {"par",
          {all(99),
           all(99),
           {1, 0, 0, 0, -2, -1, -1, -1},
           {0, 1, 0, 0, 0, -1, -1, -1},
           {0, 0, 0, 0, 5, 0, 0, 0},
           {0, 0, 1, 0, 0, 0, -1, -1},
           {1, 0, 0, 0, 3, 0, 0, 0},
           {1, 0, 0, 0, 1, 0, 0, 0},
           {0, 0, 1, 0, 2, 0, 0, 0},
           {1, 0, 0, 0, 1, 0, 0, 0},
           {0, 2, 2, 3, 16, 2, 10, 10}}}},
        {"vec a=out scl=lane p_base=2 lo=-128 hi=127 d_base=1"}, {{"out", 1, {11, 14, 72, -27, 50, 32, 64, -64}}});
}

TEST_CASE("vec by hand, stage 3: zero point and clamp") {
  // plus 20: 120 140 -80 -100 20 25 15 147, within -90 .. 110
  check({{"out", {{100, 120, -100, -120, 0, 5, -5, 127}}}}, {"vec a=out ma=1 zp=20 lo=-90 hi=110 d_base=1"},
        {{"out", 1, {110, 110, -80, -90, 20, 25, 15, 110}}});
}

TEST_CASE("vec by hand, stage 4: a table") {
  check({{"out", {{-128, 127, 0, 5, -1, 1, 64, -64}}}, {"tab", table(1)}},
        {"vec a=out lut=t8 slot=1 ma=1 lo=-128 hi=127 d_base=1"}, {{"out", 1, {7, -7, 50, 55, 49, 51, -56, 100}}});
}

TEST_CASE("vec by hand, stage 5: positions of windows and results") {
  // an image of 3 rows of 4; sums of 2x2 windows, two words apart across and one row down:
  // 1+2+10+20, 3+4+30+40, 10+20-1-2, 30+40-3-4; results 3 words apart across and 7 down
  check(
      {{"in",
        {all(1), all(2), all(3), all(4), all(10), all(20), all(30), all(40), all(-1), all(-2), all(-3), all(-4)}}},
      {"vec a=in red=sum n_ow=2 s_ow=2 n_oh=2 s_oh=4 n_kw=2 s_kw=1 n_kh=2 s_kh=4 ma=1 lo=-128 hi=127 dst=in d_base=20 "
       "d_ow=3 d_oh=7"},
      {{"in", 20, all(33)}, {"in", 23, all(77)}, {"in", 27, all(27)}, {"in", 30, all(63)}});
}

TEST_CASE("vec2 by hand, stages 1, 2 and 6: positions and zero points of the operands, positions of results") {
  // a = 1 2 over 3 4, less -1: 2 3 over 4 5; b = 10 over 20, repeated across, less 5: 5 5 over 15 15
  check({{"out", {all(1), all(2), all(3), all(4)}}, {"in", {all(10), all(20)}}},
        {"vec2 a=out b=in n_ow=2 a_ow=1 b_ow=0 d_ow=2 n_oh=2 a_oh=2 b_oh=1 d_oh=1 za=-1 zb=5 ma=1 mb=1 lo=-128 hi=127 "
         "dst=in d_base=8"},
        {{"in", 8, all(7)}, {"in", 10, all(8)}, {"in", 9, all(19)}, {"in", 11, all(20)}});
}

TEST_CASE("vec2 by hand, stage 3: the sum of two scales") {
  // 3*a - 2*b: 20 -40 500 127 -128 1 10 14; a quarter: 5 -10 125 31.75 -32 0.25 2.5 3.5
  check({{"out", {{10, -10, 100, 127, -128, 1, 0, 0}, {5, 5, -100, 127, -128, 1, -5, -7}}}},
        {"vec2 a=out b=out b_base=1 bop=add ma=3 mb=-2 sh=2 lo=-128 hi=127 d_base=2"},
        {{"out", 2, {5, -10, 125, 32, -32, 0, 2, 4}}});
}

TEST_CASE("vec2 by hand, stage 3: the product") {
  // a*b: 256 -256 -10000 16129 16384 -768 1 512; times 3/512: 1.5 -1.5 -58.59 94.506 96 -4.5 0.006 3
  check({{"in", {{16, -16, 100, 127, -128, 16, 1, 64}}}, {"out", {{16, 16, -100, 127, -128, -48, 1, 8}}}},
        {"vec2 a=in b=out bop=mul ma=3 sh=9 lo=-128 hi=127 d_base=2"}, {{"out", 2, {2, -2, -59, 95, 96, -4, 0, 3}}});
}

TEST_CASE("vec2 by hand, stage 4: zero point and clamp") {
  // a + b = 120 0 0 -120 2 3 4 0, plus 10: 130 10 10 -110 12 13 14 10, within -100 .. 100
  check({{"out", {{60, 60, -60, -60, 1, 2, 3, 0}, {60, -60, 60, -60, 1, 1, 1, 0}}}},
        {"vec2 a=out b=out b_base=1 ma=1 mb=1 zp=10 lo=-100 hi=100 d_base=2"},
        {{"out", 2, {100, 10, 10, -100, 12, 13, 14, 10}}});
}

TEST_CASE("vec2 by hand, stage 5: a table") {
  // a + b = -128 127 0 5 -1 1 64 -64
  check({{"out", {{-100, 100, 0, 2, -1, 0, 32, -32}, {-28, 27, 0, 3, 0, 1, 32, -32}}}, {"tab", table(2)}},
        {"vec2 a=out b=out b_base=1 lut=t8 slot=2 ma=1 mb=1 lo=-128 hi=127 d_base=2"},
        {{"out", 2, {7, -7, 50, 55, 49, 51, -56, 100}}});
}

TEST_CASE("row by hand: the largest of all lanes that belong to the row") {
  // two vectors a row, two words apart, 11 elements: of the second vector lanes 0 to 2. Row 0: 50 in word 0, the 127 of
  // word 2 is lane 3; row 1: 9 is lane 2 of word 3
  check({{"out",
          {{1, -1, 50, -128, 7, 0, 10, 20},
           {-5, -6, -7, -8, -9, -10, -11, -12},
           {3, -3, 5, 127, 125, 0, 11, 22},
           {4, -4, 9, 100, 124, 0, -11, 19}}}},
        {"row f=max a=out n_ow=2 a_ow=1 n_k=2 a_k=2 n=11 d_ow=1 d_base=9"}, {{"out", 9, all(50)}, {"out", 10, all(9)}});
}

TEST_CASE("row by hand: quotients by an accumulator") {
  // acc = in*w = 1 2 3 100 -4 0 256 16129. 2^30 / acc by the nine highest bits of it: 1 -> 2^25/513 = 65408, << 14;
  // 2 -> 65408 << 13; 3, by f = 128, 2^25/769 = 43633 << 13; 100, f = 144, 2^25/801 = 41890 << 8; 256 -> 65408 << 6;
  // 16129, f = 248, 2^25/1009 = 33255 << 1; -4 and 0 -> 2^31 - 1. (a - 2)*3 times that / 2^31 is
  //   8*3/2 = 11.98   -22*3/4 = -16.47   30*3/6 = 14.98   125*3/200 = 1.87   1*3 = 3.0   -3*3 = -9.0
  //   125*3/512 = 0.73   -130*3/32258 = -0.01, rounded, and the zero point 1; -15 and -8 are below lo or at it
  check({{"in", {{1, 2, 3, 100, -4, 0, 64, 127}}},
         {"w", {{1, 1, 1, 1, 1, 1, 4, 127}}},
         {"out", {{10, -20, 32, 127, 3, -1, 127, -128}}}},
        {"mac wdir=diag acc_base=3", "row f=div a=out b_base=3 za=2 ma=3 sh=31 zp=1 lo=-8 hi=127 d_base=5"},
        {{"out", 5, {13, -8, 16, 3, 4, -8, 2, 1}}});
}

TEST_CASE("row by hand: variances") {
  // of 1 to 8 the sum is 36 and that of the squares 204: (8*(204 + 3) - 36*36) / 2 = 180; of eight -2 they are -16 and
  // 32: (8*35 - 256) / 2 = 12
  const std::vector<Lanes> ones(8, all(1));
  check({{"in", {{1, 2, 3, 4, 5, 6, 7, 8}, all(-2)}}, {"w", ones}},
        {"mac wdir=row n_ow=2 s_ow=1 acc_base=3",
         "row f=var a=in n_ow=2 a_ow=1 b_base=3 b_ow=1 ma=3 sh=1 d_base=9 d_ow=1"},
        {{9, 180}, {10, 12}});
}

TEST_CASE("norm by hand: rows of two vectors") {
  // Eight times 3 and eight times -3 above the zero point: the sum is 0, 16*(144 + 112) = 4096. 2^30 / root of that by
  // the nine highest bits: f = 0, (18172 + 17824398/377) << 8 = 65451 << 8. 16*3 of it / 2^16: 12272, and -12273.
  //   12272/2^14 times 64 -64 300 0 1 2 10 100 = 47.9 -47.9 224.7 0 0.7 1.5 7.5 74.9, plus 0 0 0 5 0 0 -3 1000, plus 1
  //   -12273/2^14 times 100 = -74.9, below lo, and times -10 = 7.5
  const std::vector<Lanes> ones(16, all(1));
  const std::vector<Lanes> parameters{all(99),                        // before p_base
                                      {64, 0, -64, -1, 44, 1, 0, 0},  // 300 is 44 + 256
                                      {1, 0, 2, 0, 10, 0, 100, 0},
                                      {0, 0, 0, 0, 0, 0, 5, 0},
                                      {0, 0, 0, 0, -3, -1, -24, 3},  // 1000 is 232 + 3*256
                                      {100, 0, 100, 0, 100, 0, 100, 0},
                                      {-10, -1, -10, -1, -10, -1, -10, -1},
                                      all(0),
                                      all(0)};
  check({{"in", {all(5), all(-1)}}, {"w", ones}, {"par", parameters}},
        {"mac wdir=row n_ci=2 s_ci=1 zin=2 acc_base=3", "row f=var a=in za=2 n_k=2 a_k=1 ma=112 b_base=3 d_base=5",
         "norm a=in za=2 n_k=2 a_k=1 b_base=3 c_base=5 p_base=1 mb=16384 sh=14 zp=1 lo=-70 hi=127 d_base=9 d_k=1"},
        {{5, 4096}, {"out", 9, {49, -47, 127, 6, 2, 2, 5, 127}}, {"out", 10, {-70, -70, -70, -70, 8, 8, 8, 8}}});
}

}  // namespace dlc::cosim
