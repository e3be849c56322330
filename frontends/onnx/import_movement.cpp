// Ops that move, select and reshape elements.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/axes.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<Values> reshape_to(const NodeView& n, std::vector<Expr> shape) {
  return n.emit_all("reshape", {n.in(0)}, {{"shape", std::move(shape)}});
}

Expr product(std::span<const Expr> dims) {
  Expr p(1);
  for (const Expr& d : dims) p = p * d;
  return p;
}

// What a 0 and a -1 stand for, where only the run knows whether there is one.
std::vector<Expr> resolved(std::vector<Expr> shape, std::span<const Expr> in, bool keep_zero) {
  Expr rest(1);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!keep_zero && i < in.size() && !shape[i].constant())
      shape[i] = select_nonneg(shape[i] - 1, shape[i], select_nonneg(shape[i], in[i], shape[i]));
    rest = rest * select_nonneg(shape[i], shape[i], 1);
  }
  const Expr open = floor_div(product(in), rest);
  for (Expr& s : shape) s = select_nonneg(s, s, open);
  return shape;
}

Result<Values> reshape(const NodeView& n) {
  DLC_TRY(auto shape, n.bounds(1, "shape", {-1, NodeView::kAnyBound.hi}));
  DLC_TRY(const int64_t allow_zero, n.attr_int("allowzero", 0));
  const auto in = n.type(0).shape;
  std::optional<size_t> open;
  Expr rest(1);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is(-1)) {
      if (open) return n.error("the shape has more than one -1");
      open = i;
      continue;
    }
    if (shape[i].is(0) && allow_zero == 0) {
      if (i >= in.size()) return n.error(fmt::format("shape entry {} is 0, but the input has rank {}", i, in.size()));
      shape[i] = in[i];
    }
    rest = rest * shape[i];
  }
  if (!n.is_known(1)) return reshape_to(n, resolved(std::move(shape), in, allow_zero != 0));
  if (open) {
    if (rest.is(0)) return n.error("the shape has a -1 beside a 0");
    shape[*open] = floor_div(product(in), rest);
  }
  return reshape_to(n, std::move(shape));
}

Result<Values> flatten(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const int64_t attr, n.attr_int("axis", 1));
  const int64_t rank = n.rank(0);
  if (attr < -rank || attr > rank) return n.error(fmt::format("axis {} is out of range for rank {}", attr, rank));
  const auto axis = static_cast<size_t>(attr < 0 ? attr + rank : attr);
  const auto shape = n.type(0).shape;
  const std::span<const Expr> dims(shape);
  return reshape_to(n, {product(dims.subspan(0, axis)), product(dims.subspan(axis))});
}

// axes: an attribute before opset 13, an input from then on. Checked against `rank`; those that are known are sorted
// and without duplicates.
Result<std::vector<Expr>> axes_of(const NodeView& n, int64_t rank) {
  std::vector<Expr> given;
  if (n.has(1)) {
    DLC_TRY(given, axes_input(n, 1, rank));
  } else {
    DLC_TRY(const auto list, n.attr_ints("axes", std::vector<int64_t>{}));
    for (const int64_t a : list) {
      DLC_TRY(const int64_t axis, checked_axis(n, a, rank));
      given.emplace_back(axis);
    }
  }
  auto axes = constants(given);
  if (!axes) return given;
  std::ranges::sort(*axes);
  if (std::ranges::adjacent_find(*axes) != axes->end()) return n.error("an axis is given twice");
  return to_exprs(*axes);
}

Result<Values> squeeze(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(auto axes, axes_of(n, n.rank(0)));
  if (axes.empty() && !n.has(1) && !n.has_attr("axes"))
    for (size_t i = 0; i < n.type(0).shape.size(); ++i)
      if (n.type(0).shape[i].is(1)) axes.emplace_back(static_cast<int64_t>(i));
  if (!constants(axes)) {
    DLC_TRY(auto shape, shape_without(n, 1));
    return reshape_to(n, std::move(shape));
  }
  return n.emit_all("squeeze", {n.in(0)}, {{"axes", axes}});
}

