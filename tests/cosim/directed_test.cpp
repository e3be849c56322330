// One behaviour a test, on the 8x8 machine unless the size matters, each with a smooth and a rough memory.
#include <cstring>

#include "dlc_test/catch.h"
#include "tests/cosim/bench.h"

namespace dlc::cosim {
namespace {

const RtlOptions kSmooth = {.seed = 3, .latency = 20};
const RtlOptions kRough = {.seed = 4, .latency = 60, .jitter = 40, .backpressure = 30, .stall = 20};
const RtlOptions kOne = {.seed = 5, .latency = 200, .outstanding = 1};

void on_all(const std::string& program, int size = 8) {
  for (const RtlOptions& options : {kSmooth, kRough, kOne}) {
    Bench b(size, options);
    b.fill_dram(options.seed);
    b.run(program);
  }
}

}  // namespace

TEST_CASE("copy in and out") {
  on_all(R"(ld to=out seg=arena off=0 sp=3 nx=40 ny=5 nz=2 sy=50 sz=300 y1=5 x1=40 sig=1
            st seg=io0 off=64 sp=3 nx=40 ny=5 nz=2 sy=40 sz=200 wai=1 sig=2
            end wai=2)");
}

TEST_CASE("a row crosses 4 KiB, forwards and backwards") {
  on_all(R"(ld to=out seg=arena off=0xfe0 nx=256 ny=2 sy=-3 y1=2 x1=256 sig=1
            st seg=io0 off=0x1ff8 nx=256 ny=2 sy=600 wai=1 sig=2
            end wai=2)");
}

TEST_CASE("padding is fill and is not read") {
  on_all(R"(ld to=out seg=arena off=0 sp=0 nx=9 ny=8 nz=2 sy=7 sz=40 y0=-2 y1=5 x0=-1 x1=7 fill=-77 sig=1
            st seg=io0 off=0 nx=144 wai=1 sig=2
            end wai=2)");
}

TEST_CASE("padding alone touches no memory") {
  // the segment's address with a negative row would be outside the device
  on_all(R"(ld to=out seg=code off=0 nx=4 ny=3 sy=100 y0=-100 y1=5 x1=4 fill=5 sig=1
            ld to=out seg=code off=0 sp=12 nx=4 ny=1 y1=1 x0=-8 x1=4 fill=6 sig=1
            st seg=io0 off=0 nx=16 wai=1 sig=2
            end wai=2)");
}

TEST_CASE("convolution tile") {
  for (int size : {8, 16})
    on_all(R"(ld to=in seg=arena off=0 nx=9 ny=9 nz=2 sy=7 sz=49 y0=-1 y1=7 x0=-1 x1=7 fill=-3
              ld to=w seg=weights off=0 nx=16 ny=18 sy=16 y1=18 x1=16 sig=1
              ld to=par seg=weights off=0x8000 nx=9 y1=1 x1=9 sig=2
              mac wdir=row zin=-3 acc_base=5 n_ow=7 n_oh=7 n_kw=3 n_kh=3 n_ci=2 s_ow=1 s_oh=9 s_kw=1 s_kh=9 s_ci=81 wai=1 sig=4
              vec a=acc scl=lane a_base=5 n_ow=7 n_oh=7 s_ow=1 s_oh=7 d_ow=1 d_oh=7 zp=4 lo=-128 hi=127 wai=6 sig=8
              st seg=io0 off=0 nx=49 wai=8 sig=16
              end wai=16)",
           size);
}

