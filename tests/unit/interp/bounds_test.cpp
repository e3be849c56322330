// The bounds of fuzzing on kernels whose extents are symbols.
#include <fmt/format.h>

#include "dlc_test/catch.h"
#include "support.h"
#include "tests/fuzz/bound_walk.h"

using namespace dlc;
using namespace dlc::test;

namespace {

// The middle of 13 elements, as a resize to one finds it: 6.5 as 0.5 over the rounded 1 / 13.
fuzz::Number middle(std::string_view extent, const Bindings& symbols) {
  const std::string text = fmt::format(
      "dlc.kernel 1\nkernel @k {{\n  out y: f32[1]\n  for i < 1:\n    y[i] = 0.5 / (1.0 / cast({}, f32))\n}}\n",
      extent);
  REQUIRE_OK(const auto k, parse_kernel(text));
  REQUIRE_OK(const auto results, fuzz::walk(k, {}, fuzz::kMostWork, symbols));
  return results[0].elements[0];
}

}  // namespace

TEST_CASE("bounds of what is computed of a symbol have the rounding of a run") {
  const fuzz::Number at_run_time = middle("N", {{"N", 13}}), folded = middle("13", {});
  CHECK(folded.exact());
  CHECK(folded.v == 6.5);
  const float scale = 1.0F / 13.0F, computed = 0.5F / scale;
  CHECK(computed != 6.5F);
  CHECK(std::abs(computed - at_run_time.v) <= at_run_time.error);
  CHECK(at_run_time.error < 2e-6);
}

TEST_CASE("bounds want a value for every symbol") {
  REQUIRE_OK(const auto k, parse_kernel("dlc.kernel 1\nkernel @k {\n  out y: s64[1]\n  for i < 1:\n    y[i] = N\n}\n"));
  const auto results = fuzz::walk(k, {});
  REQUIRE_FALSE(results);
  CHECK(results.error().message() == "no value for symbol N");
}
