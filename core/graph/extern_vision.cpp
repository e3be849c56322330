// The pooling of regions whose number of samples depends on their size.
#include <algorithm>
#include <cmath>

#include "core/graph/extern_ops.h"

namespace dlc {

namespace {

// A sample between two elements of a line of `count`: both, and the weight of the second.
struct Between {
  int64_t low = 0, high = 0;
  float part = 0;
  bool inside = false;
};

Between between(float at, int64_t count) {
  Between b;
  b.inside = at >= -1 && at <= static_cast<float>(count);
  if (!b.inside) return b;
  at = std::max(at, 0.0F);
  b.low = std::min(static_cast<int64_t>(at), count - 1);
  b.high = std::min(b.low + 1, count - 1);
  b.part = b.low == count - 1 ? 0 : at - static_cast<float>(b.low);
  return b;
}

// The samples of every bin along one dim: `per` of them in each of `bins`.
struct Samples {
  int64_t per = 0;
  std::vector<Between> at;
};

constexpr int64_t kMostSamples = int64_t{1} << 24;

Result<Samples> samples(float start, float size, int64_t bins, int64_t count) {
  const float step = size / static_cast<float>(bins);
  const float per = std::ceil(step);
  if (!(per <= static_cast<float>(kMostSamples / bins)))
    return fail({}, "roi_align: a region of " + std::to_string(size) + " elements is too large");
  Samples s;
  s.per = std::max<int64_t>(static_cast<int64_t>(per), 0);
  for (int64_t b = 0; b < bins; ++b)
    for (int64_t i = 0; i < s.per; ++i) {
      const float within = (static_cast<float>(i) + 0.5F) * step / static_cast<float>(s.per);
      s.at.push_back(between(start + static_cast<float>(b) * step + within, count));
    }
  return s;
}

}  // namespace

Result<std::vector<Tensor>> roi_align_adaptive(std::span<const Tensor> inputs, const Attributes& attrs) {
  const Tensor &x = inputs[0], &regions = inputs[1], &batches = inputs[2];
  const int64_t height = attrs.integer("height").value_or(1), width = attrs.integer("width").value_or(1);
  const auto scale = static_cast<float>(attrs.real("scale").value_or(1));
  const bool half_pixel = attrs.integer("half_pixel").value_or(1) != 0, mean = attrs.text("mode") != "max";
  const int64_t channels = x.shape()[1], h = x.shape()[2], w = x.shape()[3], count = regions.shape()[0];
  DLC_TRY(Tensor y, Tensor::make(x.dtype(), {count, channels, height, width}));
  const float offset = half_pixel ? 0.5F : 0.0F;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t image = batches.get_int(r);
    if (image < 0 || image >= x.shape()[0])
      return fail({}, "roi_align: region " + std::to_string(r) + " is of image " + std::to_string(image));
    const auto corner = [&](int64_t i) { return static_cast<float>(regions.get_double(r * 4 + i)) * scale - offset; };
    const auto extent = [&](int64_t i) {
      const float size = corner(i + 2) - corner(i);
      return half_pixel ? size : std::max(size, 1.0F);
    };
    DLC_TRY(const Samples rows, samples(corner(1), extent(1), height, h));
    DLC_TRY(const Samples columns, samples(corner(0), extent(0), width, w));
    for (int64_t c = 0; c < channels; ++c) {
      const auto element = [&](int64_t row, int64_t column) {
        return static_cast<float>(x.get_double(((image * channels + c) * h + row) * w + column));
      };
      for (int64_t p = 0; p < height; ++p)
        for (int64_t q = 0; q < width; ++q) {
          float sum = 0, most = 0;
          for (int64_t i = 0; i < rows.per; ++i)
            for (int64_t j = 0; j < columns.per; ++j) {
              const Between a = rows.at[static_cast<size_t>(p * rows.per + i)];
              const Between b = columns.at[static_cast<size_t>(q * columns.per + j)];
              float v[4] = {};  // as in the record, the largest is one of the weighted neighbours
              if (a.inside && b.inside) {
                v[0] = element(a.low, b.low) * ((1 - a.part) * (1 - b.part));
                v[1] = element(a.low, b.high) * ((1 - a.part) * b.part);
                v[2] = element(a.high, b.low) * (a.part * (1 - b.part));
                v[3] = element(a.high, b.high) * (a.part * b.part);
              }
              sum += v[0] + v[1] + v[2] + v[3];
              const float best = *std::max_element(v, v + 4);
              most = i + j == 0 ? best : std::max(most, best);
            }
          const auto samples_of_bin = static_cast<float>(std::max<int64_t>(rows.per * columns.per, 1));
          y.set_double(((r * channels + c) * height + p) * width + q, mean ? sum / samples_of_bin : most);
        }
    }
  }
  return std::vector{std::move(y)};
}

}  // namespace dlc
