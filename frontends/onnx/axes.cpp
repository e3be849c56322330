#include "frontends/onnx/axes.h"

#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

constexpr Interval kSize{0, NodeView::kAnyBound.hi};

// of[index]
Expr pick(const Expr& index, std::span<const Expr> of) {
  Expr e = of.back();
  for (size_t i = of.size() - 1; i-- > 0;) e = select_nonneg(Expr(static_cast<int64_t>(i)) - index, of[i], e);
  return e;
}

Result<ValueId> reshaped(const NodeView& n, ValueId x, std::vector<Expr> shape) {
  return n.emit("reshape", {x}, {{"shape", std::move(shape)}});
}

// A list of s64, of which exporters make scalars and s32.
Result<ValueId> as_list(const NodeView& n, ValueId v) {
  if (n.graph().value(v).type.shape.empty()) {
    DLC_TRY(v, n.reshaped(v, {1}));
  }
  if (n.graph().value(v).type.dtype == kS64) return v;
  return n.emit("cast", {v}, {{"to", kS64}});
}

Result<std::vector<Expr>> computed_shape(const NodeView& n, const char* record, size_t axes) {
  DLC_TRY(const ValueId shape, shape_of(n, n.in(0)));
  DLC_TRY(const ValueId list, as_list(n, n.in(axes)));
  DLC_TRY(const ValueId y, n.emit(record, {shape, list}));
  return n.bounds_of(y, "shape", kSize);
}

}  // namespace

Result<std::vector<Expr>> axes_input(const NodeView& n, size_t input, int64_t rank) {
  DLC_TRY(auto axes, n.bounds(input, "axes", {-rank, rank - 1}));
  for (Expr& a : axes) {
    if (const auto c = a.constant()) {
      DLC_TRY(a, checked_axis(n, *c, rank));
    } else {
      a = select_nonneg(a, a, a + rank);
    }
  }
  return axes;
}

std::optional<std::vector<int64_t>> constants(std::span<const Expr> values) {
  std::vector<int64_t> out;
  for (const Expr& e : values) {
    if (!e.constant()) return std::nullopt;
    out.push_back(*e.constant());
  }
  return out;
}

Result<std::vector<Expr>> shape_without(const NodeView& n, size_t axes) {
  return computed_shape(n, "squeezed_shape", axes);
}

Result<std::vector<Expr>> shape_with(const NodeView& n, size_t axes) {
  return computed_shape(n, "unsqueezed_shape", axes);
}

Result<std::vector<Expr>> at_axes(const NodeView& n, size_t axes, ValueId given, ValueId otherwise,
                                  std::string_view what, Interval range) {
  DLC_TRY(const ValueId list, as_list(n, n.in(axes)));
  DLC_TRY(const ValueId values, as_list(n, given));
  DLC_TRY(const ValueId y, n.emit("at_axes", {values, list, otherwise}));
  return n.bounds_of(y, what, range);
}

Result<ValueId> reduce_over(const NodeView& n, const char* record, size_t axes, bool keep) {
  const std::vector<Expr> shape = n.type(0).shape;
  DLC_TRY(const ValueId sizes, shape_of(n, n.in(0)));
  DLC_TRY(const ValueId list, as_list(n, n.in(axes)));
  const auto count = n.graph().value(list).type.shape[0].constant();
  if (!count) return n.error("the number of axes must be known when compiling");
  DLC_TRY(const ValueId ones, filled(n, *count, 1));
  DLC_TRY(const auto kept, at_axes(n, axes, ones, sizes, "kept", kSize));
  std::vector<Expr> pairs, reduced;
  for (size_t i = 0; i < shape.size(); ++i) {
    pairs.push_back(kept[i]);
    pairs.push_back(floor_div(shape[i], kept[i]));
    reduced.emplace_back(static_cast<int64_t>(2 * i + 1));
  }
  DLC_TRY(const ValueId view, reshaped(n, n.in(0), std::move(pairs)));
  DLC_TRY(const ValueId y, n.emit(record, {view}, {{"axes", reduced}, {"keepdims", Expr(0)}}));
  if (keep) return y;
  DLC_TRY(auto rest, shape_without(n, axes));
  return reshaped(n, y, std::move(rest));
}

Result<ValueId> along_axis(const NodeView& n, const char* record, size_t axes, const Expr& axis, Attrs attrs) {
  const std::vector<Expr> shape = n.type(0).shape;
  if (std::ranges::any_of(shape, [](const Expr& d) { return d.is(0); })) return n.in(0);  // no elements
  if (shape.size() == 1) {  // the axis decides nothing; that it is one, a run finds out by taking a 1 there
    DLC_TRY(const ValueId one, filled(n, 1, 1));
    DLC_TRY(const auto lead, at_axes(n, axes, one, one, "axis", kSize));
    DLC_TRY(const ValueId view, reshaped(n, n.in(0), {lead[0], shape[0]}));
    attrs["axis"] = Expr(1);
    DLC_TRY(const ValueId y, n.emit(record, {view}, std::move(attrs)));
    return reshaped(n, y, shape);
  }
  std::vector<Expr> before, after;
  for (size_t i = 0; i < shape.size(); ++i) {
    Expr left(1), right(1);
    for (size_t j = 0; j < shape.size(); ++j)
      if (j != i) (j < i ? left : right) = (j < i ? left : right) * shape[j];
    before.push_back(left);
    after.push_back(right);
  }
  DLC_TRY(const ValueId view, reshaped(n, n.in(0), {pick(axis, before), pick(axis, shape), pick(axis, after)}));
  attrs["axis"] = Expr(1);
  DLC_TRY(const ValueId y, n.emit(record, {view}, std::move(attrs)));
  return reshaped(n, y, shape);
}

Result<ValueId> shape_of(const NodeView& n, ValueId x) {
  const auto rank = static_cast<int64_t>(n.graph().value(x).type.shape.size());
  return n.emit("shape", {x}, {{"start", Expr(0)}, {"end", Expr(rank)}});
}

Result<ValueId> filled(const NodeView& n, int64_t count, int64_t value) {
  DLC_TRY(Tensor t, Tensor::make(kS64, {count}));
  for (int64_t i = 0; i < count; ++i) t.set_int(i, value);
  return n.add_constant(std::move(t));
}

}  // namespace dlc::onnx_frontend
