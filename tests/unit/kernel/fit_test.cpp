// Indices that are computed in floats, as the integer arithmetic that says the same.
#include "core/kernel/fit.h"

#include "dlc_test/catch.h"

using namespace dlc;

namespace {

// clamp(floor((o + shift) / scale), 0, last) over o < n
std::string fitted(double shift, double scale, int64_t last, int64_t n) {
  Ranges ranges;
  ranges["o"] = Range(0, n - 1);
  const Val o = val::cast(kF32, val::index(Expr::symbol("o")));
  const Val x = val::binary(BinaryOp::div, val::binary(BinaryOp::add, o, val::real(shift)), val::real(scale));
  const Val near = val::cast(kS64, val::call(Fn::floor, {x}));
  const Val index = val::call(Fn::max, {val::call(Fn::min, {near, val::integer(last)}), val::integer(0)});
  const auto e = fit_index(index, ranges);
  return e ? to_string(*e) : "none";
}

}  // namespace

TEST_CASE("a nearest neighbour is a division where it is one at every point") {
  CHECK(fitted(0, 2, 39, 80) == "o // 2");
  CHECK(fitted(0.5, 2, 39, 80) == "o // 2");
  CHECK(fitted(0, 3, 9, 30) == "o // 3");
  CHECK(fitted(1, 3, 10, 30) == "(o + 1) // 3");
  CHECK(fitted(0, 0.5, 99, 50) == "2*o");
  CHECK(fitted(4, 1, 99, 50) == "o + 4");
  CHECK(fitted(0, 100, 99, 50) == "0");
  CHECK(fitted(0, 1, 19, 50) == "none");  // clamped
  CHECK(fitted(0, 1.5, 99, 50) == "none");
  CHECK(fitted(0, 2, 39, int64_t{1} << 20) == "none");  // too many points to look at
}
