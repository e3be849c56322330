// Resize and its predecessor Upsample.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/axes.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// What the records take: the result's extents and the factor of each axis. A factor of 0 is not known: it is in
// `factors`, or the quotient of the extents.
struct Extents {
  std::vector<Expr> size;
  std::vector<double> scale;
  ValueId factors = kNoValue;
};

Result<std::vector<double>> doubles(const NodeView& n, size_t input, std::string_view what) {
  DLC_TRY(const Tensor t, n.constant(input, what));
  std::vector<double> v;
  for (int64_t i = 0; i < t.elements(); ++i) v.push_back(t.get_double(i));
  return v;
}

// floor(extent * scale). Of a symbolic extent only a fraction with a small denominator is known; nullopt otherwise.
Result<std::optional<Expr>> scaled(const NodeView& n, const Expr& extent, double scale) {
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
  return std::nullopt;
}

// size / extent; of symbolic ones only a whole factor is known, otherwise 0.
double ratio(const Expr& size, const Expr& extent) {
  const auto s = size.constant();
  const auto e = extent.constant();
  if (s && e && *e > 0) return static_cast<double>(*s) / static_cast<double>(*e);
  for (int64_t factor = 1; factor <= 64; ++factor)
    if (size == extent * factor) return static_cast<double>(factor);
  return 0;
}

// Since opset 18 scales and sizes may be of some axes only.
Result<std::vector<int64_t>> resized_axes(const NodeView& n) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n.rank(0); ++i) all.push_back(i);
  DLC_TRY(auto axes, n.attr_ints("axes", all));
  return checked_axes(n, std::move(axes), n.rank(0));
}

// Factors that only a run knows, of some axes: the sizes are computed and bound.
Result<Extents> from_run_time_scales(const NodeView& n, ValueId scales, const std::vector<int64_t>& axes) {
  const auto shape = n.type(0).shape;
  DLC_TRY(ValueId factors, n.emit("cast", {scales}, {{"to", kF32}}));
  if (axes.size() != shape.size()) {  // 1 for the others
    DLC_TRY(const ValueId one, n.scalar(kF32, 1));
    DLC_TRY(const ValueId ones, n.emit("expand", {one}, {{"shape", std::vector<Expr>{n.rank(0)}}}));
    DLC_TRY(Tensor at, Tensor::make(kS64, {static_cast<int64_t>(axes.size())}));
    for (size_t i = 0; i < axes.size(); ++i) at.set_int(static_cast<int64_t>(i), axes[i]);
    DLC_TRY(factors, n.emit("scatter_elements", {ones, n.add_constant(std::move(at)), factors}));
  }
  DLC_TRY(ValueId sizes, shape_of(n, n.in(0)));
  DLC_TRY(sizes, n.emit("cast", {sizes}, {{"to", kF32}}));
  DLC_TRY(sizes, n.emit("mul", {sizes, factors}));
  DLC_TRY(sizes, n.emit("floor", {sizes}));
  DLC_TRY(sizes, n.emit("cast", {sizes}, {{"to", kS64}}));
  DLC_TRY(const auto size, n.bounds_of(sizes, "scales", {0, NodeView::kAnyBound.hi}));
  Extents e{shape, std::vector<double>(shape.size(), 1.0), factors};
  for (const int64_t axis : axes) {
    e.size[static_cast<size_t>(axis)] = size[static_cast<size_t>(axis)];
    e.scale[static_cast<size_t>(axis)] = 0;
  }
  return e;
}

Result<Extents> from_scales(const NodeView& n, const std::vector<double>& scales, const std::vector<int64_t>& axes) {
  const auto shape = n.type(0).shape;
  if (scales.size() != axes.size())
    return n.error(fmt::format("{} scales are given for {} axes", scales.size(), axes.size()));
  Extents e{shape, std::vector<double>(shape.size(), 1.0)};
  std::vector<size_t> open;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    e.scale[a] = scales[i];
    DLC_TRY(const auto size, scaled(n, shape[a], scales[i]));
    if (!size) open.push_back(a);
    e.size[a] = size.value_or(0);
  }
  if (open.empty()) return e;
  DLC_TRY(Tensor t, Tensor::make(kF32, {static_cast<int64_t>(scales.size())}));
  for (size_t i = 0; i < scales.size(); ++i) t.set_double(static_cast<int64_t>(i), scales[i]);
  DLC_TRY(const Extents run, from_run_time_scales(n, n.add_constant(std::move(t)), axes));
  for (const size_t a : open) e.size[a] = run.size[a];  // the factors are known, these sizes are not
  return e;
}

