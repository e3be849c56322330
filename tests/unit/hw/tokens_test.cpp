// `sync: {model: tokens}`: a counter for each ordered pair of queues, named by a bit for the other queue.
#include <algorithm>

#include "dlc/hw/check_program.h"
#include "dlc/hw/simulator.h"
#include "dlc/hw/timing.h"
#include "mini.h"

using namespace dlc;

namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) FAIL("not in the description: " << from);
  return text.replace(at, from.size(), to);
}

HwDescription read(const std::string& text) {
  auto hw = parse_hw(text, "mini.yaml", {});
  if (!hw) FAIL(to_string(hw.error()));
  return std::move(*hw);
}

std::vector<Instruction> program(const HwDescription& hw, const std::string& text) {
  auto p = assemble(hw, text);
  if (!p) FAIL(to_string(p.error()));
  return std::move(*p);
}

// io is queue 0, alu queue 1: bit 1 of io's signal gives to alu, bit 0 of alu's wait takes from io.
const char* const kTokens = R"(
  ld to=buf seg=weights n=4 sig=2
  mul b=2 n=2 s=1 wai=1
  post src=acc dst=buf d=8 n=2 sig=1
  st seg=arena off=16 sp=8 n=2 wai=2
  end
)";
std::vector<std::byte> result(const HwDescription& hw, const std::vector<Instruction>& p, uint64_t seed) {
  auto sim = Simulator::make(hw, {.seed = seed});
  if (!sim) FAIL(to_string(sim.error()));
  std::vector<std::byte> weights(256), arena(256);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::byte>(i % 7);
  CHECK(sim->bind(hw.find_space("dram.weights"), weights, true).has_value());
  CHECK(sim->bind(hw.find_space("dram.arena"), arena, true).has_value());
  const auto r = sim->run(p);
  if (!r) FAIL(to_string(r.error()));
  if (r->fault) FAIL(r->fault->cause << ": " << r->fault->detail);
  CHECK(r->semaphores == std::vector<int64_t>(4, 0));
  return arena;
}

}  // namespace

TEST_CASE("a bit of a mask is the other queue") {
  const HwDescription hw = read(mini_with_tokens());
  REQUIRE(hw.sync->tokens());
  // the counter from p to q is 2*p + q
  CHECK(hw.sync->waits(0b01, 1) == 1u << 1);
  CHECK(hw.sync->waits(0b11, 0) == (1u << 0 | 1u << 2));
  CHECK(hw.sync->signals(0b10, 0) == 1u << 1);
  CHECK(hw.sync->signals(0b11, 1) == (1u << 2 | 1u << 3));
  CHECK(mini().sync->waits(0b1010, 1) == 0b1010);
  CHECK(hw.arch_hash != mini().arch_hash);
}

TEST_CASE("tokens order a program in the simulator, the proof and the predicted times") {
  const HwDescription hw = read(mini_with_tokens());
  const auto p = program(hw, kTokens);
  const auto proof = check_program(hw, p);
  REQUIRE(proof.has_value());
  INFO(report(hw, p, *proof));
  CHECK(proof->ok());
  const auto want = result(hw, p, 1);
  CHECK(std::ranges::count(want, std::byte{0}) < 256);
  for (uint64_t seed = 2; seed < 20; ++seed) CHECK(result(hw, p, seed) == want);
  const auto times = predict_times(hw, p);
  CHECK(times[1].start > times[0].retire);
  CHECK(times[3].start > times[2].retire);
  for (const auto& [with, without] : {std::pair(" sig=2", ""), std::pair("d=8 n=2 sig=1", "d=8 n=2")}) {
    const auto dropped = program(hw, replaced(kTokens, with, without));
    CHECK_FALSE(check_program(hw, dropped)->ok());  // its reader waits for ever
  }
  const auto free = program(hw, replaced(replaced(kTokens, " sig=2", ""), " wai=1", ""));
  CHECK_FALSE(check_program(hw, free)->races.empty());
  CHECK(predict_times(hw, free)[1].start < predict_times(hw, free)[0].retire + 4);
}

TEST_CASE("a token too many is a fault") {
  const HwDescription hw = read(mini_with_tokens());
  auto sim = Simulator::make(hw, {.track_undefined = false});
  REQUIRE(sim.has_value());
  std::string text;
  for (int i = 0; i < 16; ++i) text += "post src=acc dst=acc sig=1\n";  // counters of 4 bits
  const auto r = sim->run(program(hw, text + "end"));
  REQUIRE(r.has_value());
  REQUIRE(r->fault.has_value());
  CHECK(r->fault->cause == "sem");
}

TEST_CASE("mistakes in tokens are told") {
  const auto said = [](const std::string& text) {
    const auto hw = parse_hw(text, "mini.yaml", {});
    return hw ? std::string() : to_string(hw.error());
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(said(replaced(mini_with_tokens(), "count: 4", "count: 8")),
             Contains("mini.yaml:12:3: error: 'sem' has 8 counters; tokens between 2 queues need 4") &&
                 Contains("next: count: 4"));
  CHECK_THAT(said(replaced(mini_with_tokens(), "wai: u2@8", "wai: u4@8")),
             Contains("field 'wai' has 4 bits for 2 queues"));
  CHECK_THAT(said(mini_with("model: semaphores", "model: token")), Contains("tokens"));
}
