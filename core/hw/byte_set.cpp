#include <algorithm>

#include "dlc/hw/footprint.h"

namespace dlc {

void normalise(ByteSet& set) {
  std::sort(set.begin(), set.end(), [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  size_t n = 0;
  for (const ByteRange& r : set) {
    if (n > 0 && r.begin <= set[n - 1].end)
      set[n - 1].end = std::max(set[n - 1].end, r.end);
    else
      set[n++] = r;
  }
  set.resize(n);
}

std::optional<ByteRange> first_overlap(const ByteSet& a, const ByteSet& b) {
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const ByteRange r{std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end)};
    if (r.begin < r.end) return r;
    if (a[i].end < b[k].end)
      ++i;
    else
      ++k;
  }
  return std::nullopt;
}

ByteSet strided_set(int64_t base, std::vector<StridedDim> dims, int64_t width, bool* exact, size_t limit) {
  for (StridedDim& d : dims) {
    if (d.count <= 0) return {};
    if (d.stride < 0) {
      base += d.stride * (d.count - 1);
      d.stride = -d.stride;
    }
  }
  std::erase_if(dims, [](const StridedDim& d) { return d.count == 1 || d.stride == 0; });
  std::sort(dims.begin(), dims.end(), [](const StridedDim& a, const StridedDim& b) { return a.stride < b.stride; });
  // A dim whose steps leave no gap widens the block; one whose stride is a multiple of the last kept dim's, within its
  // reach, lengthens that.
  std::vector<StridedDim> kept;
  for (const StridedDim& d : dims) {
    StridedDim* last = kept.empty() ? nullptr : &kept.back();
    if (!last && d.stride <= width)
      width += d.stride * (d.count - 1);
    else if (last && d.stride % last->stride == 0 && d.stride / last->stride <= last->count)
      last->count += d.stride / last->stride * (d.count - 1);
    else
      kept.push_back(d);
  }
  size_t pieces = 1;
  int64_t reach = width;
  for (const StridedDim& d : kept) {
    reach += d.stride * (d.count - 1);
    pieces =
        pieces > limit || d.count > static_cast<int64_t>(limit) ? limit + 1 : pieces * static_cast<size_t>(d.count);
  }
  if (pieces > limit) {
    *exact = false;
    return {{base, base + reach}};
  }
  ByteSet out;
  out.reserve(pieces);
  std::vector<int64_t> at(kept.size(), 0);
  while (true) {
    out.push_back({base, base + width});
    size_t d = 0;
    for (; d < kept.size(); ++d) {
      base += kept[d].stride;
      if (++at[d] < kept[d].count) break;
      base -= kept[d].stride * kept[d].count;
      at[d] = 0;
    }
    if (d == kept.size()) break;
  }
  normalise(out);
  return out;
}

}  // namespace dlc
