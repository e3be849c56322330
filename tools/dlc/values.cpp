#include "tools/dlc/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace dlc::cli {

namespace {

std::string element(const Tensor& t, int64_t i) {
  return t.dtype().is_float() ? fmt::format("{:.9g}", t.get_double(i)) : fmt::format("{}", t.get_int(i));
}

std::string place(const Tensor& t, int64_t i) {
  std::vector<int64_t> at(t.shape().size());
  for (size_t d = at.size(); d-- > 0; i /= t.shape()[d]) at[d] = i % t.shape()[d];
  return fmt::format("[{}]", fmt::join(at, ","));
}

// The size against which an error of a float counts: its tensor's root mean square.
double scale_of(const Tensor& t) {
  double squares = 0;
  for (int64_t i = 0; i < t.elements(); ++i)
    if (const double x = t.get_double(i); std::isfinite(x)) squares += x * x;
  return std::sqrt(squares / static_cast<double>(std::max<int64_t>(t.elements(), 1)));
}

}  // namespace

Difference difference(const Tensor& want, const Tensor& got, double tolerance) {
  Difference d;
  if (want.dtype() != got.dtype() || want.shape() != got.shape()) {
    d = {INFINITY, std::max<int64_t>(want.elements(), 1), 0, {}};
    d.text = fmt::format("{} for {}", to_string(got.dtype(), got.shape()), to_string(want.dtype(), want.shape()));
    return d;
  }
  const bool is_float = want.dtype().is_float();
  const double scale = is_float ? scale_of(want) : 1;
  for (int64_t i = 0; i < want.elements(); ++i) {
    double e = 0;
    if (is_float) {
      const double a = want.get_double(i), b = got.get_double(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      e = std::abs(a - b) / std::max({std::abs(a), scale, 1e-30});
      if (std::isnan(e)) e = INFINITY;
    } else if (const int64_t a = want.get_int(i), b = got.get_int(i); a != b) {
      e = std::abs(static_cast<double>(a) - static_cast<double>(b));
    }
    d.largest = std::max(d.largest, e);
    const bool is_wrong = is_float ? e > tolerance : e != 0;
    if (is_wrong && d.wrong++ == 0) {
      d.first = i;
      d.text = fmt::format("{}: {} for {}", place(want, i), element(got, i), element(want, i));
    }
  }
  return d;
}

void add_tolerance(CLI::App& sub, double& tolerance) {
  sub.add_option("--tolerance", tolerance, "Of floats, relative; integers must be equal")
      ->check(positive_number())
      ->capture_default_str();
}

}  // namespace dlc::cli
