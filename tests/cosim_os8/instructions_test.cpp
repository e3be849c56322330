// Each instruction of os8 by examples worked by hand; the RTL and the simulator that comes from the description must
// both give these numbers, no model computes them. Then random programs, and faults.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <random>

#include "dlc/hw/check_machine.h"
#include "dlc/hw/check_program.h"
#include "tests/cosim_os8/bench.h"

using namespace dlc;
using namespace dlc::asic;

namespace {

constexpr size_t kAct = 0, kWgt = 1000, kPar = 2000, kRes = 3000;  // where data of a memory begins in the segment
const std::string kLoads =
    "load to=act seg=weights off=0 nx=100 y1=1 x1=100\n"
    "load to=wgt seg=weights off=8000 nx=100 y1=1 x1=100\n"
    "load to=par seg=weights off=16000 nx=12 y1=1 x1=12\n"
    "load to=res seg=weights off=24000 nx=100 y1=1 x1=100\n";

// A record of par: the same for all lanes.
void scale(Bench& b, int zp, int lo, int hi, int sh, int32_t mul, int32_t bias) {
  std::vector<Lanes> r{every(zp), every(lo), every(hi), every(sh)};
  for (const int32_t v : {mul, bias})
    for (int w = 0; w < 4; ++w) {
      Lanes two{};
      for (size_t i = 0; i < 8; ++i) two[i] = v >> (8 * (i % 4));
      r.push_back(two);
    }
  b.data(kPar, r);
}

std::vector<Lanes> result(Bench& b, const std::string& instruction, int words) {
  b.run(kLoads + instruction + fmt::format("\nstore seg=arena sp=50 nx={}\nend", words));
  return b.arena(0, static_cast<size_t>(words));
}

}  // namespace

TEST_CASE("os8: its description is right, examples and laws included") { need(check_machine(*os8().hw)); }

TEST_CASE("os8: load pads with its fill value and keeps the order of the loops") {
  Bench b;
  std::vector<Lanes> image;
  for (int i = 0; i < 12; ++i) image.push_back(every(i + 1));  // 3 rows of 4
  b.data(0, image);
  b.run(
      "load to=res seg=weights nx=4 ny=3 sy=4 py=1 y1=3 px=1 x1=2 fill=-9\n"
      "store seg=arena nx=12\nend");
  const std::vector<int> want{-9, -9, -9, -9, -9, 1, 2, -9, -9, 5, 6, -9};
  const auto got = b.arena(0, 12);
  for (size_t i = 0; i < want.size(); ++i) CHECK(got[i] == every(want[i]));
}

TEST_CASE("os8: store goes over rows and planes, across a boundary of 4 KiB") {
  Bench b;
  std::vector<Lanes> words;
  for (int i = 0; i < 8; ++i) words.push_back(every(10 * i));
  b.data(0, words);
  b.run(
      "load to=res seg=weights nx=8 y1=1 x1=8\n"
      "store seg=arena off=4080 nx=2 ny=2 nz=2 sy=3 sz=10\nend");
  const auto got = b.arena(510, 16);
  for (size_t i = 0; i < 8; ++i) CHECK(got[i / 4 * 10 + i / 2 % 2 * 3 + i % 2] == every(10 * static_cast<int>(i)));
}

TEST_CASE("os8: conv sums over channels and taps, adds the bias, rounds half away from zero") {
  Bench b;
  // two pixels; weights of output channel c are c + 1 for input channel 0 and -1 for input channel 1, else 0
  b.data(kAct, {{3, 1, 9, 9, 9, 9, 9, 9}, {-4, 2, 9, 9, 9, 9, 9, 9}});
  b.data(kWgt, {{1, 2, 3, 4, 5, 6, 7, 8}, every(-1)});
  scale(b, 0, -128, 127, 1, 1, 0);  // half of the sum
  const auto got = result(b, "conv d_base=50 n_ow=2 s_ow=1", 2);
  // sums 2 5 8 11 14 17 20 23 and -6 -10 -14 -18 -22 -26 -30 -34
  CHECK(got[0] == Lanes{1, 3, 4, 6, 7, 9, 10, 12});
  CHECK(got[1] == Lanes{-3, -5, -7, -9, -11, -13, -15, -17});
  scale(b, 0, -128, 127, 1, 1, -9);  // -7 -4 -1 2 ..: half of -7 is -4, of -1 is -1
  CHECK(result(b, "conv d_base=50 n_ow=1", 1)[0] == Lanes{-4, -2, -1, 1, 3, 4, 6, 7});
  scale(b, 100, -128, 120, 0, 2, 0);  // 2*sum + 100, clamped
  CHECK(result(b, "conv d_base=50 n_ow=1", 1)[0] == Lanes{104, 110, 116, 120, 120, 120, 120, 120});
}