TEST_CASE("convolution with stride, backwards strides and a second part accumulated") {
  on_all(R"(ld to=in seg=arena off=0 nx=200 ny=2 sy=200 y1=2 x1=200
            ld to=w seg=weights off=0 nx=128 ny=2 sy=128 y1=2 x1=128 sig=1
            mac wdir=row zin=5 in_base=30 acc_base=1020 n_ow=6 n_oh=3 n_kw=3 n_kh=2 n_ci=2 s_ow=2 s_oh=26 s_kw=-1 s_kh=-13 s_ci=150 wai=1
            mac wdir=row accum=1 zin=-128 in_base=390 w_base=96 acc_base=1020 n_ow=18 n_oh=1 n_kw=2 n_ci=2 s_ow=-9 s_kw=-3 s_ci=-200 sig=2
            vec a=acc a_base=1020 n_ow=18 s_ow=1 ma=1234567 sh=33 zp=-7 lo=-100 hi=90 d_base=9 d_ow=1 wai=2 sig=4
            st seg=io0 off=0 sp=9 nx=18 wai=4 sig=8
            end wai=8)");
}

TEST_CASE("weights by column: a product with the transpose") {
  for (int size : {8, 16})
    on_all(R"(ld to=in seg=arena off=0 nx=64 ny=1 y1=1 x1=64
              ld to=w seg=weights off=0 nx=64 ny=1 y1=1 x1=64 sig=1
              mac wdir=col n_ow=20 n_ci=3 s_ow=3 s_ci=1 zin=7 wai=1 sig=2
              vec a=acc n_ow=20 s_ow=1 ma=1000000000 sh=40 lo=-128 hi=127 d_ow=1 wai=2 sig=4
              st seg=io0 off=0 nx=20 wai=4 sig=8
              end wai=8)",
           size);
}

TEST_CASE("a product of two activations: both have a zero point") {
  for (int size : {8, 16})
    on_all(R"(ld to=in seg=arena off=0 nx=64 ny=1 y1=1 x1=64
              ld to=w seg=arena off=0x4000 nx=64 ny=1 y1=1 x1=64 sig=1
              mac wdir=col n_ow=20 n_ci=3 s_ow=3 s_ci=1 zin=7 zw=-128 wai=1
              mac wdir=row n_ow=20 n_ci=2 s_ow=2 s_ci=1 zin=-9 zw=127 w_base=11 acc_base=20
              mac wdir=row n_ow=20 s_ow=1 zw=5 w_base=3 acc_base=20 accum=1 sig=2
              vec a=acc n_ow=40 s_ow=1 ma=1000000000 sh=42 lo=-128 hi=127 d_ow=1 wai=2 sig=4
              st seg=io0 off=0 nx=40 wai=4 sig=8
              end wai=8)",
           size);
}

TEST_CASE("the largest sum that one product of two activations may have") {
  Bench b(8, kSmooth);
  b.run(R"(ld to=w seg=arena nx=256 ny=64 y1=0 fill=127
           ld to=in seg=arena nx=1 y1=0 fill=127 sig=1
           mac zin=-128 zw=-128 n_ci=1024 n_kh=2 wai=1
           mac wdir=diag zin=-128 zw=-128 n_ci=3 acc_base=1
           end)");
  const auto& acc = b.golden().memories.at("acc");
  int32_t sum[2];
  std::memcpy(&sum[0], &acc[4 * 3], 4);
  std::memcpy(&sum[1], &acc[4 * (8 + 3)], 4);
  CHECK(sum[0] == 255 * 255 * 16384);
  CHECK(sum[1] == 255 * 255 * 3);
}

TEST_CASE("rows: maxima and quotients, between mac and st") {
  for (int size : {8, 16})
    on_all(R"(ld to=in seg=arena off=0 nx=200 ny=1 y1=1 x1=200
              ld to=out seg=arena off=0x8000 nx=200 ny=1 y1=1 x1=200
              ld to=w seg=weights off=0 nx=64 ny=1 y1=1 x1=64 sig=1
              mac wdir=row n_ow=60 s_ow=1 acc_base=1000 zin=-128 zw=-128 wai=1 sig=2
              row f=max a=in n_ow=11 a_ow=3 n_oh=3 a_oh=41 n_k=6 a_k=5 n=83 d_base=300 d_ow=1 d_oh=11 wai=2
              row f=div a=out a_base=7 n_ow=20 a_ow=1 n_oh=3 a_oh=20 b_base=1000 b_ow=1 b_oh=20 za=-128 ma=40000 sh=41 lo=-128 hi=127 d_base=333 d_ow=1 d_oh=20
              row f=div a=in dst=out n_ow=9 a_ow=1 b_base=1003 za=100 ma=1 sh=22 zp=3 lo=-100 hi=99 d_base=393 d_ow=1
              row f=max a=out dst=in a_base=2 n=5 d_base=199 sig=4
              st seg=io0 off=0 sp=300 nx=102 wai=4 sig=8
              end wai=8)",
           size);
}

