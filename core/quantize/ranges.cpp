#include "core/quantize/ranges.h"

#include <algorithm>
#include <cmath>

namespace dlc::quantization {

namespace {

constexpr size_t kBins = 2048;
constexpr int kTries = 64;           // of each end of a range
constexpr int kWeightTries = 24;     // of the scale of a weight, down to half of what holds all
constexpr double kNarrowest = 0.25;  // of the whole range, that mse tries

double width(const Reach& r) { return r.hi - r.lo; }

// The centre of a bin.
double centre(const Histogram& h, size_t bin) {
  return h.range.lo + (static_cast<double>(bin) + 0.5) * width(h.range) / static_cast<double>(h.bins.size());
}

// The squared error of all elements, if the range is this one: uniform inside, the distance outside.
double error(std::span<const Histogram* const> values, const Reach& r, bool symmetric) {
  const double scale = step_of(r, symmetric).scale;
  double sum = 0;
  for (const Histogram* h : values)
    for (size_t b = 0; b < h->bins.size(); ++b) {
      const double x = centre(*h, b), outside = std::max({r.lo - x, x - r.hi, 0.0});
      sum += h->bins[b] * (outside * outside + scale * scale / 12);
    }
  return sum;
}

// One end after the other comes nearer to 0.
Reach least_error(std::span<const Histogram* const> values, const Reach& whole, bool symmetric) {
  Reach best = whole;
  double least = error(values, whole, symmetric);
  const auto attempt = [&](const Reach& r) {
    const double e = error(values, r, symmetric);
    if (e >= least) return;
    least = e;
    best = r;
  };
  const auto share = [](int i) { return 1 - (1 - kNarrowest) * i / kTries; };
  for (int i = 1; i <= kTries; ++i) attempt({whole.lo * share(i), whole.hi * share(i)});
  const Reach both = best;
  for (int i = 0; i <= kTries; ++i) attempt({whole.lo * share(i), both.hi});
  const Reach low = best;
  for (int i = 0; i <= kTries; ++i) attempt({low.lo, whole.hi * share(i)});
  return best;
}

// Half of the elements that are left out at each end.
Reach percentile(std::span<const Histogram* const> values, const Reach& whole, double percent) {
  double elements = 0;
  std::vector<std::pair<double, double>> at;  // place, how many
  for (const Histogram* h : values) {
    elements += h->elements;
    for (size_t b = 0; b < h->bins.size(); ++b)
      if (h->bins[b] > 0) at.emplace_back(centre(*h, b), h->bins[b]);
  }
  std::ranges::sort(at);
  const double out = elements * (1 - percent / 100) / 2;
  Reach r = whole;
  double left = out;
  for (auto it = at.begin(); it != at.end() && it->first < 0 && (left -= it->second) >= 0; ++it) r.lo = it->first;
  left = out;
  for (auto it = at.rbegin(); it != at.rend() && it->first > 0 && (left -= it->second) >= 0; ++it) r.hi = it->first;
  return r;
}

}  // namespace

void Histogram::widen(const Tensor& t) {
  for (const float x : t.as<float>()) {
    if (!std::isfinite(x)) continue;
    range.lo = std::min(range.lo, static_cast<double>(x));
    range.hi = std::max(range.hi, static_cast<double>(x));
  }
}

void Histogram::count(const Tensor& t) {
  bins.resize(kBins);
  elements += static_cast<double>(t.elements());
  const double per_bin = width(range) / static_cast<double>(kBins);
  if (!(per_bin > 0)) return;
  for (const float x : t.as<float>()) {
    if (x == 0 || !std::isfinite(x)) continue;
    const double bin = (static_cast<double>(x) - range.lo) / per_bin;
    bins[std::min(static_cast<size_t>(std::max(bin, 0.0)), kBins - 1)] += 1;
  }
}

Reach choose_range(std::span<const Histogram* const> values, const QuantizeOptions& options) {
  Reach whole;
  for (const Histogram* h : values) {
    whole.lo = std::min(whole.lo, h->range.lo);
    whole.hi = std::max(whole.hi, h->range.hi);
  }
  switch (options.method) {
    case RangeMethod::percentile:
      return percentile(values, whole, options.percentile);
    case RangeMethod::mse:
      return least_error(values, whole, options.symmetric);
    default:
      return whole;
  }
}

Step step_of(const Reach& range, bool symmetric) {
  const double steps = symmetric ? std::max(-range.lo, range.hi) / 127 : width(range) / 255;
  Step s;
  s.scale = static_cast<double>(static_cast<float>(steps));
  if (!std::isnormal(static_cast<float>(steps))) s.scale = 1;  // all elements are 0, or as good as that
  if (!symmetric) s.zero = std::clamp<int64_t>(std::llround(-128 - range.lo / s.scale), -128, 127);
  return s;
}

double weight_scale(std::span<const double> weights, RangeMethod method) {
  double most = 0;
  for (const double w : weights) most = std::max(most, std::abs(w));
  double best = most / 127, least = INFINITY;
  if (method != RangeMethod::mse) return best;
  for (int i = 0; i < kWeightTries; ++i) {
    const double scale = most / 127 * (1 - 0.5 * i / kWeightTries);
    if (!(scale > 0)) break;
    double sum = 0;
    for (const double w : weights) {
      const double e = std::clamp(std::nearbyint(w / scale), -127.0, 127.0) * scale - w;
      sum += e * e;
    }
    if (sum >= least) continue;
    least = sum;
    best = scale;
  }
  return best;
}

}  // namespace dlc::quantization
