#include "core/graph/extern_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

namespace dlc {

namespace {

// One that is given or has a default.
int64_t integer(const Attributes& attrs, std::string_view name) { return attrs.integer(name).value_or(0); }

// Whether element a of t is less than element b; NaN is more than any number.
bool less(const Tensor& t, int64_t a, int64_t b) {
  if (t.dtype().is_float()) {
    const double x = t.get_double(a), y = t.get_double(b);
    return std::isnan(y) ? !std::isnan(x) : x < y;
  }
  if (t.dtype() == kU64) return static_cast<uint64_t>(t.get_int(a)) < static_cast<uint64_t>(t.get_int(b));
  return t.get_int(a) < t.get_int(b);
}

// The k largest (or smallest) elements along an axis and where they were; of equal ones the first comes first.
Result<std::vector<Tensor>> top_k(std::span<const Tensor> inputs, const Attributes& attrs) {
  const Tensor& x = inputs[0];
  const int64_t k = integer(attrs, "k");
  int64_t axis = integer(attrs, "axis");
  if (axis < 0) axis += x.rank();
  const bool largest = integer(attrs, "largest") != 0;
  std::vector<int64_t> shape = x.shape();
  const int64_t extent = shape[static_cast<size_t>(axis)];
  if (k > extent) return fail({}, "top_k of " + std::to_string(k) + " among " + std::to_string(extent) + " elements");
  shape[static_cast<size_t>(axis)] = k;
  DLC_TRY(Tensor values, Tensor::make(x.dtype(), shape));
  DLC_TRY(Tensor indices, Tensor::make(kS64, shape));
  int64_t inner = 1;
  for (auto d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const auto size = static_cast<size_t>(x.dtype().bytes());
  std::byte* out = values.mutable_bytes();
  std::vector<int64_t> order(static_cast<size_t>(extent));
  const int64_t outer = extent * inner == 0 ? 0 : x.elements() / (extent * inner);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t j) { return (o * extent + j) * inner + i; };
      std::iota(order.begin(), order.end(), int64_t{0});
      std::ranges::stable_sort(
          order, [&](int64_t a, int64_t b) { return largest ? less(x, at(b), at(a)) : less(x, at(a), at(b)); });
      for (int64_t j = 0; j < k; ++j) {
        const int64_t to = (o * k + j) * inner + i, from = order[static_cast<size_t>(j)];
        std::memcpy(out + static_cast<size_t>(to) * size, x.bytes() + static_cast<size_t>(at(from)) * size, size);
        indices.set_int(to, from);
      }
    }
  return std::vector{std::move(values), std::move(indices)};
}

// The indices of the elements that are not zero, one column each, in row-major order.
Result<std::vector<Tensor>> non_zero(std::span<const Tensor> inputs, const Attributes&) {
  const Tensor& x = inputs[0];
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.elements(); ++i)
    if (x.dtype().is_float() ? x.get_double(i) != 0 : x.get_int(i) != 0) found.push_back(i);
  const auto count = static_cast<int64_t>(found.size());
  DLC_TRY(Tensor y, Tensor::make(kS64, {x.rank(), count}));
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = found[static_cast<size_t>(n)];
    for (int64_t d = x.rank() - 1; d >= 0; --d) {
      const int64_t extent = x.shape()[static_cast<size_t>(d)];
      y.set_int(d * count + n, rest % extent);
      rest /= extent;
    }
  }
  return std::vector{std::move(y)};
}

// A tensor as slices along one axis: element (outer, index, inner).
struct Slices {
  const Tensor& t;
  int64_t outer = 1, count = 0, inner = 1;
  size_t axis = 0;

  Slices(const Tensor& tensor, int64_t at) : t(tensor), axis(static_cast<size_t>(at < 0 ? at + tensor.rank() : at)) {
    count = t.shape()[axis];
    for (size_t d = 0; d < t.shape().size(); ++d)
      if (d != axis) (d < axis ? outer : inner) *= t.shape()[d];
  }
  int64_t element(int64_t o, int64_t index, int64_t i) const { return (o * count + index) * inner + i; }

  // -1, 0 or 1: slice a against slice b, element by element.
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        if (less(t, element(o, a, i), element(o, b, i))) return -1;
        if (less(t, element(o, b, i), element(o, a, i))) return 1;
      }
    return 0;
  }

  // The slices named, in this order.
  Result<Tensor> take(const std::vector<int64_t>& which) const {
    std::vector<int64_t> shape = t.shape();
    shape[axis] = static_cast<int64_t>(which.size());
    DLC_TRY(Tensor y, Tensor::make(t.dtype(), shape));
    const auto size = static_cast<size_t>(t.dtype().bytes() * inner);
    std::byte* to = y.mutable_bytes();
    for (int64_t o = 0; o < outer; ++o)
      for (const int64_t index : which) {
        if (size > 0) std::memcpy(to, t.bytes() + element(o, index, 0) * t.dtype().bytes(), size);
        to += size;
      }
    return y;
  }
};

Result<std::vector<Tensor>> compress(std::span<const Tensor> inputs, const Attributes& attrs) {
  const Slices x(inputs[0], integer(attrs, "axis"));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < std::min(x.count, inputs[1].elements()); ++i)
    if (inputs[1].get_int(i) != 0) kept.push_back(i);
  DLC_TRY(Tensor y, x.take(kept));
  return std::vector{std::move(y)};
}

