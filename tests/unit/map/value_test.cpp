// Values as the matcher sees them.
#include "core/map/value.h"

#include "dlc_test/catch.h"

using namespace dlc;

namespace {

// sum of x with itself, `times` times over, each half a value of its own: a tree of 2^times reads
Val doubled(int times) {
  if (times == 0) return val::read(0, kS8, {val::index(Expr::symbol("i"))});
  return val::binary(BinaryOp::add, doubled(times - 1), doubled(times - 1));
}

}  // namespace

TEST_CASE("equal parts become one node, and the value stays what it is") {
  const Val v = doubled(6);
  REQUIRE(v->args[0] != v->args[1]);
  Val one = map::shared(v);
  CHECK(val::structurally_equal(one, v));
  for (; one->kind == ValKind::binary; one = one->args[0]) CHECK(one->args[0] == one->args[1]);
  const Val apart = map::shared(val::binary(BinaryOp::sub, doubled(1), doubled(2)));
  CHECK(apart->args[0] == apart->args[1]->args[0]);
  CHECK(apart->args[0] != apart->args[1]);
}

TEST_CASE("ranges follow from element types") {
  Kernel k;
  k.tensors.push_back({"X", kS8, {Expr(16)}, Role::input, {}});
  const Ranges loops{{"i", Range(0, 15)}};
  map::ValueRanges ranges(k, loops);
  CHECK(ranges.of(doubled(2)) == Interval{-512, 508});
  CHECK(ranges.of(val::index(Expr::symbol("i") * 3)) == Interval{0, 45});
  const Val clamped = val::call(Fn::min, {val::call(Fn::max, {doubled(0), val::integer(-128)}), val::integer(127)});
  CHECK(map::canonical(clamped, ranges)->kind == ValKind::read);
}
