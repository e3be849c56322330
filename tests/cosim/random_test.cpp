// Random programs on the RTL, on Golden, and on the simulator that comes from the description: three meanings, two of
// them independent. streams.py runs many of them: DLC_COSIM_FIRST and DLC_COSIM_SEEDS say which, DLC_COSIM_PARAMS and
// DLC_COSIM_MODEL a machine that is not 8x8 (nor, for one seed of six, 16x16).
#include <cstdlib>
#include <random>

#include "dlc/hw/check_program.h"
#include "dlc/hw/simulator.h"
#include "dlc_test/catch.h"
#include "tests/cosim/bench.h"
#include "tests/cosim/streams.h"

namespace dlc::cosim {
namespace {

constexpr int64_t kSegment = 0x20000;

int64_t number(const char* variable, int64_t otherwise) {
  const char* n = std::getenv(variable);
  return n != nullptr ? std::atoll(n) : otherwise;
}

// f(n) for the first `few`, or for those that the environment says.
template <class F>
void each_seed(int64_t few, const F& f) {
  const int64_t first = number("DLC_COSIM_FIRST", 0), count = number("DLC_COSIM_SEEDS", few);
  for (int64_t n = first; n < first + count; ++n) f(static_cast<uint64_t>(n));
}

Bench bench(int size, const RtlOptions& options) {
  const char *params = std::getenv("DLC_COSIM_PARAMS"), *model = std::getenv("DLC_COSIM_MODEL");
  return params != nullptr && model != nullptr ? Bench(params, model, options) : Bench(size, options);
}

RtlOptions options(uint64_t seed) {
  std::mt19937_64 r(seed);
  const auto pick = [&](std::initializer_list<uint32_t> from) { return from.begin()[r() % from.size()]; };
  return {.seed = seed,
          .latency = pick({1, 20, 100, 200}),
          .jitter = pick({0, 10, 60}),
          .backpressure = pick({0, 0, 30, 60}),
          .outstanding = pick({1, 4, 16}),
          .stall = pick({0, 0, 20, 50})};
}

// The functional simulator's memories against Golden's, after the same program on the same data.
void compare_simulator(const Bench& b, const std::vector<uint8_t>& dram, Golden& golden,
                       const std::vector<Instruction>& program, uint64_t seed) {
  auto sim = Simulator::make(b.hw(), {.seed = seed});
  if (!sim) FAIL(to_string(sim.error()));
  std::vector<std::vector<std::byte>> segments;
  for (const uint64_t at : golden.segments) {
    const auto* first = reinterpret_cast<const std::byte*>(dram.data()) + at;
    segments.emplace_back(first, first + (at == 0 ? 0x10000 : kSegment));
  }
  const HwInsn& ld = b.hw().isa.insns[static_cast<size_t>(b.hw().isa.find("ld"))];
  const auto& names = ld.fields[static_cast<size_t>(ld.field("seg"))].enumerators;
  for (size_t s = 0; s < segments.size(); ++s)
    if (auto r = sim->bind(names[s].space, segments[s], true); !r) FAIL(to_string(r.error()));
  const auto r = sim->run(program);
  if (!r) FAIL(to_string(r.error()));
  REQUIRE(!r->fault);
  for (size_t s = 1; s < segments.size(); ++s) {  // not the program
    INFO("segment " << names[s].name);
    const auto* want = reinterpret_cast<const std::byte*>(golden.dram.data()) + golden.segments[s];
    REQUIRE(std::equal(segments[s].begin(), segments[s].end(), want));
  }
  for (const auto& [name, bytes] : golden.memories) {
    const int space = b.hw().find_space(name);
    const auto got = sim->memory(space);
    for (size_t i = 0; i < bytes.size(); ++i)
      if (sim->is_defined(space, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1) &&
          static_cast<uint8_t>(got[i]) != bytes[i])
        FAIL(name << " byte " << i << ": simulator " << int(got[i]) << ", golden " << int(bytes[i]));
  }
}

}  // namespace

TEST_CASE("random programs: RTL, golden and simulator agree", "[streams]") {
  each_seed(12, [](uint64_t n) {
    const uint64_t seed = 1000 + n;
    INFO("seed " << n);
    Bench b = bench(n % 6 == 5 ? 16 : 8, options(seed));
    b.fill_dram(seed);
    const std::vector<Instruction> program = random_program(b.hw(), seed, 60, kSegment);
    const auto proof = check_program(b.hw(), program);
    if (!proof) FAIL(to_string(proof.error()));
    INFO(report(b.hw(), program, *proof));
    REQUIRE(proof->ok());
    const std::vector<uint8_t> dram = b.golden().dram;
    b.run(program);
    compare_simulator(b, dram, b.golden(), program, seed);
  });
}

TEST_CASE("damaged programs end: with a fault or not, and a reset brings the machine back", "[streams]") {
  each_seed(20, [](uint64_t n) {
    INFO("seed " << n);
    std::mt19937_64 random(n ^ 77);
    Bench b = bench(8, options(n));
    b.fill_dram(1);
    auto words = encode_program(b.hw(), random_program(b.hw(), n, 20, kSegment));
    REQUIRE(words.has_value());
    const size_t defines = 17 * 256;  // bits of the instructions that write all memories once
    for (int flips = 0; flips < 3; ++flips) {
      const size_t bit = defines + random() % (words->size() * 32 - defines);
      (*words)[bit / 32] ^= 1u << (bit % 32);
    }
    const Outcome out = b.run_rtl(*words, 20'000'000);
    CHECK((out.done || out.cause != 0));
    b.soft_reset();
    b.fill_dram(2);
    b.run(random_program(b.hw(), n, 10, kSegment));
  });
}

}  // namespace dlc::cosim