Result<Values> unsqueeze(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  int64_t count = 0;
  if (n.has(1)) {
    if (n.rank(1) > 1) return n.error("the axes must be a list");
    if (n.rank(1) == 1 && !n.type(1).shape[0].constant()) DLC_CHECK(n.known_ints(1, "axes"));
    count = n.rank(1) == 0 ? 1 : n.type(1).shape[0].constant().value_or(0);
  } else {
    DLC_TRY(const auto list, n.attr_ints("axes", {}));
    count = static_cast<int64_t>(list.size());
  }
  DLC_TRY(const auto axes, axes_of(n, n.rank(0) + count));
  if (!constants(axes)) {
    DLC_TRY(auto shape, shape_with(n, 1));
    return reshape_to(n, std::move(shape));
  }
  return n.emit_all("unsqueeze", {n.in(0)}, {{"axes", axes}});
}

Result<Values> transpose(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  std::vector<int64_t> reversed;
  for (int64_t i = n.rank(0); i-- > 0;) reversed.push_back(i);
  DLC_TRY(const auto perm, n.attr_ints("perm", reversed));
  return n.emit_all("transpose", {n.in(0)}, {{"perm", to_exprs(perm)}});
}

Result<Values> concat(const NodeView& n) {
  DLC_TRY(const int64_t attr, n.attr_int("axis", {}));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const ValueId y, concatenated(n, n.inputs(), axis));
  return Values{y};
}

// Slices of one or all axes; the record wants every axis.
Result<ValueId> slice_axes(const NodeView& n, ValueId x, const std::vector<int64_t>& axes,
                           const std::vector<Expr>& starts, const std::vector<Expr>& stops,
                           const std::vector<Expr>& steps) {
  const auto shape = n.graph().value(x).type.shape;
  std::vector<Expr> start(shape.size(), Expr(0));
  std::vector<Expr> stop = shape;
  std::vector<Expr> step(shape.size(), Expr(1));
  // INT64_MAX and INT64_MIN mean "to the end"; kept small enough for exact arithmetic.
  const auto kept_small = [](const Expr& e) {
    const auto c = e.constant();
    return c ? Expr(std::clamp(*c, NodeView::kAnyBound.lo, NodeView::kAnyBound.hi)) : e;
  };
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    start[a] = kept_small(starts[i]);
    stop[a] = kept_small(stops[i]);
    step[a] = steps[i];
  }
  return n.emit("slice", {x}, {{"start", start}, {"stop", stop}, {"step", step}});
}

// Axes, starts and ends at inputs 3, 1 and 2, steps perhaps at 4.
Result<Values> slice_at_run_time(const NodeView& n) {
  const int64_t rank = n.rank(0);
  if (!n.has(1) || !n.has(2)) return n.error("starts or ends are missing");
  DLC_TRY(const ValueId zeros, filled(n, rank, 0));
  DLC_TRY(const ValueId ones, filled(n, rank, 1));
  DLC_TRY(const ValueId shape, shape_of(n, n.in(0)));
  DLC_TRY(auto start, at_axes(n, 3, n.in(1), zeros, "starts"));
  DLC_TRY(auto stop, at_axes(n, 3, n.in(2), shape, "ends"));
  std::vector<Expr> step(static_cast<size_t>(rank), Expr(1));
  if (n.has(4)) {
    DLC_TRY(step, at_axes(n, 3, n.in(4), ones, "steps"));
  }
  return n.emit_all("slice", {n.in(0)}, {{"start", start}, {"stop", stop}, {"step", step}});
}

Result<Values> slice(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  std::vector<Expr> starts;
  std::vector<Expr> stops;
  std::vector<Expr> steps;
  std::vector<int64_t> axes;
  if (n.opset() < 10) {
    DLC_TRY(const auto s, n.attr_ints("starts", {}));
    DLC_TRY(const auto e, n.attr_ints("ends", {}));
    starts = to_exprs(s);
    stops = to_exprs(e);
    DLC_TRY(axes, n.attr_ints("axes", std::vector<int64_t>{}));
  } else {
    if (n.has(3)) {
      DLC_TRY(const auto given, axes_input(n, 3, n.rank(0)));
      if (!constants(given)) return slice_at_run_time(n);
      axes = *constants(given);
    }
    DLC_TRY(starts, n.bounds(1, "starts"));
    DLC_TRY(stops, n.bounds(2, "ends"));
    if (n.has(4)) {
      DLC_TRY(steps, n.bounds(4, "steps"));
    }
  }
  if (axes.empty())
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), Expr(1));
  if (starts.size() != stops.size() || starts.size() != axes.size() || starts.size() != steps.size())
    return n.error("starts, ends, axes and steps differ in length");
  DLC_TRY(axes, checked_axes(n, std::move(axes), n.rank(0)));
  DLC_TRY(const ValueId y, slice_axes(n, n.in(0), axes, starts, stops, steps));
  return Values{y};
}

