// The shipped accelerator, simulated from its description, against loops written here by hand.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <random>

#include "dlc/hw/check_program.h"
#include "dlc/hw/simulator.h"
#include "mini.h"

using namespace dlc;

namespace {

HwDescription asic(int64_t r) {
  auto hw = load_hw("asic,R=" + std::to_string(r), {{std::string(DLC_SOURCE_DIR) + "/hwdesc"}});
  if (!hw) FAIL(to_string(hw.error()));
  return std::move(*hw);
}

struct Rng {
  std::mt19937_64 engine{11};
  int64_t in(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(engine() % static_cast<uint64_t>(hi - lo + 1));
  }
  int8_t s8() { return static_cast<int8_t>(in(-128, 127)); }
};

Simulator simulator(const HwDescription& hw, const SimOptions& options = {}) {
  auto s = Simulator::make(hw, options);
  if (!s) FAIL(to_string(s.error()));
  return std::move(*s);
}

template <class T>
T* words(Simulator& sim, const HwDescription& hw, const char* space) {
  return reinterpret_cast<T*>(sim.memory(hw.find_space(space)).data());
}

void run(const HwDescription& hw, Simulator& sim, const std::string& text) {
  auto program = assemble(hw, text);
  if (!program) FAIL(to_string(program.error()));
  const auto r = sim.run(*program);
  if (!r) FAIL(to_string(r.error()));
  if (r->fault) FAIL(r->fault->cause << ": " << r->fault->detail);
}

int64_t half_even(int64_t x, int s) {
  if (s == 0) return x;
  const int64_t q = x >> s, r = x - (q << s), half = int64_t{1} << (s - 1);
  return q + (r > half || (r == half && (q & 1)) ? 1 : 0);
}

}  // namespace

TEST_CASE("asic: a padded, strided 3x3 convolution through DRAM, in every interleaving") {
  constexpr int R = 8, CI = 2, K = 3, HO = 5, ST = 2, H = (HO - 1) * ST + K, H0 = H - 2;
  constexpr int ZP = -3;
  const HwDescription hw = asic(R);
  Rng rng;
  std::vector<int8_t> x(CI * H0 * H0 * R), w(CI * K * K * R * R);
  for (auto& v : x) v = rng.s8();
  for (auto& v : w) v = rng.s8();
  std::vector<int32_t> bias(R);
  std::vector<int32_t> mul(R);
  std::vector<uint8_t> sh(R);
  for (int c = 0; c < R; ++c) {
    bias[static_cast<size_t>(c)] = static_cast<int32_t>(rng.in(-2000, 2000));
    mul[static_cast<size_t>(c)] = static_cast<int32_t>(rng.in(1 << 29, INT32_MAX));
    sh[static_cast<size_t>(c)] = static_cast<uint8_t>(rng.in(36, 40));
  }
  std::vector<std::byte> weights(w.size() + R * 9);
  std::memcpy(weights.data(), w.data(), w.size());
  std::memcpy(weights.data() + w.size(), bias.data(), R * 4);
  std::memcpy(weights.data() + w.size() + R * 4, mul.data(), R * 4);
  std::memcpy(weights.data() + w.size() + R * 8, sh.data(), R);
  const std::string text = fmt::format(
      "ld to=in seg=io0 off=0 sp=0 nx={H} ny={H} nz={CI} sy={H0} sz={P} y0=-1 y1={H0} x0=-1 x1={H0} fill={ZP}\n"
      "ld to=w seg=weights off=0 sp=0 nx={R} ny={T} nz=1 sy={R} y1=4000 x1=4000 sig=0x1\n"
      "ld to=par seg=weights off={PAR} sp=0 nx=9 ny=1 nz=1 y1=1 x1=9 sig=0x2\n"
      "mac wdir=row zin={ZP} in_base=0 w_base=0 acc_base=0 n_ow={HO} n_oh={HO} n_kw=3 n_kh=3 n_ci={CI} s_ow={ST} "
      "s_oh={SO} s_kw=1 s_kh={H} s_ci={SC} wai=0x1 sig=0x4\n"
      "vec a=acc scl=lane red=sum dst=out a_base=0 d_base=0 p_base=0 n_ow={HO} n_oh={HO} s_ow=1 s_oh={HO} d_ow=1 "
      "d_oh={HO} zp=5 lo=-100 hi=127 wai=0x6 sig=0x8\n"
      "st seg=io1 off=0 sp=0 nx={N} ny=1 nz=1 wai=0x8\n"
      "end irq=1\n",
      fmt::arg("H", H), fmt::arg("CI", CI), fmt::arg("H0", H0), fmt::arg("P", H0 * H0), fmt::arg("ZP", ZP),
      fmt::arg("R", R), fmt::arg("T", CI * K * K), fmt::arg("PAR", w.size()), fmt::arg("HO", HO), fmt::arg("ST", ST),
      fmt::arg("SO", H * ST), fmt::arg("SC", H * H), fmt::arg("N", HO * HO));
  REQUIRE_OK(const auto program, assemble(hw, text));
  REQUIRE_OK(const ProgramCheck check, check_program(hw, program));
  INFO(report(hw, program, check));
  CHECK(check.ok());
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Simulator sim = simulator(hw, {true, false, seed});
    std::vector<std::byte> in(x.size()), out(HO * HO * R);
    std::memcpy(in.data(), x.data(), x.size());
    REQUIRE(sim.bind(hw.find_space("dram.io0"), in, true).has_value());
    REQUIRE(sim.bind(hw.find_space("dram.io1"), out, false).has_value());
    REQUIRE(sim.bind(hw.find_space("dram.weights"), weights, true).has_value());
    run(hw, sim, text);
    int wrong = 0;
    for (int oy = 0; oy < HO; ++oy)
      for (int ox = 0; ox < HO; ++ox)
        for (int c = 0; c < R; ++c) {
          int64_t s = 0;
          for (int ci = 0; ci < CI; ++ci)
            for (int kh = 0; kh < K; ++kh)
              for (int kw = 0; kw < K; ++kw) {
                const int iy = oy * ST + kh - 1, ix = ox * ST + kw - 1;
                if (iy < 0 || iy >= H0 || ix < 0 || ix >= H0) continue;
                for (int k = 0; k < R; ++k)
                  s += (x[static_cast<size_t>(((ci * H0 + iy) * H0 + ix) * R + k)] - ZP) *
                       w[static_cast<size_t>((((ci * K + kh) * K + kw) * R + k) * R + c)];
              }
          const auto ch = static_cast<size_t>(c);
          const int64_t q = half_even((s + bias[ch]) * mul[ch], sh[ch]) + 5;
          const auto have = static_cast<int8_t>(out[static_cast<size_t>((oy * HO + ox) * R + c)]);
          wrong += have != std::min<int64_t>(std::max<int64_t>(q, -100), 127);
        }
    CHECK(wrong == 0);
  }
}