TEST_CASE("os8: conv keeps the pixels of more than one block apart") {
  Bench b;
  std::vector<Lanes> pixels;
  for (int i = 0; i < 30; ++i) pixels.push_back({i, 1, 0, 0, 0, 0, 0, 0});
  b.data(kAct, pixels);
  // tap 0: input channel 0 as it is; tap 1: three times input channel 1, which is 1 (less the zero point)
  std::vector<Lanes> w(16, every(0));
  w[0] = every(1);
  w[9] = every(3);
  b.data(kWgt, w);
  scale(b, 0, -128, 127, 0, 1, 0);
  const auto got = result(b, "conv d_base=50 n_ow=3 n_oh=7 n_kw=2 s_kw=1 s_ow=1 s_oh=4 za=-1", 21);
  for (int i = 0; i < 21; ++i) CHECK(got[static_cast<size_t>(i)] == every(i / 3 * 4 + i % 3 + 1 + 6));
}

TEST_CASE("os8: dw sees lane by lane") {
  Bench b;
  b.data(kAct, {{1, 2, 3, 4, 5, 6, 7, 8}, every(10), every(-10)});
  b.data(kWgt, {{1, 0, 0, 0, 0, 0, 0, -1}, {1, 2, 3, 4, 5, 6, 7, 8}});
  scale(b, -1, -128, 127, 0, 1, 0);
  const auto got = result(b, "dw d_base=50 n_ow=2 s_ow=1 n_kw=2 s_kw=1", 2);
  CHECK(got[0] == Lanes{10, 19, 29, 39, 49, 59, 69, 71});
  CHECK(got[1] == Lanes{-1, -21, -31, -41, -51, -61, -71, -91});
}

TEST_CASE("os8: pool is a sum or a maximum, scaled or as it is") {
  Bench b;
  b.data(kAct, {every(-7), every(3), every(-20), every(5)});
  scale(b, 2, -128, 127, 2, 1, 77);  // the bias is not a pool's
  CHECK(result(b, "pool red=max scl=no d_base=50 n_kw=2 n_kh=2 s_kh=2", 1)[0] == every(7));
  CHECK(result(b, "pool red=max scl=yes d_base=50 n_kw=2 n_kh=2 s_kh=2 za=-5", 1)[0] == every(5));  // (5 + 5)/4 + 2
  CHECK(result(b, "pool red=sum scl=yes d_base=50 n_kw=2 n_kh=2 s_kh=2", 1)[0] == every(-3));       // -19/4 is -4.75
  CHECK(result(b, "pool red=sum scl=no d_base=50 n_kw=2 n_kh=2 s_kh=2", 1)[0] == every(-17));
}

TEST_CASE("os8: add has a multiplier for each operand and rounds once") {
  Bench b;
  b.data(kAct, {every(10), every(-3)});
  b.data(kRes, {every(20), every(1)});
  scale(b, 1, -128, 127, 2, 3, -2);  // (3*(x - 1) - 2*(y - 2))/4 + 1
  const auto got = result(b, "add d_base=50 n_ow=2 za=1 zb=2", 2);
  CHECK(got[0] == every(11));  // (57 - 16)/4 = 10.25
  CHECK(got[1] == every(4));   // 10/4 = 2.5, away from zero
}