Result<Values> split(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const int64_t attr, n.attr_int("axis", 0));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  const Expr extent = n.type(0).shape[static_cast<size_t>(axis)];
  std::vector<Expr> sizes;
  if (n.has(1)) {
    DLC_TRY(sizes, n.sizes(1, "split"));
  } else if (n.has_attr("split")) {
    DLC_TRY(const auto list, n.attr_ints("split", {}));
    sizes = to_exprs(list);
  } else {
    DLC_TRY(const int64_t parts, n.attr_int("num_outputs", n.output_count()));
    if (parts < 1 || parts != n.output_count()) return n.error("'num_outputs' differs from the number of outputs");
    // Since opset 18 the last part may be smaller; before, parts are equal.
    const Expr part = n.opset() >= 18 ? ceil_div(extent, parts) : floor_div(extent, parts);
    sizes.assign(static_cast<size_t>(parts), part);
    if (n.opset() >= 18) sizes.back() = extent - part * (parts - 1);
  }
  if (static_cast<int>(sizes.size()) != n.output_count())
    return n.error(fmt::format("{} sizes are given for {} outputs", sizes.size(), n.output_count()));
  Expr sum(0);
  for (const Expr& s : sizes) {
    if (s.constant() && *s.constant() < 0) return n.error(fmt::format("a part of {} elements", to_string(s)));
    if (s.constant() && *s.constant() > NodeView::kAnyBound.hi) return n.error("a part is too large");
    sum = sum + s;
  }
  ValueId x = n.in(0);
  if (sum != extent) {
    if (sum.constant() && extent.constant())
      return n.error(fmt::format("the sizes sum to {}, the axis has {} elements", to_string(sum), to_string(extent)));
    // Only a run knows: a reshape holds if the extent is that sum.
    auto shape = n.type(0).shape;
    shape[static_cast<size_t>(axis)] = sum;
    DLC_TRY(x, n.emit("reshape", {x}, {{"shape", std::move(shape)}}));
  }
  Values results;
  Expr at(0);
  for (const Expr& s : sizes) {
    DLC_TRY(const ValueId y, slice_axes(n, x, {axis}, {at}, {at + s}, {Expr(1)}));
    results.push_back(y);
    at = at + s;
  }
  return results;
}

// Indices are integers of 32 or 64 bits.
Result<ValueId> indices(const NodeView& n, size_t input) {
  const DType type = n.type(input).dtype;
  if (type == kS64) return n.in(input);
  if (type != kS32) return n.error(fmt::format("the indices are {}, s32 or s64 is needed", to_string(type)));
  return n.emit("cast", {n.in(input)}, {{"to", kS64}});
}

template <const char* Record>
Result<Values> gather_like(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("needs two inputs");
  DLC_TRY(const int64_t attr, n.attr_int("axis", 0));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  Values in = n.inputs();
  DLC_TRY(in[1], indices(n, 1));
  return n.emit_all(Record, in, {{"axis", Expr(axis)}});
}
constexpr char kGather[] = "gather";
constexpr char kGatherElements[] = "gather_elements";

Result<Values> scatter_elements(const NodeView& n) {
  if (!n.has(0) || !n.has(1) || !n.has(2)) return n.error("needs three inputs");
  DLC_TRY(const int64_t attr, n.attr_int("axis", 0));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const std::string reduction, n.attr_string("reduction", "none"));
  Values in = n.inputs();
  DLC_TRY(in[1], indices(n, 1));
  return n.emit_all("scatter_elements", in, {{"axis", Expr(axis)}, {"reduction", reduction}});
}

Result<Values> gather_nd(const NodeView& n) {
  DLC_TRY(const int64_t batch, n.attr_int("batch_dims", 0));
  return n.emit_all("gather_nd", n.inputs(), {{"batch_dims", Expr(batch)}});
}

Result<Values> scatter_nd(const NodeView& n) {
  DLC_TRY(const std::string reduction, n.attr_string("reduction", "none"));
  return n.emit_all("scatter_nd", n.inputs(), {{"reduction", reduction}});
}

