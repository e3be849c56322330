#include "dlc/hw/simulator.h"

#include <cstring>

#include "mini.h"

using namespace dlc;

namespace {

// Loads two vectors and a weight, multiplies, halves, stores.
const char* const kProgram = R"(
  ld to=buf seg=weights off=0 sp=0 n=4 sig=0x1          # words 0 .. 3
  mul a=0 b=2 d=0 n=2 m=1 s=1 wai=0x1 sig=0x2           # acc[i] = buf[i]*buf[2]
  post src=acc fn=half dst=buf a=0 d=8 n=2 wai=0x2 sig=0x4
  st seg=arena off=16 sp=8 n=2 wai=0x4
  end
)";

struct Machine {
  explicit Machine(const HwDescription& hw, const SimOptions& options = {})
      : description(hw), arena(256), weights(256), sim(make(hw, options)) {
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::byte>(i + 1);
    CHECK(sim.bind(hw.find_space("dram.weights"), weights, true).has_value());
    CHECK(sim.bind(hw.find_space("dram.arena"), arena, false).has_value());
  }
  static Simulator make(const HwDescription& hw, const SimOptions& options) {
    auto s = Simulator::make(hw, options);
    if (!s) FAIL(to_string(s.error()));
    return std::move(*s);
  }
  Result<SimResult> run(const std::string& text) {
    auto program = assemble(description, text);
    if (!program) FAIL(to_string(program.error()));
    return sim.run(*program);
  }
  const HwDescription& description;
  std::vector<std::byte> arena, weights;
  Simulator sim;
};

}  // namespace

TEST_CASE("a program runs to its end with the right bytes") {
  const HwDescription hw = mini();
  Machine m(hw);
  REQUIRE_OK(const SimResult r, m.run(kProgram));
  CHECK_FALSE(r.fault.has_value());
  CHECK(r.retired == 5);
  CHECK(r.semaphores == std::vector<int64_t>(8, 0));
  for (int i = 0; i < 2; ++i)
    for (int l = 0; l < 4; ++l) {
      const int product = (4 * i + l + 1) * (8 + l + 1);
      CHECK(static_cast<int>(m.arena[static_cast<size_t>(16 + 4 * i + l)]) == ((product + 1) >> 1));
    }
  CHECK(m.sim.is_defined(hw.find_space("dram.arena"), 16, 24));
  CHECK_FALSE(m.sim.is_defined(hw.find_space("dram.arena"), 15, 24));
}

TEST_CASE("every interleaving of a race-free program leaves the same writes in each queue") {
  const HwDescription hw = mini();
  std::vector<std::vector<SimWrite>> first;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Machine m(hw, {true, true, seed});
    REQUIRE_OK(const SimResult r, m.run(kProgram));
    CHECK_FALSE(r.fault.has_value());
    if (seed == 0) first = m.sim.writes();
    REQUIRE(m.sim.writes().size() == first.size());
    for (size_t q = 0; q < first.size(); ++q) {
      REQUIRE(m.sim.writes()[q].size() == first[q].size());
      for (size_t w = 0; w < first[q].size(); ++w) {
        CHECK(m.sim.writes()[q][w].space == first[q][w].space);
        CHECK(m.sim.writes()[q][w].begin == first[q][w].begin);
        CHECK(m.sim.writes()[q][w].bytes == first[q][w].bytes);
      }
    }
  }
  REQUIRE(first.at(0).size() == 2);  // io: the load and the store
  CHECK(first[0][1].begin == 16);
  CHECK(first[0][1].instruction == 3);
}

TEST_CASE("a race shows as an undefined read in some interleaving") {
  const HwDescription hw = mini();
  std::string text = kProgram;
  text.replace(text.find(" wai=0x1"), 8, "");
  bool seen = false;
  for (uint64_t seed = 1; seed < 20 && !seen; ++seed) {
    Machine m(hw, {true, false, seed});
    const auto r = m.run(text);
    if (!r) {
      seen = true;
      CHECK_THAT(to_string(r.error()), Catch::Matchers::Contains("reads buf at word 0, which was never written"));
    }
  }
  CHECK(seen);
}