Result<Extents> from_sizes(const NodeView& n, const std::vector<int64_t>& axes) {
  const auto shape = n.type(0).shape;
  DLC_TRY(const auto sizes, n.sizes(3, "sizes"));
  if (sizes.size() != axes.size())
    return n.error(fmt::format("{} sizes are given for {} axes", sizes.size(), axes.size()));
  DLC_TRY(const std::string policy, n.attr_string("keep_aspect_ratio_policy", "stretch"));
  Extents e{shape, std::vector<double>(shape.size(), 1.0)};
  double common = policy == "not_smaller" ? 0 : INFINITY;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    e.size[a] = sizes[i];
    e.scale[a] = ratio(sizes[i], shape[a]);
    common = policy == "not_smaller" ? std::max(common, e.scale[a]) : std::min(common, e.scale[a]);
  }
  if (policy == "stretch") return e;
  if (policy != "not_larger" && policy != "not_smaller")
    return n.error(fmt::format("attribute 'keep_aspect_ratio_policy' is '{}'", policy));
  for (const int64_t axis : axes) {  // one factor for all axes
    const auto a = static_cast<size_t>(axis);
    const auto extent = shape[a].constant();
    if (!extent || e.scale[a] == 0)
      return n.error("keeping the aspect ratio needs known dims", "bind them with --dim NAME=VALUE");
    e.scale[a] = common;
    e.size[a] = Expr(std::lround(static_cast<double>(*extent) * common));
  }
  return e;
}

// Scales at an input, which need not be known.
Result<Extents> from_input(const NodeView& n, size_t input, const std::vector<int64_t>& axes) {
  const TensorType type = n.type(input);
  if (const auto known = doubles(n, input, "scales")) return from_scales(n, *known, axes);
  if (type.shape.size() != 1 || type.shape[0] != Expr(static_cast<int64_t>(axes.size())))
    return n.error(fmt::format("the scales are {} for {} axes", to_string(type), axes.size()));
  return from_run_time_scales(n, n.in(input), axes);
}

Result<Values> emit(const NodeView& n, ValueId x, const Extents& e, const std::string& mode, Attrs attrs) {
  attrs["size"] = e.size;
  attrs["scale"] = e.scale;
  if (mode == "nearest") return n.emit_all("resize_nearest", {x, e.factors}, std::move(attrs));
  attrs.erase("rounding");
  if (mode == "linear" || mode == "bilinear") return n.emit_all("resize_linear", {x, e.factors}, std::move(attrs));
  if (mode != "cubic") return n.error(fmt::format("attribute 'mode' is '{}'", mode));
  DLC_TRY(attrs["a"], n.attr_float("cubic_coeff_a", -0.75));
  return n.emit_all("resize_cubic", {x, e.factors}, std::move(attrs));
}

// Upsample and Resize of opset 10: element o of the result is element o / scale, rounded down.
Result<Values> upsample(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const std::string mode, n.attr_string("mode", "nearest"));
  DLC_TRY(const auto axes, resized_axes(n));
  Extents e;
  if (n.has_attr("scales")) {
    DLC_TRY(const auto given, n.attr_floats("scales", {}));
    DLC_TRY(e, from_scales(n, given, axes));
  } else {
    DLC_TRY(e, from_input(n, 1, axes));
  }
  const std::vector<double> scales = e.scale;
  if (e.factors != kNoValue && mode == "nearest" && n.op() == "Resize")
    return n.error("before opset 11 the scales must be known when compiling", "export the model for opset 11 or later");
  // The nearest element is the one below; along an axis that shrinks, the one above.
  Extents smaller{n.type(0).shape, std::vector<double>(scales.size(), 1.0)};
  for (size_t i = 0; mode == "nearest" && i < scales.size(); ++i)
    if (scales[i] < 1 && scales[i] != 0) {
      smaller.size[i] = e.size[i];
      smaller.scale[i] = e.scale[i];
    }
  const Attrs attrs{{"coordinates", "asymmetric"}, {"rounding", "floor"}};
  if (smaller.size == n.type(0).shape) return emit(n, n.in(0), e, mode, attrs);
  DLC_TRY(const Values y, emit(n, n.in(0), smaller, mode, {{"coordinates", "asymmetric"}, {"rounding", "ceil"}}));
  Extents larger = e;
  for (size_t i = 0; i < scales.size(); ++i)
    if (scales[i] < 1 && scales[i] != 0) larger.scale[i] = 1;
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
    DLC_TRY(e, from_input(n, 2, axes));
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
    if (scale == 0) return n.error("antialias needs scales that are known when compiling");
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
