// Equations over the fields of one instruction.
#include "core/map/fields.h"

#include "dlc/hw/load.h"
#include "dlc_test/catch.h"

using namespace dlc;
using dlc::map::FieldSolver;

namespace {

const HwDescription& asic() {
  static const HwDescription hw = [] {
    auto loaded = load_hw("asic,R=8", {{std::string(DLC_SOURCE_DIR) + "/hwdesc"}});
    if (!loaded) FAIL(to_string(loaded.error()));
    return std::move(*loaded);
  }();
  return hw;
}

Expr expr(const char* text) {
  auto e = parse_expr(text);
  if (!e) FAIL(to_string(e.error()));
  return *e;
}

}  // namespace

TEST_CASE("equations give fields as soon as one unknown is left") {
  const HwInsn& ld = asic().isa.insns[static_cast<size_t>(asic().isa.find("ld"))];
  FieldSolver s(ld);
  REQUIRE(s.equal(expr("off + y0*sy*8 + x0*8"), 1000 * 8));
  REQUIRE(s.equal(expr("y1 - 1 - y0"), 13));
  CHECK_FALSE(s.is_known(ld.field("off")));
  REQUIRE(s.equal(expr("y0"), -2));
  REQUIRE(s.equal(expr("sy*8"), 14 * 8));
  REQUIRE(s.equal(expr("x0"), 0));
  CHECK(s.value(expr("y1")) == 12);
  CHECK(s.value(expr("off")) == 1000 * 8 + 2 * 14 * 8);
  CHECK_FALSE(s.value(expr("off + nx")));
}

TEST_CASE("what is known decides choices and quotients, and takes unknowns away") {
  const HwInsn& ld = asic().isa.insns[static_cast<size_t>(asic().isa.find("ld"))];
  FieldSolver s(ld);
  REQUIRE(s.equal(expr("select(nx - 9, 3*ny, sy)"), 12));
  REQUIRE(s.equal(expr("nx"), 9));
  CHECK(s.value(expr("ny")) == 4);
  CHECK(s.value(expr("nx // 2 + nx % 2 + min(nx, ny)")) == 9);
  CHECK(s.value(expr("(nx - 9)*sz")) == 0);
  CHECK_FALSE(s.value(expr("sz // 2")));
  REQUIRE(s.equal(expr("(ny - 3)*sz - x0 + 5*y0"), 7));  // two unknowns: it waits
  REQUIRE(s.equal(expr("5*y0"), 10));
  REQUIRE(s.equal(expr("sz"), 1));
  CHECK(s.value(expr("x0")) == 4);
}

TEST_CASE("an equation that no field decides does not hold") {
  const HwInsn& ld = asic().isa.insns[static_cast<size_t>(asic().isa.find("ld"))];
  FieldSolver s(ld);
  REQUIRE(s.equal(expr("nx + elsewhere"), 9));
  Instruction i;
  CHECK_FALSE(s.finish(asic(), i));
}

TEST_CASE("contradictions, fractions and ranges say why") {
  const HwInsn& ld = asic().isa.insns[static_cast<size_t>(asic().isa.find("ld"))];
  FieldSolver a(ld);
  REQUIRE(a.equal(expr("nx"), 9));
  CHECK_FALSE(a.equal(expr("nx + 1"), 11));
  CHECK(a.why() == "ld: nx + 1 is 10, and must be 11");
  FieldSolver b(ld);
  CHECK_FALSE(b.equal(expr("sy*8"), 12));
  CHECK(b.why() == "ld: 8*sy cannot be 12");
  FieldSolver c(ld);
  CHECK_FALSE(c.equal(expr("nx"), 257));
  CHECK(c.why() == "ld.nx = 257 is outside 1 .. 256");
}

TEST_CASE("what is left open becomes what a field is by default, and `require` holds") {
  const HwInsn& ld = asic().isa.insns[static_cast<size_t>(asic().isa.find("ld"))];
  FieldSolver s(ld);
  REQUIRE(s.equal(expr("off"), 16));
  Instruction i;
  REQUIRE(s.finish(asic(), i));
  CHECK(i.fields[static_cast<size_t>(ld.field("nx"))] == 1);
  FieldSolver odd(ld);
  REQUIRE(odd.equal(expr("off"), 17));
  CHECK_FALSE(odd.finish(asic(), i));
}
