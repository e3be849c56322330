// The meaning of the operators at their edges, by both ways of evaluation, against values worked out by hand.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "support.h"

using namespace dlc;
using namespace dlc::test;
using Values = std::vector<double>;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

// Y[i] = expression over A[i] and B[i].
Values each(const std::string& in, const std::string& out, const std::string& expression, const Values& a,
            const Values& b) {
  const auto n = static_cast<int64_t>(a.size());
  const DType t = *parse_dtype(in);
  return run_both(fmt::format(R"(dlc.kernel 1
kernel @k {{
  in A: {0}[{2}]
  in B: {0}[{2}]
  out Y: {1}[{2}]
  for i < {2}: Y[i] = {3}
}}
)",
                              in, out, n, expression),
                  {tensor<double>(t, {n}, a), tensor<double>(t, {n}, b)});
}

bool same(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  return true;
}

}  // namespace

TEST_CASE("division rounds toward minus infinity, tdiv and fmod toward zero; by zero is undefined") {
  const Values a{7, -7, 7, -7, 1}, b{2, 2, -2, -2, 0};
  CHECK(each("s32", "s32", "A[i] // B[i] ?: 99", a, b) == Values{3, -4, -4, 3, 99});
  CHECK(each("s32", "s32", "A[i] % B[i] ?: 99", a, b) == Values{1, 1, -1, -1, 99});
  CHECK(each("s32", "s32", "tdiv(A[i], B[i]) ?: 99", a, b) == Values{3, -3, -3, 3, 99});
  CHECK(each("s32", "s32", "fmod(A[i], B[i]) ?: 99", a, b) == Values{1, -1, 1, -1, 99});
  CHECK(each("f32", "f32", "A[i] % B[i] ?: 99", a, b) == Values{1, 1, -1, -1, 99});
  CHECK(each("f32", "f32", "A[i] // B[i] ?: 99", a, b) == Values{3, -4, -4, 3, 99});
  CHECK(each("s32", "f32", "A[i] / 2", a, b) == Values{3.5, -3.5, 3.5, -3.5, 0.5});
}

TEST_CASE("shifts are arithmetic and undefined outside 0..63") {
  const Values a{-8, -8, 1, 1, 5}, b{1, 64, 40, -1, 0};
  CHECK(each("s64", "s64", "A[i] >> B[i] ?: 99", a, b) == Values{-4, 99, 0, 99, 5});
  CHECK(each("s64", "s64", "A[i] << B[i] ?: 99", a, b) == Values{-16, 99, 0x1p40, 99, 5});
  CHECK(each("u64", "u64", "A[i] >> 1", {6, 7}, {0, 0}) == Values{3, 3});
}

TEST_CASE("integers wrap in 64 bits and at stores; sat clamps") {
  CHECK(each("s64", "s64", "A[i] + B[i]", {0x1p62}, {0x1p62}) == Values{-0x1p63});
  CHECK(each("s32", "s8", "A[i]", {127, 128, -129, 300}, {0, 0, 0, 0}) == Values{127, -128, 127, 44});
  CHECK(each("s32", "u8", "A[i]", {-1, 256, 255, 5}, {0, 0, 0, 0}) == Values{255, 0, 255, 5});
  CHECK(each("s32", "s32", "sat(A[i], s8)", {127, 128, -129, 5}, {0, 0, 0, 0}) == Values{127, 127, -128, 5});
  CHECK(each("s32", "s32", "cast(A[i], u8)", {127, 256, -1, 5}, {0, 0, 0, 0}) == Values{127, 0, 255, 5});
}

TEST_CASE("floats become integers by truncation; NaN is 0") {
  const Values a{2.9, -2.9, kNan, 300, -300, kInf};
  CHECK(each("f32", "s32", "cast(A[i], s32)", a, a) == Values{2, -2, 0, 300, -300, -1});
  CHECK(each("f32", "s32", "sat(A[i], s8)", a, a) == Values{2, -2, 0, 127, -128, 127});
  CHECK(each("f32", "s32", "cast(A[i], bool)", {0, 0.5, kNan}, {0, 0, 0}) == Values{0, 1, 1});
}