// The distance of the starts of two equal instructions.
TEST_CASE("os8: cycles of exec are those of the description") {
  Bench b;
  for (const char* line : {"conv", "conv n_ow=8", "conv n_ow=9 n_oh=5 n_kw=3 n_kh=3 n_ci=2", "conv n_ow=3 n_ci=40",
                           "dw", "dw n_ow=9 n_oh=3 n_kw=3 n_kh=2", "pool scl=yes n_ow=5",
                           "pool red=max n_ow=5 n_oh=5 n_kw=2 n_kh=2", "add", "add n_ow=20 n_oh=3"}) {
    INFO(line);
    const std::vector<Instruction> program = b.assemble(fmt::format("{0}\n{0}\n{0}\nend", line));
    const auto times = b.times(program);
    CHECK(times[2].start - times[1].start == instruction_cycles(*os8().hw, program[0]));
  }
}

namespace {

// f(n) for the first `few` seeds, or for those that the environment says (tests/cosim/streams.py).
template <class F>
void each_seed(int64_t few, const F& f) {
  const auto number = [](const char* variable, int64_t otherwise) {
    const char* n = std::getenv(variable);
    return n != nullptr ? std::atoll(n) : otherwise;
  };
  const int64_t first = number("DLC_COSIM_FIRST", 0), count = number("DLC_COSIM_SEEDS", few);
  for (int64_t n = first; n < first + count; ++n) f(static_cast<uint64_t>(n));
}

// Instructions with random fields that stay inside memories which are all defined first.
class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed), footprints_(need(Footprints::make(*os8().hw))) {
    for (size_t s = 0; s < hw_.spaces.size(); ++s)
      words_.push_back(hw_.spaces[s].segment < 0 ? hw_.state_of(static_cast<int>(s)).words : 1 << 16);
  }

  std::vector<Instruction> run(int length) {
    program_ = need(assemble(hw_,
                             "load to=act seg=weights nx=128 ny=64 sy=128 y1=64 x1=128\n"
                             "load to=wgt seg=weights nx=128 ny=64 sy=128 y1=64 x1=128\n"
                             "load to=res seg=weights nx=128 ny=32 sy=128 y1=32 x1=128\n"
                             "load to=par seg=weights off=1024 nx=128 ny=12 sy=128 y1=12 x1=128"));
    while (length > 0) length -= add(draw()) ? 1 : 0;
    program_.push_back(make_instruction(hw_, hw_.isa.find("end")));
    return program_;
  }
  int64_t in(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }

 private:
  Instruction make(const char* name, const std::vector<std::pair<const char*, int64_t>>& fields) {
    Instruction i = make_instruction(hw_, hw_.isa.find(name));
    for (const auto& [field, value] : fields) need(set_field(hw_, i, field, value));
    return i;
  }
  int64_t zero() { return in(-128, 127); }
  int64_t one_or(int64_t most) { return in(0, 1) == 0 ? 1 : in(1, most); }

  Instruction draw() {
    switch (in(0, 8)) {
      case 0:
      case 1: {
        const int64_t to = in(0, 3), nx = one_or(40), ny = one_or(5);
        return make("load", {{"to", to},
                             {"seg", in(0, 1)},
                             {"off", in(0, 2000) * 8},
                             {"sp", in(0, 8191)},
                             {"nx", nx},
                             {"ny", ny},
                             {"nz", one_or(3)},
                             {"sy", in(0, 60)},
                             {"sz", in(0, 400)},
                             {"py", in(0, 2)},
                             {"y1", in(0, 6)},
                             {"px", in(0, 3)},
                             {"x1", in(0, 60)},
                             {"fill", zero()}});
      }
      case 2:
        return make("store", {{"seg", 1},
                              {"off", in(0, 2000) * 8},
                              {"sp", in(0, 4095)},
                              {"nx", one_or(90)},
                              {"ny", one_or(4)},
                              {"nz", one_or(3)},
                              {"sy", in(90, 120)},
                              {"sz", in(500, 600)}});
      case 3:
      case 4:
        return make("conv", {{"a_base", in(0, 8191)},
                             {"w_base", in(0, 8191)},
                             {"p_base", in(0, 127)},
                             {"d_base", in(0, 4095)},
                             {"n_ow", one_or(20)},
                             {"n_oh", one_or(5)},
                             {"n_kw", one_or(4)},
                             {"n_kh", one_or(4)},
                             {"n_ci", one_or(5)},
                             {"s_ow", in(0, 3)},
                             {"s_oh", in(0, 60)},
                             {"s_kh", in(0, 40)},
                             {"s_ci", in(0, 500)},
                             {"za", zero()},
                             {"s_kw", in(0, 3)}});
      case 5:
        return make("dw", {{"a_base", in(0, 8191)},
                           {"w_base", in(0, 8191)},
                           {"p_base", in(0, 127)},
                           {"d_base", in(0, 4095)},
                           {"n_ow", one_or(20)},
                           {"n_oh", one_or(5)},
                           {"n_kw", one_or(5)},
                           {"n_kh", one_or(5)},
                           {"s_ow", in(0, 3)},
                           {"s_oh", in(0, 60)},
                           {"s_kh", in(0, 40)},
                           {"za", zero()},
                           {"s_kw", in(0, 3)}});
      case 6:
      case 7:
        return make("pool", {{"red", in(0, 1)},
                             {"scl", in(0, 1)},
                             {"a_base", in(0, 8191)},
                             {"p_base", in(0, 127)},
                             {"d_base", in(0, 4095)},
                             {"n_ow", one_or(20)},
                             {"n_oh", one_or(5)},
                             {"n_kw", one_or(6)},
                             {"n_kh", one_or(6)},
                             {"s_ow", in(0, 3)},
                             {"s_oh", in(0, 60)},
                             {"s_kh", in(0, 40)},
                             {"za", zero()}});
      default: {
        const int64_t d = in(0, 4095);
        return make("add", {{"x_base", in(0, 1) == 0 ? d : in(0, 4095)},
                            {"y_base", in(0, 8191)},
                            {"p_base", in(0, 127)},
                            {"d_base", d},
                            {"n_ow", one_or(30)},
                            {"n_oh", one_or(4)},
                            {"za", zero()},
                            {"zb", zero()}});
      }
    }
  }

  // False: it is illegal, leaves a memory, or reads at one point of its loops what it writes at another.
  bool add(Instruction i) {
    if (!check_instruction(hw_, i)) return false;
    const FootprintResult touched = need(footprints_.of(i, words_));
    if (touched.out || touched.self) return false;
    program_.push_back(std::move(i));
    return true;
  }

  const HwDescription& hw_ = *os8().hw;
  std::mt19937_64 random_;
  const Footprints footprints_;
  std::vector<int64_t> words_;
  std::vector<Instruction> program_;
};

}  // namespace

