// Resize and its predecessor Upsample.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// What the records take: the result's extents and the factor of each axis.
struct Extents {
  std::vector<Expr> size;
  std::vector<double> scale;
};

Result<std::vector<double>> doubles(const NodeView& n, size_t input, std::string_view what) {
  DLC_TRY(const Tensor t, n.constant(input, what));
  std::vector<double> v;
  for (int64_t i = 0; i < t.elements(); ++i) v.push_back(t.get_double(i));
  return v;
}

// floor(extent * scale). A symbolic extent needs a scale that is a fraction with a small denominator.
Result<Expr> scaled(const NodeView& n, const Expr& extent, double scale) {
  constexpr double kLargest = 1e6;
  if (!(scale > 0 && scale < kLargest)) return n.error(fmt::format("the scale {} is out of range", scale));
  if (const auto c = extent.constant()) {
    const double size = std::floor(static_cast<double>(static_cast<float>(*c) * static_cast<float>(scale)));
    if (size > 1e15) return n.error(fmt::format("the scale {} makes too large a result", scale));
    return Expr(static_cast<int64_t>(size));
  }
  for (int64_t denominator = 1; denominator <= 64; ++denominator) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator == std::floor(numerator)) return floor_div(extent * static_cast<int64_t>(numerator), denominator);
  }
  return n.error(fmt::format("the size of a symbolic dim times {} is not a fraction of it", scale));
}

// size / extent; of symbolic ones only a whole factor is known.
Result<double> ratio(const NodeView& n, const Expr& size, const Expr& extent) {
  const auto s = size.constant();
  const auto e = extent.constant();
  if (s && e && *e > 0) return static_cast<double>(*s) / static_cast<double>(*e);
  for (int64_t factor = 1; factor <= 64; ++factor)
    if (size == extent * factor) return static_cast<double>(factor);
  return n.error(
      fmt::format("the scale from {} to {} must be known when compiling", to_string(extent), to_string(size)),
      "bind the symbolic dims with --dim NAME=VALUE");
}

// Since opset 18 scales and sizes may be of some axes only.
Result<std::vector<int64_t>> resized_axes(const NodeView& n) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n.rank(0); ++i) all.push_back(i);
  DLC_TRY(auto axes, n.attr_ints("axes", all));
  for (auto& a : axes) {
    DLC_TRY(a, checked_axis(n, a, n.rank(0)));
  }
  return axes;
}

Result<Extents> from_scales(const NodeView& n, const std::vector<double>& scales, const std::vector<int64_t>& axes) {
  const auto shape = n.type(0).shape;
  if (scales.size() != axes.size())
    return n.error(fmt::format("{} scales are given for {} axes", scales.size(), axes.size()));
  Extents e{shape, std::vector<double>(shape.size(), 1.0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    e.scale[a] = scales[i];
    DLC_TRY(e.size[a], scaled(n, shape[a], scales[i]));
  }
  return e;
}

Result<Extents> from_sizes(const NodeView& n, const std::vector<int64_t>& axes) {
  const auto shape = n.type(0).shape;
  DLC_TRY(const auto sizes, n.known_ints(3, "sizes"));
  if (sizes.size() != axes.size())
    return n.error(fmt::format("{} sizes are given for {} axes", sizes.size(), axes.size()));
  DLC_TRY(const std::string policy, n.attr_string("keep_aspect_ratio_policy", "stretch"));
  Extents e{shape, std::vector<double>(shape.size(), 1.0)};
  double common = policy == "not_smaller" ? 0 : INFINITY;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    e.size[a] = sizes[i];
    DLC_TRY(e.scale[a], ratio(n, sizes[i], shape[a]));
    common = policy == "not_smaller" ? std::max(common, e.scale[a]) : std::min(common, e.scale[a]);
  }
  if (policy == "stretch") return e;
  if (policy != "not_larger" && policy != "not_smaller")
    return n.error(fmt::format("attribute 'keep_aspect_ratio_policy' is '{}'", policy));
  for (const int64_t axis : axes) {  // one factor for all axes
    const auto a = static_cast<size_t>(axis);
    const auto extent = shape[a].constant();
    if (!extent) return n.error("keeping the aspect ratio needs known dims", "bind them with --dim NAME=VALUE");
    e.scale[a] = common;
    e.size[a] = Expr(std::lround(static_cast<double>(*extent) * common));
  }
  return e;
}

Result<Values> emit(const NodeView& n, ValueId x, const Extents& e, const std::string& mode, Attrs attrs) {
  attrs["size"] = e.size;
  attrs["scale"] = e.scale;
  if (mode == "nearest") return n.emit_all("resize_nearest", {x}, std::move(attrs));
  attrs.erase("rounding");
  if (mode == "linear" || mode == "bilinear") return n.emit_all("resize_linear", {x}, std::move(attrs));
  if (mode != "cubic") return n.error(fmt::format("attribute 'mode' is '{}'", mode));
  DLC_TRY(attrs["a"], n.attr_float("cubic_coeff_a", -0.75));
  return n.emit_all("resize_cubic", {x}, std::move(attrs));
}