TEST_CASE("layer norm: sums, variances and rows, while mac writes the other half and the same half of acc") {
  for (int size : {8, 16})
    on_all(R"(ld to=in seg=arena off=0 nx=200 ny=1 y1=1 x1=200
              ld to=par seg=weights off=0x4000 nx=100 ny=1 y1=1 x1=100
              ld to=w seg=weights off=0 nx=64 ny=1 y1=1 x1=64 sig=1
              ld to=out seg=arena off=0x8000 nx=200 ny=1 y1=1 x1=200 sig=32
              mac wdir=row n_ow=40 n_ci=3 s_ow=1 s_ci=40 acc_base=1000 zin=-3 zw=-1 wai=1 sig=2
              mac wdir=row n_ow=200 n_ci=2 s_ow=0 s_ci=40 acc_base=100 zw=5
              mac wdir=row n_ow=200 n_ci=2 s_ow=0 s_ci=40 acc_base=1300 zw=5
              row f=var a=in n_ow=20 a_ow=1 n_oh=2 a_oh=20 n_k=3 a_k=40 za=-3 b_base=1000 b_ow=1 b_oh=20 ma=1000 d_base=1600 d_ow=1 d_oh=20 wai=2
              row f=var a=in n_ow=30 a_ow=1 n_k=1 za=100 b_base=1005 b_ow=1 ma=65535 sh=3 d_base=310 d_ow=1
              norm a=in n_ow=40 a_ow=1 n_k=3 a_k=40 za=-3 b_base=1000 b_ow=1 c_base=1600 c_ow=1 p_base=7 mb=4096 sh=24 zp=3 lo=-128 hi=127 d_base=300 d_ow=1 d_k=40 wai=32
              norm a=out dst=in n_ow=9 a_ow=3 n_k=2 a_k=1 za=7 b_base=1005 b_ow=0 c_base=310 c_ow=2 p_base=60 mb=1 sh=20 lo=-100 hi=99 d_base=240 d_ow=2 d_k=1 sig=4
              norm a=in n_ow=1 n_k=1 b_base=1000 c_base=1601 mb=0 sh=0 lo=-128 hi=127 d_base=500 sig=8
              st seg=io0 off=0 sp=300 nx=120 wai=12
              st seg=io0 off=0x1000 sp=500 nx=1 sig=16
              end wai=16)",
           size);
}

TEST_CASE("one output pixel: fewer vectors than a tile takes to load") {
  on_all(R"(ld to=in seg=arena off=0 nx=64 ny=1 y1=1 x1=64
            ld to=w seg=weights off=0 nx=128 ny=2 sy=128 y1=2 x1=128 sig=1
            mac wdir=row n_ci=30 s_ci=2 wai=1 acc_base=2047
            mac wdir=diag n_ci=64 s_ci=1 w_base=7 acc_base=2046 zin=-1
            mac wdir=tri n_ci=20 s_ci=3 n_kw=3 s_kw=1 s_ow=1 w_base=3 acc_base=2045 sig=2
            vec a=acc a_base=2045 n_ow=3 s_ow=1 ma=1 sh=8 lo=-128 hi=127 d_ow=1 wai=2 sig=4
            st seg=io0 off=0 nx=3 wai=4 sig=8
            end wai=8)");
}

