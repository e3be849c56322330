// Section `cost`: what it says wrongly is found at its place; what it says enters the predicted times.
#include <array>
#include <fstream>
#include <sstream>

#include "dlc/hw/load.h"
#include "dlc/hw/timing.h"
#include "dlc_test/catch.h"

namespace dlc {
namespace {

std::string asic_text() {
  std::ifstream in(std::string(DLC_SOURCE_DIR) + "/hwdesc/asic.yaml");
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::vector<InstructionTime> times(const std::string& text, const std::string& program) {
  const auto hw = parse_hw(text, "asic.yaml", {});
  if (!hw) FAIL(to_string(hw.error()));
  const auto assembled = assemble(*hw, program);
  if (!assembled) FAIL(to_string(assembled.error()));
  return predict_times(*hw, *assembled);
}

}  // namespace

TEST_CASE("mistakes in the costs of issue and transfers are told") {
  const std::string good = asic_text();
  REQUIRE(parse_hw(good, "asic.yaml", {}).has_value());
  const std::vector<std::array<const char*, 3>> cases = {
      {"    st: {bursts", "    sx: {bursts", "there is no instruction 'sx'"},
      {"look: 3", "look: -3", "-3 is outside 0 .. 1048576"},
      {"look: 3", "locks: 3", "unknown key 'locks'"},
      {"fetch: \"latency + 4\"", "fetch: \"latancy + 4\"", "latancy"},
      {"fetch: \"latency + 4\"", "fetch: \"latency - 400\"", "outside 0 .. 1048576"},
      {"bursts: \"nz*ny\"", "bursts: \"nq*ny\"", "nq"},
      {"bursts: \"nz*ny\", ", "", "bursts"}};
  for (const auto& [from, to, message] : cases) {
    INFO(to);
    const auto hw = parse_hw(replaced(good, from, to), "asic.yaml", {});
    REQUIRE_FALSE(hw.has_value());
    CHECK(to_string(hw.error()).find(message) != std::string::npos);
  }
}

TEST_CASE("costs do not change what programs run on, and enter the predicted times") {
  const std::string good = asic_text(), slow = replaced(good, "look: 3", "look: 7");
  CHECK(parse_hw(good, "a", {})->arch_hash == parse_hw(slow, "a", {})->arch_hash);
  const std::string vec = "vec a=out n_ow=50\n";
  const auto fast = times(good, vec + vec + "end"), late = times(slow, vec + vec + "end");
  REQUIRE(fast.size() == 3);
  CHECK(late[0].start == fast[0].start + 4);
  CHECK(fast[0].retire - fast[0].start + 1 == 57);  // `cycles`
  CHECK(fast[1].start == fast[0].retire + 1);
  CHECK(fast[2].start > fast[1].retire);  // `end` waits for everything
  // The wait of a queue for another: a store starts when what it waits for has retired.
  const auto waits = times(good, "vec a=out n_ow=50 sig=1\nst seg=io0 wai=1\nend");
  CHECK(waits[1].start == waits[0].retire + 1);
  // A program that never ends is replayed as far as it goes.
  CHECK(times(good, "st seg=io0 wai=1\nend").size() == 2);
}

TEST_CASE("a transfer takes its time in a queue that yields a port, too") {
  const std::string good = asic_text(),
                    yields = replaced(good, "conflict: \"stall vec\"}\n  w:", "conflict: \"stall ld\"}\n  w:");
  const std::string program = "ld to=in seg=arena nx=50 y1=1 x1=50\nend";
  const auto want = times(good, program), got = times(yields, program);
  CHECK(got[0].retire == want[0].retire);
  CHECK(got[0].retire - got[0].start > 50);
}

}  // namespace dlc
