// The checker against the simulator: a program that is proved behaves the same in every interleaving.
#include <random>

#include "dlc/hw/check_program.h"
#include "dlc/hw/simulator.h"
#include "mini.h"

using namespace dlc;

namespace {

struct Rng {
  std::mt19937_64 engine;
  int below(int n) { return static_cast<int>(engine() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
};

// Instructions of both queues over few words, with tokens from each queue to the other: semaphores 0 .. 3 are waited on
// by alu, 4 .. 7 by io; now and then a queue signals itself. A wait comes after its token in program order, so that
// most programs end.
std::string random_program(Rng& rng) {
  std::string text = "ld seg=weights off=0 sp=0 n=12 sig=0x1\n post src=buf dst=acc a=0 d=0 n=4 wai=0x1 sig=0x10\n";
  int tokens[8] = {};
  ++tokens[4];
  const int n = 4 + rng.below(8);
  for (int i = 0; i < n; ++i) {
    const bool io = rng.chance(50);
    int wait = 0, signal = 0;
    for (int s = 0; s < 8; ++s) {
      const bool mine = (s >= 4) == io;
      if (mine && tokens[s] > 0 && rng.chance(70)) {
        wait |= 1 << s;
        --tokens[s];
      }
      if (rng.chance(mine ? 12 : 35)) {
        signal |= 1 << s;
        ++tokens[s];
      }
    }
    char line[160];
    const int a = rng.below(9), b = rng.below(9);
    if (io && rng.chance(60))
      std::snprintf(line, sizeof line, "ld seg=weights off=%d sp=%d n=%d wai=0x%x sig=0x%x\n", 4 * rng.below(16), a,
                    1 + rng.below(3), wait, signal);
    else if (io)
      std::snprintf(line, sizeof line, "st seg=arena off=%d sp=%d n=%d wai=0x%x sig=0x%x\n", 16 * i, a,
                    1 + rng.below(3), wait, signal);
    else if (rng.chance(50))
      std::snprintf(line, sizeof line, "mul accum=%d a=%d b=%d d=%d n=2 m=2 s=1 wai=0x%x sig=0x%x\n", rng.below(2), a,
                    b, rng.below(3), wait, signal);
    else
      std::snprintf(line, sizeof line, "post src=acc fn=half dst=buf a=%d d=%d n=%d wai=0x%x sig=0x%x\n", rng.below(3),
                    b, 1 + rng.below(2), wait, signal);
    text += line;
  }
  return text;
}

// Everything an interleaving leaves: writes of each queue, or why it stopped.
std::string outcome(const HwDescription& hw, std::span<const Instruction> program, uint64_t seed) {
  auto sim = Simulator::make(hw, {true, true, seed});
  if (!sim) FAIL(to_string(sim.error()));
  std::vector<std::byte> weights(256), arena(1024);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::byte>(i * 37);
  REQUIRE(sim->bind(hw.find_space("dram.weights"), weights, true).has_value());
  REQUIRE(sim->bind(hw.find_space("dram.arena"), arena, false).has_value());
  const auto r = sim->run(program);
  if (!r) return "error: " + to_string(r.error());
  if (r->fault) return "fault: " + r->fault->cause;
  std::string out;
  for (const auto& queue : sim->writes()) {
    for (const SimWrite& w : queue) {
      out += std::to_string(w.instruction) + ":" + std::to_string(w.space) + ":" + std::to_string(w.begin) + "=";
      for (const std::byte b : w.bytes) out += static_cast<char>(b);
    }
    out += "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("a proved program leaves the same writes in every interleaving") {
  const HwDescription hw = mini();
  Rng rng{std::mt19937_64(5)};
  int proved = 0, caught = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_program(rng);
    REQUIRE_OK(const auto program, assemble(hw, text));
    REQUIRE_OK(const ProgramCheck check, check_program(hw, program));
    INFO(text << report(hw, program, check));
    const std::string first = outcome(hw, program, 0);
    bool same = first.find("error") != 0 && first.find("fault") != 0;
    for (uint64_t seed = 1; seed < 8; ++seed) same = same && outcome(hw, program, seed) == first;
    proved += check.ok();
    caught += !same;
    if (check.ok()) CHECK(same);
  }
  // The test means something only while both kinds come up.
  CHECK(proved > 40);
  CHECK(caught > 40);
}