TEST_CASE("the machine's own faults") {
  const HwDescription hw = mini();
  SECTION("out of bounds: nothing is written") {
    Machine m(hw);
    REQUIRE_OK(const SimResult r,
               m.run("ld to=buf seg=weights off=0 sp=0 n=1\n ld to=buf seg=weights off=0 sp=62 n=4"));
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->cause == "oob");
    CHECK(r.fault->code == 2);
    CHECK(r.fault->instruction == 1);
    CHECK(r.epc.at(0) == 1);
    CHECK(r.retired == 1);
    CHECK_FALSE(m.sim.is_defined(hw.find_space("buf"), 62 * 4, 63 * 4));
  }
  SECTION("beyond the segment that was bound") {
    Machine m(hw);
    REQUIRE_OK(const SimResult r, m.run("ld to=buf seg=weights off=252 sp=0 n=2"));
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->detail == "reads dram.weights words 252 .. 259, which has 256");
  }
  SECTION("a store to a read-only segment") {
    Machine m(hw);
    REQUIRE_OK(const SimResult r, m.run("ld to=buf seg=weights n=1\n st seg=weights n=1"));
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->detail == "writes dram.weights, which is read-only");
  }
  SECTION("deadlock") {
    Machine m(hw);
    REQUIRE_OK(const SimResult r, m.run("mul wai=0x1\n ld seg=weights n=1 wai=0x8"));
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->cause == "watchdog");
    CHECK(r.epc == std::vector<int64_t>{1, 0});
    CHECK_THAT(r.fault->detail, Catch::Matchers::Contains("io: ld"));
  }
  SECTION("a semaphore beyond its 4 bits") {
    std::string text;
    for (int i = 0; i < 16; ++i) text += "end sig=0x1\n";
    Machine m(hw);
    REQUIRE_OK(const SimResult r, m.run(text));
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->cause == "sem");
    CHECK(r.fault->instruction == 15);
  }
  SECTION("a semaphore that two queues wait on") {
    Machine m(hw);
    REQUIRE_OK(const SimResult r, m.run("end sig=0x1\n end wai=0x1\n end sig=0x1\n post src=buf dst=acc wai=0x1"));
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->cause == "sem");
    CHECK(r.fault->instruction == 3);
    CHECK(r.fault->detail == "semaphore 0 is waited on by the queues io and alu");
  }
  SECTION("an illegal word, after everything before it") {
    Machine m(hw);
    REQUIRE_OK(const auto program, assemble(hw, "ld to=buf seg=weights n=1"));
    REQUIRE_OK(auto words, encode_program(hw, program));
    words.insert(words.end(), {15, 0, 0, 0});
    REQUIRE_OK(const SimResult r, m.sim.run_words(words));
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->cause == "illegal");
    CHECK(r.fault->code == 1);
    CHECK(r.fault->instruction == 1);
    CHECK(r.retired == 1);
  }
}

TEST_CASE("tables are loaded and looked up") {
  const HwDescription hw = mini();
  Machine m(hw);
  std::vector<std::byte> weights(1024);
  for (size_t i = 0; i < 256; ++i) weights[i] = static_cast<std::byte>(255 - i);  // entry x + 128 is 127 - x
  for (size_t i = 0; i < 4; ++i) weights[512 + i] = static_cast<std::byte>(10 * i);
  REQUIRE(m.sim.bind(hw.find_space("dram.weights"), weights, true).has_value());
  REQUIRE_OK(const SimResult r, m.run(R"(
    ld to=tab seg=weights off=0 sp=1 n=1
    ld to=buf seg=weights off=512 sp=0 n=1 sig=0x1
    post src=buf fn=lut dst=buf a=0 d=1 n=1 slot=1 wai=0x1)"));
  if (r.fault) FAIL(r.fault->detail);
  const auto buf = m.sim.memory(hw.find_space("buf"));
  for (int l = 0; l < 4; ++l) CHECK(static_cast<int8_t>(buf[static_cast<size_t>(4 + l)]) == 127 - 10 * l);
}

TEST_CASE("ROMs and reset values are there from the start") {
  REQUIRE_OK(const HwDescription hw,
             parse_hw(mini_with("words: 32, views", "words: 32, reset: -7, views"), "mini.yaml"));
  REQUIRE_OK(const Simulator sim, Simulator::make(hw));
  const auto inv = sim.memory(hw.find_space("inv"));
  uint16_t entry = 0;
  std::memcpy(&entry, inv.data() + 2, 2);
  CHECK(entry == 21845);
  int32_t word = 0;
  std::memcpy(&word, sim.memory(hw.find_space("acc")).data() + 100, 4);
  CHECK(word == -7);
  CHECK(sim.is_defined(hw.find_space("acc"), 0, 512));
  CHECK_FALSE(sim.is_defined(hw.find_space("buf"), 0, 1));
}