TEST_CASE("depthwise, one tap and up to three taps a cycle") {
  for (int size : {8, 16})
    on_all(R"(ld to=in seg=arena off=0 nx=11 ny=11 nz=1 sy=9 y0=-1 y1=9 x0=-1 x1=9 fill=12
              ld to=w seg=weights off=0 nx=25 ny=1 y1=1 x1=25 sig=1
              mac wdir=diag zin=12 n_ow=9 n_oh=9 n_kw=3 n_kh=3 s_ow=1 s_oh=11 s_kw=1 s_kh=11 wai=1
              mac wdir=tri zin=12 acc_base=81 n_ow=9 n_oh=9 n_kw=3 n_kh=3 s_ow=1 s_oh=11 s_kw=1 s_kh=11
              mac wdir=tri zin=12 acc_base=162 n_ow=5 n_oh=5 n_kw=3 n_kh=3 s_ow=2 s_oh=22 s_kw=1 s_kh=11
              mac wdir=tri zin=12 acc_base=187 n_ow=4 n_oh=6 n_kw=2 n_kh=5 s_ow=2 s_oh=11 s_kw=2 s_kh=11
              mac wdir=tri accum=1 zin=12 acc_base=187 w_base=9 n_ow=4 n_oh=6 n_kw=1 n_kh=5 s_ow=2 s_oh=11 s_kw=1 s_kh=11
              mac wdir=tri zin=12 in_base=120 acc_base=211 n_ow=10 n_oh=2 n_kw=3 n_kh=2 s_ow=-1 s_oh=-30 s_kw=-1 s_kh=-11 sig=2
              vec a=acc n_ow=231 s_ow=1 ma=300000 sh=26 lo=-128 hi=127 d_ow=1 wai=2 sig=4
              st seg=io0 off=0 nx=231 wai=4 sig=8
              end wai=8)",
           size);
}

TEST_CASE("residual add of two scales, with broadcast, into in and back") {
  on_all(R"(ld to=out seg=arena off=0 nx=256 ny=3 sy=256 y1=3 x1=256 sig=1
            ld to=in seg=arena off=0x4000 nx=256 ny=1 y1=1 x1=256 sig=2
            vec2 a=out b=in bop=add a_base=3 b_base=7 d_base=300 n_ow=10 n_oh=4 a_ow=1 a_oh=10 b_ow=1 b_oh=12 d_ow=1 d_oh=13 za=-5 zb=100 zp=9 lo=-128 hi=127 ma=9000000 mb=-4500000 sh=24 wai=3
            vec2 a=out b=out bop=add dst=in a_base=3 b_base=50 d_base=1000 n_ow=40 a_ow=1 b_ow=0 d_ow=1 za=-5 zb=100 zp=9 lo=0 hi=127 ma=8388608 mb=8388607 sh=23
            vec2 a=out b=out bop=mul a_base=3 b_base=60 d_base=400 n_ow=40 a_ow=1 b_ow=1 d_ow=1 za=1 zb=-2 lo=-128 hi=127 ma=70000 sh=22
            vec2 a=in b=out a_base=1000 b_base=400 d_base=500 n_ow=40 a_ow=1 b_ow=1 d_ow=1 lo=-128 hi=127 ma=1 mb=1 sh=1 sig=4
            st seg=io0 off=0 sp=300 nx=240 wai=4 sig=8
            end wai=8)");
}

