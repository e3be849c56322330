#include "dlc/hw/check_program.h"

#include "mini.h"

using namespace dlc;

namespace {

ProgramCheck check(const HwDescription& hw, const std::string& text) {
  auto program = assemble(hw, text);
  if (!program) FAIL(to_string(program.error()));
  auto c = check_program(hw, *program, {.undefined = false});
  if (!c) FAIL(to_string(c.error()));
  INFO(report(hw, *program, *c));
  return std::move(*c);
}

std::string first_problem(const HwDescription& hw, const std::string& text) {
  const ProgramCheck c = check(hw, text);
  return c.problems.empty() ? "" : c.problems[0].kind + ": " + c.problems[0].message;
}

// Double buffering in the words 0 .. 3 and 4 .. 7 of buf: semaphore 0 counts full buffers, 1 counts free ones.
const std::string kDoubleBuffered = R"(
  ld seg=weights off=0 sp=0 n=4 sig=0x1
  ld seg=weights off=16 sp=4 n=4 sig=0x1
  mul a=0 b=0 d=0 n=4 m=1 s=1 wai=0x1 sig=0x2
  ld seg=weights off=32 sp=0 n=4 wai=0x2 sig=0x1
  mul a=4 b=4 d=4 n=4 m=1 s=1 wai=0x1 sig=0x2
  ld seg=weights off=48 sp=4 n=4 wai=0x2 sig=0x1
  mul a=0 b=0 d=8 n=4 m=1 s=1 wai=0x1
  mul a=4 b=4 d=12 n=4 m=1 s=1 wai=0x1
)";

}  // namespace

TEST_CASE("a double-buffered program is proved") {
  const ProgramCheck c = check(mini(), kDoubleBuffered);
  CHECK(c.ok());
  CHECK(c.highest.at(0) == 2);
  CHECK(c.highest.at(1) == 2);
}

TEST_CASE("dropping any wait is flagged") {
  const HwDescription hw = mini();
  size_t at = 0, dropped = 0;
  while ((at = kDoubleBuffered.find(" wai=0x", at)) != std::string::npos) {
    std::string text = kDoubleBuffered;
    text.erase(at, 8);
    INFO(text);
    CHECK_FALSE(check(hw, text).ok());
    at += 8;
    ++dropped;
  }
  CHECK(dropped == 6);
}

TEST_CASE("a token that is there from the start orders nothing") {
  const std::string once = "ld seg=weights sp=0 n=4 sig=0x1\n mul a=0 b=0 d=0 n=4 m=1 s=1 wai=0x1";
  CHECK(check(mini(), once).ok());
  auto hw = parse_hw(mini_with("counter: 4, count: 8,", "counter: 4, count: 8, reset: 1,"), "m");
  if (!hw) FAIL(to_string(hw.error()));
  const ProgramCheck c = check(*hw, once);
  CHECK(c.problems.empty());
  CHECK(c.races.size() == 1);
}

TEST_CASE("a race names both instructions and the words") {
  const HwDescription hw = mini();
  REQUIRE_OK(const auto program, assemble(hw, "ld seg=weights sp=2 n=4\n mul a=0 b=0 d=0 n=4 m=1 s=1"));
  REQUIRE_OK(const ProgramCheck c, check_program(hw, program));
  REQUIRE(c.races.size() == 1);
  CHECK(c.races[0].first == 0);
  CHECK(c.races[0].second == 1);
  CHECK(c.races[0].first_writes);
  CHECK_FALSE(c.races[0].second_writes);
  CHECK_THAT(report(hw, program, c), Catch::Matchers::Contains("reads buf words 2 .. 3 with nothing to order them"));
}

TEST_CASE("two reads and disjoint words are no race") {
  const HwDescription hw = mini();
  CHECK(check(hw, "ld seg=weights sp=8 n=4\n mul a=0 b=0 d=0 n=4 m=1 s=1").ok());
  CHECK(check(hw, "st seg=arena sp=0 n=4\n mul a=0 b=0 d=0 n=4 m=1 s=1").ok());
}