namespace {

RtlOptions rough(uint64_t seed, Random& r) {
  const auto pick = [&](std::initializer_list<uint32_t> from) {
    return from.begin()[static_cast<size_t>(r.in(0, std::ssize(from) - 1))];
  };
  return {.seed = seed,
          .latency = pick({1, 20, 100, 200}),
          .jitter = pick({0, 10, 60}),
          .backpressure = pick({0, 0, 30, 60}),
          .outstanding = pick({1, 4, 16}),
          .stall = pick({0, 0, 20, 50})};
}

}  // namespace

TEST_CASE("os8: random programs on the RTL, with stalls, jitter and backpressure", "[streams]") {
  each_seed(12, [](uint64_t n) {
    const uint64_t seed = 500 + n;
    INFO("seed " << n);
    Random r(seed);
    Bench b(rough(seed, r));
    for (std::byte& x : b.weights()) x = static_cast<std::byte>(r.in(0, 255));
    // Half of the records scale by about as much as sums need.
    for (int64_t p = 0; p < 128; p += 2)
      for (int64_t l = 0; l < 8; ++l) {
        b.weights()[static_cast<size_t>(1024 + (p * 12 + 1) * 8 + l)] = static_cast<std::byte>(r.in(-128, -40));
        b.weights()[static_cast<size_t>(1024 + (p * 12 + 2) * 8 + l)] = static_cast<std::byte>(r.in(40, 127));
        b.weights()[static_cast<size_t>(1024 + (p * 12 + 3) * 8 + l)] = static_cast<std::byte>(r.in(33, 44));
      }
    const std::vector<Instruction> program = b.synchronised(r.run(40));
    const auto proof = need(check_program(*os8().hw, program));
    INFO(report(*os8().hw, program, proof));
    REQUIRE(proof.ok());
    b.run(program);
  });
}

