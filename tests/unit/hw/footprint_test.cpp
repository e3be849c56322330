#include "dlc/hw/footprint.h"

#include <random>
#include <set>

#include "mini.h"

using namespace dlc;

namespace {

std::vector<Footprint> touched(const HwDescription& hw, const std::string& line) {
  auto program = assemble(hw, line);
  if (!program) FAIL(to_string(program.error()));
  auto maps = Footprints::make(hw);
  if (!maps) FAIL(to_string(maps.error()));
  auto f = maps->of((*program)[0]);
  if (!f) FAIL(to_string(f.error()));
  CHECK_FALSE(f->out.has_value());
  return f->accesses;
}

}  // namespace

TEST_CASE("strided sets are exactly the bytes of their points") {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 400; ++round) {
    std::vector<StridedDim> dims;
    for (int d = 0; d < 3; ++d)
      dims.push_back({static_cast<int64_t>(rng() % 25) - 12, 1 + static_cast<int64_t>(rng() % 4)});
    const int64_t width = 1 + static_cast<int64_t>(rng() % 5);
    std::set<int64_t> want;
    for (int64_t a = 0; a < dims[0].count; ++a)
      for (int64_t b = 0; b < dims[1].count; ++b)
        for (int64_t c = 0; c < dims[2].count; ++c)
          for (int64_t w = 0; w < width; ++w)
            want.insert(100 + a * dims[0].stride + b * dims[1].stride + c * dims[2].stride + w);
    bool exact = true;
    std::set<int64_t> have;
    for (const ByteRange& r : strided_set(100, dims, width, &exact))
      for (int64_t i = r.begin; i < r.end; ++i) CHECK(have.insert(i).second);
    CHECK(exact);
    CHECK(have == want);
  }
}

TEST_CASE("a set of too many pieces becomes its hull") {
  bool exact = true;
  CHECK(strided_set(0, {{10, 100}, {5000, 100}}, 1, &exact, 50) == ByteSet{{0, 990 + 495000 + 1}});
  CHECK_FALSE(exact);
}

TEST_CASE("overlap of sets") {
  CHECK(first_overlap({{0, 4}, {8, 12}}, {{4, 8}, {11, 20}}) == ByteRange{11, 12});
  CHECK_FALSE(first_overlap({{0, 4}}, {{4, 8}}).has_value());
}

TEST_CASE("an instruction touches what its text says") {
  const HwDescription hw = mini();
  const int buf = hw.find_space("buf"), acc = hw.find_space("acc"), arena = hw.find_space("dram.arena");
  SECTION("a load, whose padding is not read") {
    const auto f = touched(hw, "ld to=buf seg=arena off=64 sp=2 n=5 lo=2");
    REQUIRE(f.size() == 2);
    CHECK(f[0].space == arena);
    CHECK(f[0].bytes == ByteSet{{64 + 2 * 4, 64 + 5 * 4}});
    CHECK(f[1].space == buf);
    CHECK(f[1].write);
    CHECK(f[1].bytes == ByteSet{{2 * 4, 7 * 4}});
  }
  SECTION("a product reads its accumulator only when it accumulates") {
    const auto fresh = touched(hw, "mul a=8 b=20 d=3 n=2 m=3 s=10");
    REQUIRE(fresh.size() == 3);
    CHECK(fresh[0].bytes == ByteSet{{8 * 4, 11 * 4}, {18 * 4, 21 * 4}});
    CHECK(fresh[1].bytes == ByteSet{{20 * 4, 23 * 4}});
    CHECK(fresh[2].bytes == ByteSet{{3 * 16, 5 * 16}});
    const auto more = touched(hw, "mul accum=1 a=8 b=20 d=3 n=2 m=3 s=-4");
    REQUIRE(more.size() == 4);
    CHECK(more[0].space == acc);
    CHECK_FALSE(more[0].write);
    CHECK(more[1].bytes == ByteSet{{4 * 4, 7 * 4}, {8 * 4, 11 * 4}});
  }
  SECTION("a table is read anywhere in its slot") {
    const auto f = touched(hw, "post src=acc fn=lut dst=buf slot=1 n=2");
    const int tab = hw.find_space("tab");
    bool found = false;
    for (const Footprint& x : f)
      if (x.space == tab) {
        found = true;
        CHECK_FALSE(x.exact);
        CHECK(x.bytes == ByteSet{{256, 512}});
      }
    CHECK(found);
    for (const Footprint& x : touched(hw, "post src=acc fn=half dst=buf")) CHECK(x.space != tab);
  }
}

TEST_CASE("an access outside its memory is reported") {
  const HwDescription hw = mini();
  REQUIRE_OK(const Footprints maps, Footprints::make(hw));
  REQUIRE_OK(const auto program, assemble(hw, "mul a=60 b=0 d=0 n=3 m=2 s=2"));
  REQUIRE_OK(const FootprintResult f, maps.of(program[0]));
  REQUIRE(f.out.has_value());
  CHECK(f.out->space == hw.find_space("buf"));
  CHECK(f.out->highest == 65);
  CHECK(f.out->words == 64);
  REQUIRE_OK(const auto down, assemble(hw, "mul a=3 b=0 d=0 n=3 m=1 s=-2"));
  REQUIRE_OK(const FootprintResult below, maps.of(down[0]));
  REQUIRE(below.out.has_value());
  CHECK(below.out->lowest == -1);
}

TEST_CASE("what both sides of a condition on data evaluate is read for sure") {
  const auto read = [](const char* stage) {
    const auto hw = parse_hw(mini_with("x = if fn == half then half(x) else", stage), "mini.yaml", {});
    if (!hw) FAIL(to_string(hw.error()));
    const auto program = assemble(*hw, "post src=acc dst=buf a=31 n=2");
    const auto maps = Footprints::make(*hw);
    if (!program || !maps) FAIL("no program");
    return maps->of((*program)[0]);
  };
  const auto sure = read("x = if x == 0 then x else (x + 1) >> 1\"\n        - \"x = if fn == half then half(x) else");
  REQUIRE(sure->out.has_value());
  CHECK(sure->out->highest == 32);  // acc has 32 words
}
