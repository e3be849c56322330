// The waits and signals of a program, by what its instructions touch.
#include "core/map/sync.h"

#include "tests/unit/hw/mini.h"

using namespace dlc;

namespace {

const char* const kPlain = R"(
  ld to=buf seg=weights n=4
  mul b=2 n=2 s=1
  post src=acc dst=buf d=8 n=2
  st seg=arena off=16 sp=8 n=2
  end
)";

std::vector<Instruction> program(const HwDescription& hw, const std::string& text) {
  auto p = assemble(hw, text);
  if (!p) FAIL(to_string(p.error()));
  return std::move(*p);
}

void check(const std::string& description, const std::string& want) {
  const auto hw = parse_hw(description, "mini.yaml", {});
  if (!hw) FAIL(to_string(hw.error()));
  auto p = program(*hw, kPlain);
  const auto footprints = Footprints::make(*hw);
  REQUIRE(footprints.has_value());
  REQUIRE(map::synchronise(*hw, *footprints, p).has_value());
  CHECK(p == program(*hw, want));
}

}  // namespace

TEST_CASE("semaphores: one for each pair of queues that meet") {
  check(kMini, R"(
    ld to=buf seg=weights n=4 sig=1
    mul b=2 n=2 s=1 wai=1
    post src=acc dst=buf d=8 n=2 sig=2
    st seg=arena off=16 sp=8 n=2 wai=2
    end
  )");
}

TEST_CASE("tokens: the bit of the other queue") {  // io is queue 0, alu queue 1
  check(mini_with_tokens(), R"(
    ld to=buf seg=weights n=4 sig=2
    mul b=2 n=2 s=1 wai=1
    post src=acc dst=buf d=8 n=2 sig=1
    st seg=arena off=16 sp=8 n=2 wai=2
    end
  )");
}