TEST_CASE("os8: damaged programs end, with a fault or not, and end so again after a reset", "[streams]") {
  each_seed(12, [](uint64_t n) {
    INFO("seed " << n);
    Random r(n);
    Bench b(rough(n, r));
    const std::vector<Instruction> program = b.synchronised(r.run(15));
    const auto words = need(encode_program(*os8().hw, program));
    const auto first = static_cast<int64_t>(4 * os8().hw->isa.words32());  // behind the loads that write all memories
    std::map<size_t, uint32_t> damaged;
    for (int flips = 0; flips < 3; ++flips) {
      const auto at = static_cast<size_t>(r.in(first, std::ssize(words) - 1));
      damaged.try_emplace(at, words[at]).first->second ^= 1u << r.in(0, 31);
    }
    const std::string end = b.stops(program, {damaged.begin(), damaged.end()});
    CHECK((end.empty() || end.starts_with("the device reports ")));
  });
}

TEST_CASE("os8: a load into res waits while exec writes there") {
  Bench b;
  std::vector<Lanes> rows;
  for (int i = 0; i < 100; ++i) rows.push_back(every(i));
  b.data(kAct, rows);
  b.data(kRes, rows);
  // The pool needs the first load only, and writes while the last one does; the store sees what became of that.
  b.run(b.synchronised(b.assemble(kLoads + "pool n_ow=20 n_oh=40 s_ow=1 d_base=1000\nstore seg=arena nx=100\nend")));
  CHECK(b.arena(0, 100) == rows);
}

TEST_CASE("os8: a fault in exec stops a store in its middle") {
  Bench b;
  b.data(kRes, std::vector<Lanes>(100, every(7)));
  // The store goes out while the last load comes in; the pool waits for that one, and leaves its memory.
  const auto program = b.synchronised(b.assemble(kLoads + "load to=act seg=weights nx=100 y1=1 x1=100\n"
                                                          "store seg=arena nx=100 ny=20 sy=100 sp=0 nz=1\n"
                                                          "pool d_base=4090 n_ow=7\nend"));
  CHECK_THAT(b.stops(program), Catch::Matchers::Contains("oob in queue exec"));
  const auto at_fault = b.arena(0, 2000);
  CHECK(at_fault[0] == every(7));
  b.pass_time();
  CHECK(b.arena(0, 2000) == at_fault);
}

TEST_CASE("os8: what is wrong with a program stops the machine, and a reset brings it back") {
  using Catch::Matchers::Contains;
  Bench b;
  const auto program = [&](const std::string& text) { return b.synchronised(b.assemble(text)); };
  const auto good = program(kLoads + "conv d_base=50\nend");
  CHECK(b.stops(good) == "");
  CHECK_THAT(b.stops(good, {{19, 1u << 31}}), Contains("illegal"));                   // conv: a bit of no field
  CHECK_THAT(b.stops(good, {{0, 7u << 11 | 1}}), Contains("illegal in queue load"));  // no segment 7
  CHECK_THAT(b.stops(program("load nx=1 y1=1 x1=1")), Contains("illegal"));           // no `end`
  CHECK_THAT(b.stops(good, {{18, 0x7fff0}}), Contains("illegal in queue exec"));  // 128*16*16 vectors: sums may wrap
  CHECK_THAT(b.stops(program("conv a_base=8190 n_ow=3 s_ow=1\nend")), Contains("oob in queue exec"));
  CHECK_THAT(b.stops(program("conv w_base=8185\nend")), Contains("oob in queue exec"));
  CHECK_THAT(b.stops(program("pool d_base=4090 n_ow=7\nend")), Contains("oob in queue exec"));
  CHECK_THAT(b.stops(program("store sp=4090 nx=7 seg=arena\nend")), Contains("oob in queue store"));
  CHECK_THAT(b.stops(program("load to=par sp=1500 nx=37 y1=1 x1=37\nend")), Contains("oob in queue load"));
  std::string many;
  for (int i = 0; i < 16; ++i) many += "pool push=1\n";
  CHECK_THAT(b.stops(b.assemble(many + "end pop=0")), Contains("sem in queue exec"));
  CHECK_THAT(b.stops(b.assemble("conv pop=1\nend")), Contains("watchdog"));
  Bench broken({.error_begin = 4096, .error_end = uint64_t{1} << 26});
  CHECK_THAT(broken.stops(good), Contains("axi in queue load"));
}
