// Which part of the numbers line 256 steps are for.
#include "core/quantize/ranges.h"

#include <cmath>

#include "dlc_test/tensors.h"

using namespace dlc;
using namespace dlc::quantization;

namespace {

Histogram of(const Tensor& t) {
  Histogram h;
  h.widen(t);
  h.count(t);
  return h;
}

// 4096 numbers of a bell curve, and one far away.
Tensor with_outlier(float outlier) {
  const Tensor a = dlc_test::noise({4096}, 1), b = dlc_test::noise({4096}, 2), c = dlc_test::noise({4096}, 3);
  std::vector<float> values;
  for (int64_t i = 0; i < a.elements(); ++i)
    values.push_back(static_cast<float>(a.get_double(i) + b.get_double(i) + c.get_double(i)));
  values.push_back(outlier);
  return dlc_test::floats({4097}, values);
}

double squared_error(const Tensor& t, const Step& s) {
  double sum = 0;
  for (const float x : t.as<float>()) {
    const double q = std::min(
        std::max(std::nearbyint(static_cast<double>(x) / s.scale) + static_cast<double>(s.zero), -128.0), 127.0);
    const double e = (q - static_cast<double>(s.zero)) * s.scale - static_cast<double>(x);
    sum += e * e;
  }
  return sum;
}

Reach chosen(const Tensor& t, RangeMethod method, double percentile = 99.9) {
  const Histogram h = of(t);
  const Histogram* one = &h;
  return choose_range({&one, 1}, {.method = method, .percentile = percentile});
}

}  // namespace

TEST_CASE("a step has 0 exactly and covers its range") {
  for (const Reach r : {Reach{-1, 3}, Reach{0, 6}, Reach{-5, 0}, Reach{-0.1, 0.2}}) {
    const Step s = step_of(r, false);
    CHECK(s.zero >= -128);
    CHECK(s.zero <= 127);
    CHECK(s.low() <= r.lo + s.scale);
    CHECK(s.high() >= r.hi - s.scale);
    CHECK(static_cast<double>(static_cast<float>(s.scale)) == s.scale);
    CHECK(step_of(r, true).zero == 0);
    CHECK(step_of(r, true).high() >= std::max(-r.lo, r.hi) * 0.999999);
  }
  CHECK(step_of({0, 6}, false).zero == -128);
  CHECK(step_of({0, 0}, false).scale == 1);  // nothing but zeros
  CHECK(step_of({0, 1e-42}, false).scale == 1);
}

TEST_CASE("min_max takes all, percentile and mse leave an outlier out") {
  const Tensor t = with_outlier(40);
  CHECK(chosen(t, RangeMethod::min_max).hi == 40);
  CHECK(chosen(t, RangeMethod::percentile).hi < 4);
  CHECK(chosen(t, RangeMethod::percentile).hi > 1.5);
  CHECK(chosen(t, RangeMethod::percentile, 100).hi == 40);
  CHECK(chosen(t, RangeMethod::percentile).lo < -1.5);
  const Tensor many = with_outlier(12);
  const Reach all = chosen(many, RangeMethod::min_max), best = chosen(many, RangeMethod::mse);
  CHECK(best.hi < all.hi);
  CHECK(squared_error(many, step_of(best, false)) < squared_error(many, step_of(all, false)));
}

TEST_CASE("without an outlier mse keeps nearly all") {
  const Tensor t = dlc_test::noise({5000}, 9);
  const Reach best = chosen(t, RangeMethod::mse);
  CHECK(best.hi > 0.97);
  CHECK(best.lo < -0.97);
}

TEST_CASE("values that share a range are seen together") {
  const Histogram a = of(dlc_test::floats({2}, {-1, 2})), b = of(dlc_test::floats({2}, {0.5F, 7}));
  const Histogram* both[] = {&a, &b};
  const Reach r = choose_range(both, {.method = RangeMethod::min_max});
  CHECK(r.lo == -1);
  CHECK(r.hi == 7);
}

TEST_CASE("NaN and infinity decide no range") {
  const Reach r = chosen(dlc_test::floats({4}, {1, NAN, INFINITY, -INFINITY}), RangeMethod::mse);
  CHECK(r.lo == 0);
  CHECK(std::abs(r.hi - 1) < 0.01);
}

TEST_CASE("the scale of weights") {
  const std::vector<double> even{-1, -0.5, 0.25, 1.27};
  CHECK(weight_scale(even, RangeMethod::min_max) == Approx(0.01));
  CHECK(weight_scale({}, RangeMethod::mse) == 0);
  std::vector<double> many(2000, 0.0);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 0.01 * std::sin(static_cast<double>(i));
  many.push_back(0.015);
  CHECK(weight_scale(many, RangeMethod::mse) < weight_scale(many, RangeMethod::min_max));
}