Result<std::vector<Tensor>> bit_cast(std::span<const Tensor> inputs, const Attributes& attrs) {
  const auto given = attrs.find("to");
  const auto* to = given ? std::get_if<DType>(&*given) : nullptr;
  DLC_TRY(Tensor y, Tensor::make(to ? *to : inputs[0].dtype(), inputs[0].shape()));
  if (y.elements() > 0) std::memcpy(y.mutable_bytes(), inputs[0].bytes(), inputs[0].byte_size());
  return std::vector{std::move(y)};
}

// What the values are above 0, then what they are below.
Result<std::vector<Tensor>> bind_values(std::span<const Tensor> inputs, const Attributes&) {
  constexpr int64_t kMost = int64_t{1} << 40;  // larger ones mean "to the end"
  std::vector<int64_t> shape{0};
  for (const int sign : {1, -1})
    for (int64_t i = 0; i < inputs[0].elements(); ++i)
      shape.push_back(std::clamp<int64_t>(sign * std::clamp(inputs[0].get_int(i), -kMost, kMost), 0, kMost));
  DLC_TRY(Tensor y, Tensor::make(kU8, std::move(shape)));
  return std::vector{std::move(y)};
}

Result<Tensor> integers(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(kS64, {static_cast<int64_t>(values.size())}, values);
}

Result<std::vector<Tensor>> unique(std::span<const Tensor> inputs, const Attributes& attrs) {
  const Slices x(inputs[0], integer(attrs, "axis"));
  std::vector<int64_t> order(static_cast<size_t>(x.count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return x.compare(a, b) < 0; });
  std::vector<std::vector<int64_t>> groups;  // equal slices, the first one first
  for (const int64_t i : order) {
    if (groups.empty() || x.compare(groups.back()[0], i) != 0) groups.emplace_back();
    groups.back().push_back(i);
  }
  if (integer(attrs, "sorted") == 0) std::ranges::sort(groups, {}, [](const auto& g) { return g[0]; });
  std::vector<int64_t> first, which(order.size()), counts;
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g][0]);
    counts.push_back(static_cast<int64_t>(groups[g].size()));
    for (const int64_t i : groups[g]) which[static_cast<size_t>(i)] = static_cast<int64_t>(g);
  }
  DLC_TRY(Tensor y, x.take(first));
  DLC_TRY(Tensor f, integers(first));
  DLC_TRY(Tensor w, integers(which));
  DLC_TRY(Tensor c, integers(counts));
  return std::vector{std::move(y), std::move(f), std::move(w), std::move(c)};
}

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

Box box(const Tensor& boxes, int64_t at, bool center) {
  const double a = boxes.get_double(at), b = boxes.get_double(at + 1);
  const double c = boxes.get_double(at + 2), d = boxes.get_double(at + 3);
  if (center) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};          // x, y, width, height
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};  // any two opposite corners
}

double intersection_over_union(const Box& a, const Box& b) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

// Of overlapping boxes the one with the best score stays: rows of (batch, class, box).
Result<std::vector<Tensor>> non_max_suppression(std::span<const Tensor> inputs, const Attributes& attrs) {
  const Tensor &boxes = inputs[0], &scores = inputs[1];
  const auto scalar = [&](size_t i, double otherwise) {
    return i < inputs.size() && inputs[i].is_valid() && inputs[i].elements() > 0 ? inputs[i].get_double(0) : otherwise;
  };
  const double most = scalar(2, 0), overlap = scalar(3, 0);
  const double least_score = scalar(4, -std::numeric_limits<double>::infinity());
  const bool center = integer(attrs, "center_point_box") != 0;
  const int64_t batches = scores.shape()[0], classes = scores.shape()[1], count = scores.shape()[2];
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t c = 0; c < classes; ++c) {
      const auto score = [&](int64_t i) { return scores.get_double((b * classes + c) * count + i); };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i)
        if (score(i) > least_score) order.push_back(i);
      std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return score(i) > score(j); });
      std::vector<Box> kept;
      for (int64_t i : order) {
        if (static_cast<double>(kept.size()) >= most) break;
        const Box candidate = box(boxes, (b * count + i) * 4, center);
        const auto overlaps = [&](const Box& k) { return intersection_over_union(k, candidate) > overlap; };
        if (std::ranges::any_of(kept, overlaps)) continue;
        kept.push_back(candidate);
        rows.push_back({b, c, i});
      }
    }
  DLC_TRY(Tensor y, Tensor::make(kS64, {static_cast<int64_t>(rows.size()), 3}));
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < 3; ++i) y.set_int(static_cast<int64_t>(3 * r + i), rows[r][i]);
  return std::vector{std::move(y)};
}

Result<std::vector<Tensor>> assumed(std::span<const Tensor> inputs, const Attributes& attrs) {
  const bool holds = integer(attrs, "holds") != 0;
  if ((inputs[1].get_int(0) != 0) == holds) return std::vector{inputs[0]};
  return fail(
      {}, fmt::format("the model was compiled for inputs that make this condition {}, these make it {}", holds, !holds),
      "the branches give tensors of different rank, so that only one can be compiled: make the condition known when "
      "compiling, a constant or sizes bound with --dim");
}

struct Entry {
  std::string_view name;
  ExternOp op;
};
constexpr Entry kTable[] = {
    {"assumed", assumed},
    {"bind_values", bind_values},
    {"bit_cast", bit_cast},
    {"compress", compress},
    {"non_max_suppression", non_max_suppression},
    {"non_zero", non_zero},
    {"top_k", top_k},
    {"unique", unique},
};

}  // namespace

ExternOp find_extern_op(std::string_view name) {
  for (const Entry& e : kTable)
    if (e.name == name) return e.op;
  return nullptr;
}

}  // namespace dlc