// Upsample and Resize of opset 10: element o of the result is element o / scale, rounded down.
Result<Values> upsample(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const std::string mode, n.attr_string("mode", "nearest"));
  std::vector<double> scales;
  if (n.has_attr("scales")) {
    DLC_TRY(scales, n.attr_floats("scales", {}));
  } else {
    DLC_TRY(scales, doubles(n, 1, "scales"));
  }
  DLC_TRY(const auto axes, resized_axes(n));
  DLC_TRY(const Extents e, from_scales(n, scales, axes));
  // The nearest element is the one below; along an axis that shrinks, the one above.
  Extents smaller{n.type(0).shape, std::vector<double>(scales.size(), 1.0)};
  for (size_t i = 0; mode == "nearest" && i < scales.size(); ++i)
    if (scales[i] < 1) {
      smaller.size[i] = e.size[i];
      smaller.scale[i] = e.scale[i];
    }
  const Attrs attrs{{"coordinates", "asymmetric"}, {"rounding", "floor"}};
  if (smaller.size == n.type(0).shape) return emit(n, n.in(0), e, mode, attrs);
  DLC_TRY(const Values y, emit(n, n.in(0), smaller, mode, {{"coordinates", "asymmetric"}, {"rounding", "ceil"}}));
  Extents larger = e;
  for (size_t i = 0; i < scales.size(); ++i)
    if (scales[i] < 1) larger.scale[i] = 1;
  return emit(n, y[0], larger, mode, attrs);
}

// The roi: the starts of all axes, then their ends.
Result<> add_crop(const NodeView& n, const std::vector<int64_t>& axes, Attrs& attrs) {
  DLC_TRY(const auto roi, doubles(n, 1, "roi"));
  if (roi.size() != 2 * axes.size())
    return n.error(fmt::format("roi has {} entries, {} are needed", roi.size(), 2 * axes.size()));
  std::vector<double> lo(static_cast<size_t>(n.rank(0)), 0.0), hi(static_cast<size_t>(n.rank(0)), 1.0);
  for (size_t i = 0; i < axes.size(); ++i) {
    lo[static_cast<size_t>(axes[i])] = roi[i];
    hi[static_cast<size_t>(axes[i])] = roi[i + axes.size()];
  }
  attrs["lo"] = lo;
  attrs["hi"] = hi;
  DLC_TRY(attrs["extrapolation"], n.attr_float("extrapolation_value", 0.0));
  return {};
}

Result<Values> resize(const NodeView& n) {
  if (n.opset() < 11) return upsample(n);
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const std::string mode, n.attr_string("mode", "nearest"));
  DLC_TRY(const std::string coordinates, n.attr_string("coordinate_transformation_mode", "half_pixel"));
  DLC_TRY(const std::string rounding, n.attr_string("nearest_mode", "round_prefer_floor"));
  DLC_TRY(const int64_t exclude, n.attr_int("exclude_outside", 0));
  DLC_TRY(const int64_t antialias, n.attr_int("antialias", 0));
  DLC_TRY(const auto axes, resized_axes(n));
  // An empty tensor of scales stands for an absent one.
  const bool by_scale = n.has(2) && !(n.type(2).shape.size() == 1 && n.type(2).shape[0].is(0));
  if (by_scale == n.has(3)) return n.error("needs either scales or sizes");
  Extents e;
  if (by_scale) {
    DLC_TRY(const auto scales, doubles(n, 2, "scales"));
    DLC_TRY(e, from_scales(n, scales, axes));
  } else {
    DLC_TRY(e, from_sizes(n, axes));
  }
  Attrs attrs{{"coordinates", coordinates}, {"rounding", rounding}};
  if (exclude != 0 && mode == "cubic") attrs["exclude_outside"] = Expr(1);
  if (coordinates == "tf_crop_and_resize") DLC_CHECK(add_crop(n, axes, attrs));
  if (antialias == 0) return emit(n, n.in(0), e, mode, std::move(attrs));
  if (mode != "linear" && mode != "cubic") return n.error(fmt::format("mode '{}' has no antialias", mode));
  std::vector<Expr> reach;  // of a kernel of 1 or 2 elements to either side, stretched where the result is smaller
  for (const double scale : e.scale) {
    const double far = std::ceil((mode == "linear" ? 1 : 2) / std::min(scale, 1.0));
    if (!(far < 1e6)) return n.error(fmt::format("the scale {} is out of range", scale));
    reach.emplace_back(static_cast<int64_t>(far));
  }
  attrs.erase("rounding");
  attrs["size"] = e.size;
  attrs["scale"] = e.scale;
  attrs["reach"] = reach;
  attrs["mode"] = mode;
  if (mode == "cubic") {
    DLC_TRY(attrs["a"], n.attr_float("cubic_coeff_a", -0.75));
  }
  return n.emit_all("resize_smooth", {n.in(0)}, std::move(attrs));
}

constexpr OpEntry kTable[] = {
    {"", "Resize", resize, "tt", "cubic_coeff_a extrapolation_value keep_aspect_ratio_policy", 10},
    {"", "Resize", resize, "tTTT", "cubic_coeff_a extrapolation_value keep_aspect_ratio_policy"},
    {"", "Upsample", upsample, "tT"},
};

}  // namespace

std::span<const OpEntry> resize_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