TEST_CASE("tokens of two signallers order only what they must") {
  const HwDescription hw = mini();
  // Both queues signal 0; one wait may be met by either, two waits prove both.
  const std::string one =
      "ld seg=weights sp=0 n=1 sig=0x1\n post src=buf dst=acc a=9 d=9 sig=0x1\n post src=buf dst=acc a=0 d=0 wai=0x1\n";
  CHECK_FALSE(check(hw, one).ok());
  const std::string two =
      "ld seg=weights sp=0 n=1 sig=0x1\n post src=buf dst=acc a=9 d=9 sig=0x1\n post src=buf dst=acc a=8 d=1 wai=0x1\n "
      "post src=buf dst=acc a=0 d=0 wai=0x1\n";
  CHECK(check(hw, two).ok());
}

TEST_CASE("programs that cannot end, or break a rule") {
  const HwDescription hw = mini();
  CHECK(first_problem(hw, "mul wai=0x1") == "deadlock: queue alu waits for ever at: mul wai=0x1");
  // the queue io holds two: the load that would free them is never fetched
  CHECK_THAT(first_problem(hw, "st seg=arena wai=0x1\n st seg=arena\n st seg=arena\n mul a=9 b=9 sig=0x1"),
             Catch::Matchers::Contains("deadlock: queue io waits for ever"));
  CHECK(first_problem(hw, "end sig=0x1\n end wai=0x1\n end sig=0x1\n mul a=9 b=9 wai=0x1") ==
        "waiters: semaphore 0 is waited on by the queues io and alu");
  std::string many;
  for (int i = 0; i < 16; ++i) many += "end sig=0x1\n";
  CHECK(first_problem(hw, many) == "overflow: semaphore 0 can reach 16, it holds at most 15");
  CHECK(first_problem(hw, "mul a=60 b=0 d=0 n=3 m=2 s=2") == "oob: reads buf words 60 .. 65, which has 64");
  CHECK(first_problem(hw, "post src=buf dst=buf a=0 d=0 n=4") == "");
  CHECK(first_problem(hw, "post src=buf dst=buf a=0 d=2 n=4") ==
        "overlap: reads and writes buf words 2 .. 3 at different points of its loops");
  CHECK(first_problem(hw, "mul accum=1 a=0 b=0 d=0 n=4 m=1") == "");
  CHECK(first_problem(hw, "st seg=weights") == "oob: writes dram.weights, which is read-only");
}

TEST_CASE("reads of words that nothing wrote") {
  const HwDescription hw = mini();
  const auto first = [&](const std::string& text) {
    auto program = assemble(hw, text);
    if (!program) FAIL(to_string(program.error()));
    auto c = check_program(hw, *program);
    if (!c) FAIL(to_string(c.error()));
    return c->problems.empty() ? std::string() : c->problems[0].kind + ": " + c->problems[0].message;
  };
  CHECK(first(kDoubleBuffered) == "");
  CHECK(first("ld seg=weights sp=0 n=3 sig=0x1\n mul a=0 b=2 d=0 n=2 m=2 s=1 wai=0x1") ==
        "undefined: reads buf word 3, which nothing before it writes");
  CHECK(first("ld seg=weights sp=0 n=4 sig=0x1\n mul accum=1 a=0 b=2 d=7 n=2 m=2 s=1 wai=0x1") ==
        "undefined: reads acc word 7, which nothing before it writes");
  CHECK(first("ld seg=weights sp=0 n=1 sig=0x1\n post src=buf fn=lut dst=acc a=0 slot=1 wai=0x1") ==
        "undefined: reads tab word 1, which nothing before it writes");
  CHECK(first("ld seg=weights sp=0 n=1\n ld to=tab seg=weights sp=1 n=1 sig=0x1\n"
              "post src=buf fn=lut dst=acc a=0 slot=1 wai=0x1") == "");
}