TEST_CASE("asic: the directions of the weight load") {
  constexpr int R = 8;
  const HwDescription hw = asic(R);
  Rng rng;
  Simulator sim = simulator(hw, {false, false, 0});
  auto* in = words<int8_t>(sim, hw, "in");
  auto* w = words<int8_t>(sim, hw, "w");
  auto* acc = words<int32_t>(sim, hw, "acc");
  for (int i = 0; i < 512 * R; ++i) in[i] = rng.s8();
  for (int i = 0; i < 512 * R; ++i) w[i] = rng.s8();
  for (const char* dir : {"row", "col", "diag", "tri"}) {
    INFO(dir);
    const bool full = dir[0] == 'r' || dir[0] == 'c';
    for (int accum = 0; accum < 2; ++accum) {
      std::vector<int32_t> before(acc, acc + 64 * R);
      run(hw, sim,
          fmt::format(
              "mac accum={} wdir={} zin=4 zw=-77 in_base=10 w_base=3 acc_base=2 n_ow=4 n_oh=3 n_kw=3 n_kh=2 n_ci=2 "
              "s_ow=1 s_oh=8 s_kw=1 s_kh=5 s_ci=40",
              accum, dir));
      int wrong = 0;
      for (int oh = 0; oh < 3; ++oh)
        for (int ow = 0; ow < 4; ++ow)
          for (int c = 0; c < R; ++c) {
            int64_t s = accum ? before[static_cast<size_t>((2 + oh * 4 + ow) * R + c)] : 0;
            for (int ci = 0; ci < 2; ++ci)
              for (int kh = 0; kh < 2; ++kh)
                for (int kw = 0; kw < 3; ++kw) {
                  const int8_t* a = in + (10 + ci * 40 + kh * 5 + kw + oh * 8 + ow) * R;
                  const int tap = (ci * 2 + kh) * 3 + kw;
                  if (!full) s += (a[c] - 4) * (w[(3 + tap) * R + c] + 77);
                  for (int k = 0; full && k < R; ++k)
                    s += (a[k] - 4) *
                         ((dir[0] == 'r' ? w[(3 + tap * R + k) * R + c] : w[(3 + tap * R + c) * R + k]) + 77);
                }
            wrong += acc[(2 + oh * 4 + ow) * R + c] != static_cast<int32_t>(s);
          }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("asic: pooling, residual addition and tables") {
  constexpr int R = 8;
  const HwDescription hw = asic(R);
  Rng rng;
  Simulator sim = simulator(hw, {false, false, 0});
  auto* in = words<int8_t>(sim, hw, "in");
  auto* out = words<int8_t>(sim, hw, "out");
  auto* tab = words<int8_t>(sim, hw, "tab");
  for (int i = 0; i < 256 * R; ++i) in[i] = rng.s8();
  for (int i = 0; i < 256 * R; ++i) out[i] = rng.s8();
  for (int i = 0; i < 4 * 256; ++i) tab[i] = rng.s8();
  run(hw, sim,
      "vec a=in scl=tensor red=max dst=out a_base=0 d_base=100 n_ow=3 n_oh=2 n_kw=2 n_kh=2 s_ow=2 s_oh=12 "
      "s_kw=1 s_kh=6 d_ow=1 d_oh=3 ma=1 sh=0 lo=-128 hi=127");
  int wrong = 0;
  for (int oh = 0; oh < 2; ++oh)
    for (int ow = 0; ow < 3; ++ow)
      for (int c = 0; c < R; ++c) {
        int8_t best = -128;
        for (int kh = 0; kh < 2; ++kh)
          for (int kw = 0; kw < 2; ++kw) best = std::max(best, in[(oh * 12 + ow * 2 + kh * 6 + kw) * R + c]);
        wrong += out[(100 + oh * 3 + ow) * R + c] != best;
      }
  CHECK(wrong == 0);
  const std::vector<int8_t> b(out, out + 256 * R);
  run(hw, sim,
      "vec2 a=in b=out bop=add lut=t8 slot=2 dst=out a_base=5 b_base=20 d_base=150 n_ow=7 n_oh=1 a_ow=1 "
      "b_ow=1 d_ow=1 za=3 zb=-9 zp=2 lo=-128 hi=127 ma=5000 mb=-3000 sh=13");
  wrong = 0;
  for (int i = 0; i < 7; ++i)
    for (int c = 0; c < R; ++c) {
      const int64_t v = half_even((in[(5 + i) * R + c] - 3) * int64_t{5000} +
                                      (b[static_cast<size_t>((20 + i) * R + c)] + 9) * int64_t{-3000},
                                  13) +
                        2;
      const int64_t x = std::min<int64_t>(std::max<int64_t>(v, -128), 127);
      wrong += out[(150 + i) * R + c] != tab[2 * 256 + x + 128];
    }
  CHECK(wrong == 0);
}

// ctest -R bench_hw -V
TEST_CASE("asic: speed of the functional simulator", "[.bench]") {
  const HwDescription hw = asic(16);
  for (const bool track : {true, false}) {
    Simulator sim = simulator(hw, {track, false, 0});
    for (const char* m : {"in", "w"})
      sim.define(hw.find_space(m), 0, static_cast<int64_t>(sim.memory(hw.find_space(m)).size()));
    REQUIRE_OK(
        const auto program,
        assemble(hw, "mac wdir=row n_ow=14 n_oh=14 n_kw=3 n_kh=3 n_ci=4 s_ow=1 s_oh=16 s_kw=1 s_kh=16 s_ci=256"));
    const std::vector<Instruction> many(20, program[0]);
    const auto start = std::chrono::steady_clock::now();
    REQUIRE_OK(const SimResult r, sim.run(many));
    CHECK_FALSE(r.fault.has_value());
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    WARN("undefined tracking " << track << ": " << 20 * 14 * 14 * 9 * 4 * 256 / s / 1e9 << " GMAC/s");
    REQUIRE_OK(const Footprints maps, Footprints::make(hw));
    const auto t0 = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) REQUIRE(maps.of(program[0]).has_value());
    WARN("footprints: " << std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count() * 1e3 << " us");
  }
}

TEST_CASE("asic: speed of the program checker", "[.bench]") {
  const HwDescription hw = asic(16);
  std::string text;
  for (int i = 0; i < 2500; ++i) {
    const int half = i % 2;
    text += fmt::format("ld to=in seg=arena off={} sp={} nx=64 ny=16 nz=1 sy=64 y1=4000 x1=4000 sig=0x1{}\n", i * 4096,
                        half * 8192, i < 2 ? "" : " wai=0x2");
    text += fmt::format(
        "mac in_base={} acc_base={} n_ow=14 n_oh=14 n_kw=3 n_kh=3 n_ci=4 s_ow=1 s_oh=16 s_kw=1 s_kh=16 "
        "s_ci=256 wai=0x{:x} sig=0x6\n",
        half * 8192, half * 1024, i < 2 ? 1 : 9);
    text += fmt::format("vec a=acc dst=out a_base={} d_base={} n_ow=196 s_ow=1 d_ow=1 sh=8 wai=0x{:x} sig=0x18\n",
                        half * 1024, half * 1024, i < 2 ? 4 : 0x24);
    text += fmt::format("st seg=io0 off={} sp={} nx=196 wai=0x10 sig=0x20\n", i * 3136, half * 1024);
  }
  REQUIRE_OK(const auto program, assemble(hw, text));
  const auto start = std::chrono::steady_clock::now();
  REQUIRE_OK(const ProgramCheck check, check_program(hw, program, {.undefined = false}));
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  WARN(program.size() << " instructions checked in " << s * 1e3 << " ms");
  INFO(report(hw, program, check));
  CHECK(check.ok());
}