// numpy's broadcasting of a shape against a wanted one.
Result<Values> expand(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(auto wanted, n.sizes(1, "shape"));
  const auto in = n.type(0).shape;
  while (wanted.size() < in.size()) wanted.insert(wanted.begin(), Expr(1));
  const size_t lead = wanted.size() - in.size();
  std::optional<std::vector<Expr>> checked;  // where only a run knows whether a size fits
  for (size_t i = 0; i < in.size(); ++i) {
    Expr& w = wanted[lead + i];
    // A size that only the run knows is 1 or the extent, unless that is 1.
    if (!w.constant() && in[i].constant() && !in[i].is(1)) {
      if (!checked) checked = in;
      (*checked)[i] = select_nonneg(Expr(1) - w, select_nonneg(w - 1, in[i], w), w);
      w = in[i];
    }
    if (w.is(1)) w = in[i];
    if (!(w == in[i]) && !in[i].is(1) && w.constant() && in[i].constant())
      return n.error(fmt::format("cannot expand {} to {} in dim {}", to_string(in[i]), to_string(w), i));
  }
  ValueId x = n.in(0);
  if (checked) {  // a reshape to the size, or to the extent where that is 1: it holds if they are equal
    DLC_TRY(const ValueId y, n.emit("reshape", {x}, {{"shape", *checked}}));
    DLC_TRY(x, n.emit("reshape", {y}, {{"shape", in}}));
  }
  return n.emit_all("expand", {x}, {{"shape", wanted}});
}

Result<Values> tile(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const auto repeats, n.sizes(1, "repeats"));
  return n.emit_all("tile", {n.in(0)}, {{"repeats", repeats}});
}

// How many elements each dim gains at its beginning and at its end.
struct Margins {
  std::vector<Expr> lo, hi;
};

// Pads at input 1, of axes at input 3 that only the run knows.
Result<Margins> margins_at_run_time(const NodeView& n) {
  if (!n.has(1) || n.rank(1) != 1 || n.rank(3) != 1) return n.error("the pads and their axes must be lists");
  const auto both = n.type(1).shape[0];
  const Expr count = n.type(3).shape[0];
  if (both != count * 2)
    return n.error(fmt::format("pads has {} entries, {} are needed", to_string(both), to_string(count * 2)));
  DLC_TRY(const ValueId zeros, filled(n, n.rank(0), 0));
  Margins m;
  for (const int64_t end : {0, 1}) {
    DLC_TRY(const ValueId half,
            n.emit("slice", {n.in(1)},
                   {{"start", std::vector<Expr>{count * end}}, {"stop", std::vector<Expr>{count * (end + 1)}}}));
    DLC_TRY((end == 0 ? m.lo : m.hi), at_axes(n, 3, half, zeros, "pads"));
  }
  return m;
}

