// Attributes read through their record: what is given, or the declared default.
#include "dlc/ops/attributes.h"

#include "dlc_test/catch.h"

using namespace dlc;

namespace {
const Record& record(const char* name) {
  const Record* r = RecordSet::builtin().find(name);
  REQUIRE(r != nullptr);
  return *r;
}
}  // namespace

TEST_CASE("an attribute that is not given has its record's default") {
  const Attrs none;
  CHECK(Attributes(record("conv"), none).integer("group") == 1);
  CHECK(Attributes(record("conv"), none).list("stride", 2) == std::vector<Expr>{Expr(1), Expr(1)});
  CHECK(Attributes(record("pad"), none).text("mode") == "constant");
  CHECK(Attributes(record("gemm"), none).real("alpha") == 1.0);
  CHECK(Attributes(record("top_k"), none).integer("axis") == -1);
  CHECK_FALSE(Attributes(record("top_k"), none).integer("k").has_value());     // required
  CHECK_FALSE(Attributes(record("conv"), none).integer("color").has_value());  // not of this record
}

TEST_CASE("an attribute that is given is what it is") {
  const Attrs given{{"group", Expr(4)}, {"stride", std::vector<Expr>{Expr(2), Expr(3)}}, {"pad_lo", Expr::symbol("p")}};
  const Attributes conv(record("conv"), given);
  CHECK(conv.integer("group") == 4);
  CHECK(conv.list("stride", 2) == std::vector<Expr>{Expr(2), Expr(3)});
  CHECK_FALSE(conv.list("stride", 3).has_value());
  CHECK_FALSE(conv.integer("pad_lo").has_value());  // no number
  CHECK_FALSE(conv.text("group").has_value());
  const Attrs two{{"alpha", Expr(2)}, {"beta", 0.5}};
  CHECK(Attributes(record("gemm"), two).real("alpha") == 2.0);
  CHECK(Attributes(record("gemm"), two).real("beta") == 0.5);
}