TEST_CASE("pools: maximum and average, windows up to 31 x 31, strides, from acc too") {
  on_all(R"(ld to=out seg=arena off=0 nx=40 ny=50 sy=40 y1=50 x1=40 sig=1
            ld to=in seg=arena off=0 nx=40 ny=40 sy=40 y0=-1 y1=38 x0=-1 x1=38 fill=-128 sig=2
            ld to=w seg=weights off=0 nx=9 y1=1 x1=9 sig=4
            vec a=in red=max n_ow=19 n_oh=19 n_kw=3 n_kh=3 s_ow=2 s_oh=80 s_kw=1 s_kh=40 ma=1 lo=-128 hi=127 dst=in d_base=1600 d_ow=1 d_oh=21 wai=3
            vec a=out red=sum n_ow=2 n_oh=2 n_kw=31 n_kh=31 s_ow=3 s_oh=160 s_kw=1 s_kh=40 za=-11 zp=-11 ma=1117 sh=20 lo=-128 hi=127 d_base=1700 d_ow=1 d_oh=2
            vec a=out red=max n_ow=2 n_oh=2 n_kw=32 n_kh=32 s_ow=3 s_oh=160 s_kw=1 s_kh=40 ma=1 lo=-128 hi=100 d_base=1704 d_ow=1 d_oh=2
            mac wdir=tri n_ow=8 n_oh=8 n_kw=3 n_kh=3 s_ow=1 s_oh=40 s_kw=1 s_kh=40 wai=4 sig=8
            vec a=acc red=max n_ow=4 n_oh=4 n_kw=2 n_kh=2 s_ow=2 s_oh=16 s_kw=1 s_kh=8 ma=400000 sh=27 lo=-128 hi=127 d_base=1710 d_ow=1 d_oh=4 wai=8
            vec a=in red=sum a_base=1600 n_ow=19 n_oh=19 s_ow=1 s_oh=21 ma=1 lo=-128 hi=127 d_base=1 d_ow=1 d_oh=19 sig=16
            st seg=io0 off=0 sp=1 nx=181 ny=2 sy=181 wai=16
            st seg=io1 off=0 sp=1700 nx=26 sig=32
            end wai=32)");
}

TEST_CASE("tables") {
  for (int size : {8, 16})
    on_all("ld to=tab seg=weights off=0 y1=1 x1=256 nx=" + std::to_string(1024 / size) + R"(
              ld to=out seg=arena off=0 nx=200 y1=1 x1=200 sig=1
              vec a=out lut=t8 slot=0 n_ow=100 s_ow=1 ma=1 lo=-128 hi=127 d_base=200 d_ow=1 wai=1
              vec a=out lut=t8 slot=3 a_base=100 n_ow=50 s_ow=1 ma=3 sh=2 zp=20 lo=-128 hi=127 d_base=300 d_ow=1
              vec2 a=out b=out lut=t8 slot=1 n_ow=50 a_ow=1 b_base=50 b_ow=1 ma=3 mb=5 sh=3 lo=-128 hi=127 d_base=350 d_ow=1 sig=2
              st seg=io0 off=0 sp=200 nx=200 wai=2 sig=4
              end wai=4)",
           size);
}

TEST_CASE("clamp whose bounds are crossed gives hi") {
  on_all(R"(ld to=out seg=arena off=0 nx=20 y1=1 x1=20 sig=1
            vec a=out n_ow=20 s_ow=1 ma=1 lo=30 hi=-30 d_base=20 d_ow=1 wai=1 sig=2
            st seg=io0 off=0 sp=20 nx=20 wai=2
            end)");
}

TEST_CASE("accumulators at the ends of their range, multipliers and shifts too") {
  Bench b(8, kSmooth);
  b.fill_dram(9);
  // parameters: extreme biases, multipliers with the top bit set (ignored), shifts with the top bits set (ignored)
  std::vector<uint8_t> par(9 * 8);
  const int32_t bias[8] = {INT32_MAX, INT32_MIN, -1, 0, 1, INT32_MAX, INT32_MIN, 12345};
  const uint32_t mul[8] = {0x7fffffff, 0x7fffffff, 0x80000001, 0xffffffff, 0x7fffffff, 1, 1, 0x40000000};
  const uint8_t shift[8] = {56, 56, 0, 31, 63, 24, 24, 0xc0 + 40};
  std::memcpy(par.data(), bias, 32);
  std::memcpy(par.data() + 32, mul, 32);
  std::memcpy(par.data() + 64, shift, 8);
  b.write_dram(b.segment("weights"), par.data(), par.size());
  b.run(R"(ld to=par seg=weights off=0 sp=3 nx=9 y1=1 x1=9
           ld to=out seg=arena off=0 nx=100 y1=1 x1=100 sig=1
           vec a=out scl=lane p_base=3 n_ow=100 s_ow=1 za=-128 lo=-128 hi=127 d_base=100 d_ow=1 wai=1
           vec a=out scl=lane p_base=3 n_ow=100 s_ow=1 za=127 lo=-128 hi=127 d_base=200 d_ow=1
           vec a=out n_ow=100 s_ow=1 za=127 ma=0x7fffffff sh=63 lo=-128 hi=127 d_base=300 d_ow=1
           vec a=out n_ow=100 s_ow=1 za=127 ma=0x7fffffff sh=38 lo=-128 hi=127 d_base=400 d_ow=1 sig=2
           st seg=io0 off=0 sp=100 nx=200 ny=2 sy=200 wai=2
           end)");
}

