#include <cmath>
#include <limits>

#include "dlc/base/checked.h"
#include "dlc/base/diag.h"
#include "dlc/base/dtype.h"
#include "dlc/base/tensor.h"
#include "dlc_test/catch.h"

using namespace dlc;

TEST_CASE("diagnostics name place, node and next step") {
  Diagnostic d{Severity::error, {"m.onnx", 3, 7, "conv1"}, "bad", "fix it"};
  CHECK(to_string(d) == "m.onnx:3:7: error: bad (node conv1)\n  next: fix it");
}

TEST_CASE("nearest finds a typo and nothing for another word") {
  CHECK(nearest("quues", {"queues", "params"}) == "queues");
  CHECK(nearest("zebra", {"queues", "params"}).empty());
}

TEST_CASE("floor division and remainder") {
  CHECK(floor_div(-7, 2) == -4);
  CHECK(floor_mod(-7, 2) == 1);
  CHECK(floor_mod(7, -2) == -1);
  CHECK(floor_div(std::numeric_limits<int64_t>::min(), -1) == std::numeric_limits<int64_t>::min());
}

TEST_CASE("dtype text round-trips and refuses nonsense") {
  for (const char* s :
       {"bool", "s8",   "u8",       "s16",        "u31",    "u48",        "s64",    "u64",    "f16", "f32",
        "f64",  "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "s4",  "u2"}) {
    REQUIRE(parse_dtype(s).has_value());
    CHECK(to_string(*parse_dtype(s)) == s);
  }
  for (const char* s : {"", "s", "s0", "s65", "f8", "f4", "f8e4m3", "x32", "s08", "s8 "})
    CHECK_FALSE(parse_dtype(s).has_value());
}

TEST_CASE("wrap_to is two's complement") {
  CHECK(wrap_to(kS8, 200) == -56);
  CHECK(wrap_to(kU8, -1) == 255);
  CHECK(wrap_to(DType{DType::Kind::unsigned_int, 31}, -1) == 0x7fffffff);
  CHECK(wrap_to(kBool, 2) == 1);
}

TEST_CASE("tensor sizes are checked") {
  CHECK_FALSE(Tensor::make(kF32, {int64_t{1} << 40, int64_t{1} << 40}).has_value());
  CHECK_FALSE(Tensor::make(kF32, {-1}).has_value());
  REQUIRE_OK(auto empty, Tensor::make(kF32, {0, 3}));
  CHECK(empty.is_valid());
  CHECK(empty.elements() == 0);
}

TEST_CASE("tensors copy on write") {
  REQUIRE_OK(auto a, Tensor::from<float>(kF32, {2}, std::vector<float>{1, 2}));
  Tensor b = a;
  b.set_double(0, 5);
  CHECK(a.get_double(0) == 1);
  CHECK(b.get_double(0) == 5);
}

TEST_CASE("tensor casts truncate floats and wrap integers") {
  REQUIRE_OK(auto a, Tensor::from<float>(kF32, {4}, std::vector<float>{1.9f, -1.9f, 300.0f, NAN}));
  REQUIRE_OK(auto b, a.cast(kS8));
  CHECK(b.get_int(0) == 1);
  CHECK(b.get_int(1) == -1);
  CHECK(b.get_int(2) == 44);
  CHECK(b.get_int(3) == 0);
}
