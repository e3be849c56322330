// Accuracy of the vector functions against double, over all magnitudes and at the special values.
#include <bit>
#include <limits>

#include "support.h"

using namespace dlc;
using namespace dlc::test;

namespace {

// Units in the last place between a float and the exact value.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : 1e9;
  const float next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
  const double unit = static_cast<double>(next) - static_cast<double>(std::abs(rounded));
  return std::abs(static_cast<double>(got) - exact) / unit;
}

}  // namespace

TEST_CASE("exp, log, tanh and erf are within 2 ulp everywhere", "[.levels]") {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 104729) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  for (int i = 0; i <= 20000; ++i) x.push_back(static_cast<float>(-105 + i * 0.01));
  for (int i = 0; i <= 20000; ++i) x.push_back(static_cast<float>(-5 + i * 0.0005));
  for (int i = 0; i <= 4000; ++i) x.push_back(static_cast<float>(0.5 + i * 0.00025));
  const float infinity = std::numeric_limits<float>::infinity();
  for (float special : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f, 88.7228f, 88.7229f,
                        -87.3365f, -103.9f, -103.98f, 1e-45f})
    x.push_back(special);
  const auto n = std::to_string(x.size());
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"exp", std::exp}, {"log", std::log}, {"tanh", std::tanh}, {"erf", std::erf}};
  for (const auto& [name, exact] : functions) {
    const Kernel k = kernel("kernel @f {\n in X: f32[" + n + "]\n out Y: f32[" + n + "]\nfor i < " + n +
                            ": Y[i] = " + name + "(X[i])\n}\n");
    for (const auto& [target_name, target, opt_level] : levels()) {
      const cpu::Unit unit{&k, {}};
      REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target));
      std::vector<float> y(x.size());
      void* buffers[] = {x.data(), y.data()};
      REQUIRE(code.kernels()[0].entry(buffers, nullptr) == 0);
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double e = ulps(y[i], exact(static_cast<double>(x[i])));
        if (e > worst) worst = e, where = x[i];
      }
      INFO(name << " on " << target_name << ": " << worst << " ulp at " << where);
      CHECK(worst <= 2);
    }
  }
}