TEST_CASE("an accumulator at -2**31: subtracting a zero point does not wrap a maximum") {
  Bench b(8, kSmooth);
  b.run(R"(ld to=w seg=arena nx=256 ny=64 y1=0 fill=127
           ld to=in seg=arena nx=1 y1=0 fill=-128 sig=1
           mac zin=127 n_ci=1024 n_kh=2 wai=1
           mac zin=127 n_ci=1024 n_kh=2 accum=1
           mac zin=127 n_ci=1024 n_kh=2 accum=1
           mac zin=127 n_ci=1024 n_kh=2 accum=1
           mac zin=127 n_ci=96 accum=1
           mac zin=97 n_ci=1 accum=1
           mac zin=-128 acc_base=1 sig=2
           ld to=w seg=arena nx=8 y1=0 fill=1 wai=2 sig=4
           mac zin=-127 accum=1 wai=4 sig=8
           vec a=acc red=max n_kw=2 s_kw=1 za=100 ma=1 lo=-128 hi=127 wai=8
           vec a=acc red=sum n_kw=2 s_kw=1 za=100 ma=1 sh=24 lo=-128 hi=127 d_base=1 sig=16
           st seg=io0 off=0 nx=2 wai=16
           end)");
  const auto& acc = b.golden().memories.at("acc");
  CHECK(acc[3] == 0x80);  // the upper byte of lane 0
  CHECK(acc[0] + acc[1] + acc[2] == 0);
}

TEST_CASE("queues overlap and meet at semaphores: double buffering") {
  std::string program;
  for (int t = 0; t < 6; ++t) {
    const std::string half = std::to_string((t & 1) * 100), bank = std::to_string((t & 1) * 1024);
    const auto wait = [&](int mask, int free) { return " wai=" + std::to_string(mask | (t >= 2 ? free : 0)); };
    program +=
        "ld to=in seg=arena off=" + std::to_string(t * 2048) + " sp=" + half + " nx=80 y1=1 x1=80 sig=1" + wait(0, 2);
    program += "\nld to=w seg=weights off=" + std::to_string(t * 512) + " sp=" + half + " nx=16 y1=1 x1=16 sig=4";
    program += "\nmac wdir=row in_base=" + half + " w_base=" + half + " acc_base=" + bank +
               " n_ow=40 n_ci=2 s_ow=1 s_ci=40 sig=10" + wait(5, 16);
    program += "\nvec a=acc a_base=" + bank + " d_base=" + half +
               " n_ow=40 s_ow=1 ma=70000 sh=26 lo=-128 hi=127 d_ow=1 sig=48" + wait(8, 64);
    program += "\nst seg=io0 off=" + std::to_string(t * 1024) + " sp=" + half + " nx=40 sig=64" + wait(32, 0) + "\n";
  }
  on_all(program + "end");
}

TEST_CASE("a store is seen by a load that waits for it") {
  on_all(R"(ld to=out seg=arena off=0 nx=100 y1=1 x1=100 sig=1
            st seg=io1 off=0 nx=100 wai=1 sig=2
            ld to=in seg=io1 off=0 nx=100 y1=1 x1=100 wai=2 sig=4
            vec a=in n_ow=100 s_ow=1 ma=2 lo=-128 hi=127 d_base=200 d_ow=1 wai=4 sig=8
            st seg=io2 off=0 sp=200 nx=100 wai=8
            end)");
}

}  // namespace dlc::cosim
