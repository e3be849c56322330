// Speed of the simulation and use of the array on a layer that fills it: the reason for the style of the RTL.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "dlc_test/catch.h"
#include "tests/cosim/bench.h"

namespace dlc::cosim {
namespace {
// Time this thread ran: what others do on the machine does not count.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
}  // namespace

TEST_CASE("a 3x3 layer of 64 channels in and out keeps the array busy") {
  Bench b(16, {.latency = 80, .jitter = 32});
  b.fill_dram(1);
  // four groups of 16 output channels over 14 x 14 pixels, weights and accumulators double-buffered, repeated
  std::string text = "ld to=par seg=weights off=0x1f000 nx=9 y1=1 x1=9\n";
  const int rounds = 16;
  for (int t = 0; t < 4 * rounds; ++t) {
    const std::string buffer = std::to_string((t & 1) * 576), bank = std::to_string((t & 1) * 1024);
    const std::string out = std::to_string((t & 1) * 256);
    const auto wait = [&](int mask, int free) { return " wai=" + std::to_string(mask | (t >= 2 ? free : 0)) + "\n"; };
    if (t % 4 == 0)
      text += "ld to=in seg=arena off=0 sp=" + std::to_string((t / 4 & 1) * 1024) +
              " nx=16 ny=16 nz=4 sy=16 sz=256 y1=16 x1=16" + (t >= 8 ? " wai=128\n" : "\n");
    text += "ld to=w seg=weights off=" + std::to_string(t % 4 * 9216) + " sp=" + buffer +
            " nx=192 ny=3 sy=192 y1=3 x1=192 sig=1" + wait(0, 2);
    text += "mac wdir=row in_base=" + std::to_string((t / 4 & 1) * 1024) + " w_base=" + buffer + " acc_base=" + bank +
            " n_ow=14 n_oh=14 n_kw=3 n_kh=3 n_ci=4 s_ow=1 s_oh=16 s_kw=1 s_kh=16 s_ci=256 sig=" +
            std::to_string(2 + 4 + (t % 4 == 3 ? 128 : 0)) + wait(1, 8);
    text += "vec a=acc scl=lane a_base=" + bank + " d_base=" + out + " n_ow=196 s_ow=1 lo=-128 hi=127 d_ow=1 sig=24" +
            wait(4, 32);
    text += "st seg=io0 off=" + std::to_string(t % 4 * 3136) + " sp=" + out + " nx=196 sig=32" + wait(16, 0);
  }
  const std::vector<Instruction> program = b.assemble(text + "end");
  const auto words = encode_program(b.hw(), program);
  REQUIRE(words.has_value());
  // the best of a few runs: what the simulation can do, not what else the machine's caches are busy with
  double cycles = 0, speed = 0;
  for (int run = 0; run < 4; ++run) {
    b.start(*words);
    const uint64_t begin = b.port().now();
    const double t0 = thread_seconds();
    REQUIRE(b.port().wait_irq(10'000'000).has_value());
    cycles = static_cast<double>(b.port().now() - begin);
    speed = std::max(speed, cycles / (thread_seconds() - t0));
    REQUIRE(b.read_csr("STAT") == 2);
    b.write_csr("STAT", 2);
  }
  const double utilisation = 196.0 * 36 * 4 * rounds / cycles;
  std::printf("nx16 16x16: %.0f cycles, %.2f Mcycles/s, MAC utilisation %.1f %%\n", cycles, speed / 1e6,
              100 * utilisation);
  CHECK(utilisation > 0.97);
  // Its floor is for a quiet machine: the ctest entry bench_rtl_speed gives it.
  if (const char* floor = std::getenv("DLC_RTL_SPEED")) CHECK(speed >= std::atof(floor));
}

}  // namespace dlc::cosim