TEST_CASE("NaN wins in min, max and their reductions; round is half to even") {
  CHECK(same(each("f32", "f32", "max(A[i], B[i])", {1, kNan, 1}, {2, 0, kNan}), {2, kNan, kNan}));
  CHECK(same(each("f32", "f32", "min(A[i], B[i])", {1, kNan, 1}, {2, 0, kNan}), {1, kNan, kNan}));
  CHECK(same(each("f32", "f32", "max:f32[k < 3] A[k]", {1, kNan, 2}, {0, 0, 0}), {kNan, kNan, kNan}));
  CHECK(each("f32", "f32", "round(A[i])", {0.5, 1.5, 2.5, -0.5}, {0, 0, 0, 0}) == Values{0, 2, 2, 0});
  CHECK(each("f32", "s32", "if is_nan(A[i]) then 1 else if is_inf(A[i]) then 2 else 3", {kNan, -kInf, 0}, {0, 0, 0}) ==
        Values{1, 2, 3});
}

TEST_CASE("argmax and argmin: the first wins, a NaN is the extreme") {
  CHECK(each("f32", "s64", "argmax[k < 4] A[k]", {1, 5, kNan, kNan}, {0, 0, 0, 0}) == Values{2, 2, 2, 2});
  CHECK(each("f32", "s64", "argmin[k < 4] A[(k + i) % 4]", {1, 0, 3, 0}, {0, 0, 0, 0}) == Values{1, 0, 1, 0});
}

TEST_CASE("a reduction of nothing is the operator's identity") {
  const auto empty = [](const std::string& type, const std::string& value) {
    return run_both(fmt::format(R"(dlc.kernel 1
kernel @k {{
  in A: {0}[0]
  out Y: {0}[2]
  for i < 2: Y[i] = {1}
}}
)",
                                type, value),
                    {tensor<double>(*parse_dtype(type), {0}, {})});
  };
  CHECK(empty("f32", "sum:f32[k < 0] A[k]") == Values{0, 0});
  CHECK(empty("f32", "prod:f32[k < 0] A[k]") == Values{1, 1});
  CHECK(empty("f32", "max:f32[k < 0] A[k]") == Values{-kInf, -kInf});
  CHECK(empty("s8", "max:s8[k < 0] A[k]") == Values{-128, -128});
  CHECK(empty("s8", "min:s8[k < 0] A[k]") == Values{127, 127});
  CHECK(empty("s64", "argmax[k < 0] A[k] ?: 7") == Values{7, 7});
  CHECK(empty("f32", "if any[k < 0] (A[k] > 0) then 1 else if all[k < 0] (A[k] > 0) then 2 else 3") == Values{2, 2});
}

TEST_CASE("and, or and if do not look at what does not count") {
  CHECK(each("s32", "s32", "if i < 2 and A[i + 1] > 1 then 1 else 0", {1, 2, 3}, {0, 0, 0}) == Values{1, 1, 0});
  CHECK(each("s32", "s32", "if i >= 2 or A[i + 1] > 2 then 1 else 0", {1, 2, 3}, {0, 0, 0}) == Values{0, 1, 1});
  CHECK(each("s32", "s32", "if i < 2 then A[i + 1] else B[i]", {1, 2, 3}, {7, 8, 9}) == Values{2, 3, 9});
  CHECK(each("s32", "s32", "(if i < 2 then A[i] else undef:s64) ?: 5", {1, 2, 3}, {7, 8, 9}) == Values{1, 2, 5});
}

TEST_CASE("f16 and bf16 accumulators round at every step") {
  // 2048 + 1 is 2048 in f16: ones added one by one to it are lost.
  CHECK(each("f32", "f32", "sum:f16[k < 3] A[k]", {2048, 1, 1}, {0, 0, 0})[0] == 2048);
  CHECK(each("f32", "f32", "sum:f32[k < 3] A[k]", {2048, 1, 1}, {0, 0, 0})[0] == 2050);
}