Result<Margins> margins(const NodeView& n) {
  const auto rank = static_cast<size_t>(n.rank(0));
  std::vector<int64_t> axes;
  if (n.has(3)) {
    DLC_TRY(const auto given, axes_input(n, 3, n.rank(0)));
    if (!constants(given)) return margins_at_run_time(n);
    DLC_TRY(axes, checked_axes(n, *constants(given), n.rank(0)));
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  std::vector<Expr> pads;
  if (n.has(1)) {
    DLC_TRY(pads, n.bounds(1, "pads"));
  } else {
    DLC_TRY(const auto list, n.attr_ints("pads", {}));
    pads = to_exprs(list);
  }
  if (pads.size() != 2 * axes.size())
    return n.error(fmt::format("pads has {} entries, {} are needed", pads.size(), 2 * axes.size()));
  Margins m{std::vector<Expr>(rank, Expr(0)), std::vector<Expr>(rank, Expr(0))};
  for (size_t i = 0; i < axes.size(); ++i) {
    m.lo[static_cast<size_t>(axes[i])] = pads[i];
    m.hi[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  return m;
}

// Windows of `size` elements along a dim, `step` apart: where they begin replaces the dim, what is in them comes last.
Result<Values> unfold(const NodeView& n) {
  DLC_TRY(const int64_t given, n.attr_int("dim", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, given, n.rank(0)));
  DLC_TRY(const int64_t size, n.attr_int("size", {}));
  DLC_TRY(const int64_t step, n.attr_int("step", 1));
  const auto extent = n.type(0).shape[static_cast<size_t>(axis)].constant();
  if (!extent || size < 1 || step < 1 || size > *extent)
    return n.error("the dim must be known and have room for a window");
  const int64_t count = (*extent - size) / step + 1;
  DLC_TRY(Tensor at, Tensor::make(kS64, {count, size}));
  for (int64_t w = 0; w < count; ++w)
    for (int64_t i = 0; i < size; ++i) at.set_int(w * size + i, w * step + i);
  DLC_TRY(const ValueId y, n.emit("gather", {n.in(0), n.add_constant(std::move(at))}, {{"axis", Expr(axis)}}));
  std::vector<Expr> perm;
  for (int64_t d = 0; d <= n.rank(0); ++d)
    if (d != axis + 1) perm.emplace_back(d);
  perm.emplace_back(axis + 1);
  return n.emit_all("transpose", {y}, {{"perm", perm}});
}

// Negative margins crop. What a mode repeats is what is left then, so that is cut out first.
Result<Values> pad(const NodeView& n) {
  DLC_TRY(const std::string mode, n.attr_string("mode", "constant"));
  DLC_TRY(Margins m, margins(n));
  ValueId value = n.in(2), x = n.in(0);
  if (!n.has(1)) {  // before opset 11
    DLC_TRY(const double v, n.attr_float("value", 0.0));
    DLC_TRY(value, n.scalar(n.type(0).dtype, v));
  } else if (value != kNoValue && !n.type(2).shape.empty()) {
    DLC_TRY(value, n.emit("reshape", {value}, {{"shape", std::vector<Expr>{}}}));
  }
  const auto negative = [](const Expr& e) { return !e.constant() || *e.constant() < 0; };
  if (mode != "constant" && (std::ranges::any_of(m.lo, negative) || std::ranges::any_of(m.hi, negative))) {
    std::vector<Expr> start, stop = n.type(0).shape;
    for (size_t i = 0; i < stop.size(); ++i) {
      start.push_back(max(0 - m.lo[i], 0));
      stop[i] = stop[i] + min(m.hi[i], 0);
      m.lo[i] = max(m.lo[i], 0);
      m.hi[i] = max(m.hi[i], 0);
    }
    DLC_TRY(x, n.emit("slice", {x}, {{"start", start}, {"stop", stop}}));
  }
  return n.emit_all("pad", {x, value}, {{"lo", m.lo}, {"hi", m.hi}, {"mode", mode}});
}

// A pad whose amounts are negative where the data are cropped. What is odd goes to the end, of padding and of data.
Result<Values> center_crop_pad(const NodeView& n) {
  const auto in = n.type(0).shape;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < in.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  DLC_TRY(axes, n.attr_ints("axes", axes));
  DLC_TRY(axes, checked_axes(n, std::move(axes), n.rank(0)));
  DLC_TRY(const auto wanted, n.sizes(1, "shape"));
  if (wanted.size() != axes.size()) return n.error("'shape' and 'axes' differ in length");
  std::vector<Expr> lo(in.size(), Expr(0)), hi = lo;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    const Expr more = wanted[i] - in[a];
    lo[a] = select_nonneg(more, floor_div(more, 2), 0 - floor_div(0 - more, 2));
    hi[a] = more - lo[a];
  }
  return n.emit_all("pad", {n.in(0), kNoValue}, {{"lo", lo}, {"hi", hi}, {"mode", "constant"}});
}

Result<Values> tensor_scatter(const NodeView& n) {
  DLC_TRY(const int64_t attr, n.attr_int("axis", -2));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  if (axis == 0) return n.error("axis 0 is the batch");
  DLC_TRY(const std::string mode, n.attr_string("mode", "linear"));
  if (mode != "linear" && mode != "circular") return n.error(fmt::format("attribute 'mode' is '{}'", mode));
  return n.emit_all("cache_update", {n.in(0), n.in(1), n.in(2)},
                    {{"axis", Expr(axis)}, {"ring", Expr(mode == "circular")}});
}

Result<Values> trilu(const NodeView& n) {
  DLC_TRY(const int64_t upper, n.attr_int("upper", 1));
  Expr k(0);
  if (n.has(1)) {
    DLC_TRY(const auto known, n.bounds(1, "k"));
    if (known.size() == 1) k = known[0];
  }
  return n.emit_all("trilu", {n.in(0)}, {{"k", k}, {"upper", Expr(upper != 0)}});
}

template <const char* Record>
Result<Values> cumulative(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const auto axis, axes_input(n, 1, n.rank(0)));
  if (axis.size() != 1) return n.error("the axis must be one integer");
  DLC_TRY(const int64_t reverse, n.attr_int("reverse", 0));
  DLC_TRY(const int64_t exclusive, n.attr_int("exclusive", 0));
  Attrs attrs{{"axis", axis[0]}, {"reverse", Expr(reverse != 0)}, {"exclusive", Expr(exclusive != 0)}};
  if (axis[0].constant()) return n.emit_all(Record, {n.in(0)}, std::move(attrs));
  DLC_TRY(const ValueId y, along_axis(n, Record, 1, axis[0], std::move(attrs)));
  return Values{y};
}
constexpr char kCumsum[] = "cumsum";
constexpr char kCumprod[] = "cumprod";

// The record wants time first and batch second.
Result<Values> reverse_sequence(const NodeView& n) {
  if (!n.has(0) || !n.has(1) || n.rank(0) < 2) return n.error("needs data of rank 2 or more, and lengths");
  DLC_TRY(const int64_t batch, n.attr_int("batch_axis", 1));
  DLC_TRY(const int64_t time, n.attr_int("time_axis", 0));
  if (batch < 0 || batch > 1 || time != 1 - batch) return n.error("batch_axis and time_axis must be 0 and 1");
  if (time == 0) return n.emit_all("reverse_sequence", {n.in(0), n.in(1)});
  std::vector<int64_t> perm{1, 0};
  for (int64_t i = 2; i < n.rank(0); ++i) perm.push_back(i);
  DLC_TRY(const ValueId first, n.emit("transpose", {n.in(0)}, {{"perm", to_exprs(perm)}}));
  DLC_TRY(const ValueId y, n.emit("reverse_sequence", {first, n.in(1)}));
  return n.emit_all("transpose", {y}, {{"perm", to_exprs(perm)}});
}

Result<Values> depth_to_space(const NodeView& n) {
  DLC_TRY(const int64_t block, n.attr_int("blocksize", {}));
  DLC_TRY(const std::string mode, n.attr_string("mode", "DCR"));
  return n.emit_all("depth_to_space", {n.in(0)}, {{"block", Expr(block)}, {"mode", mode}});
}

Result<Values> space_to_depth(const NodeView& n) {
  DLC_TRY(const int64_t block, n.attr_int("blocksize", {}));
  return n.emit_all("space_to_depth", {n.in(0)}, {{"block", Expr(block)}});
}

constexpr OpEntry kTable[] = {
    {"", "Reshape", reshape, "tt"},
    {"", "Flatten", flatten, "t"},
    {"", "Squeeze", squeeze, "t", "", 12},
    {"", "Squeeze", squeeze, "tT"},
    {"", "Unsqueeze", unsqueeze, "t", "", 12},
    {"", "Unsqueeze", unsqueeze, "tt"},
    {"", "Transpose", transpose, "t"},
    {"", "Concat", concat, "t*"},
    {"", "Slice", slice, "t", "", 9},
    {"", "Slice", slice, "tttTT"},
    {"", "Split", split, "t", "num_outputs", 12},
    {"", "Split", split, "tT", "num_outputs"},
    {"", "Gather", gather_like<kGather>, "tt"},
    {"", "GatherElements", gather_like<kGatherElements>, "tt"},
    {"", "GatherND", gather_nd, "tt"},
    {"com.microsoft", "GatherND", gather_nd, "tt"},
    {"", "Scatter", scatter_elements, "ttt", "", 10},
    {"", "ScatterElements", scatter_elements, "ttt"},
    {"", "ScatterND", scatter_nd, "ttt"},
    {"", "Expand", expand, "tt"},
    {"", "Tile", tile, "tt"},
    {"", "Pad", pad, "t", "", 10},
    {"", "Pad", pad, "ttTT"},
    {"com.microsoft", "Pad", pad, "ttT"},
    {"", "Trilu", trilu, "tT"},
    {"com.microsoft", "Trilu", trilu, "tT"},
    {"com.microsoft", "UnfoldTensor", unfold, "t"},
    {"com.microsoft", "ExpandDims", unsqueeze, "tt"},
    {"", "CenterCropPad", center_crop_pad, "tt"},
    {"", "TensorScatter", tensor_scatter, "ttT"},
    {"", "CumSum", cumulative<kCumsum>, "tt"},
    {"", "CumProd", cumulative<kCumprod>, "tt"},
    {"", "ReverseSequence", reverse_sequence, "tt"},
    {"", "DepthToSpace", depth_to_space, "t"},
    {"", "SpaceToDepth", space_to_depth, "t"},
};

}  // namespace

std::span<const OpEntry> movement_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
