// Axes that only a run knows. The rank of every value is known; the extents that follow from the axes are computed by
// records (core/ops/shape.ops), and a run binds them: squeezing is a reshape to them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "frontends/onnx/importer.h"

namespace dlc::onnx_frontend {

// The axes at `input`, each in 0 .. rank - 1: constants, or symbols that a run binds to axes of that range alone.
Result<std::vector<Expr>> axes_input(const NodeView& n, size_t input, int64_t rank);
// All of them, when they are known when compiling.
std::optional<std::vector<int64_t>> constants(std::span<const Expr> values);

// For axes that are not known, at `axes` among the node's inputs:
// the shape of input 0 without the dims at the axes, and with dims of 1 put there;
Result<std::vector<Expr>> shape_without(const NodeView& n, size_t axes);
Result<std::vector<Expr>> shape_with(const NodeView& n, size_t axes);
// for each dim of input 0 its element of the list `given` where it is an axis, and of `otherwise` where it is none;
Result<std::vector<Expr>> at_axes(const NodeView& n, size_t axes, ValueId given, ValueId otherwise,
                                  std::string_view what, Interval range = NodeView::kAnyBound);
// `record` over these axes of input 0 (its attribute `axes`): every dim becomes two, what stays and what is reduced,
// one of which is 1, so that every second one is reduced;
Result<ValueId> reduce_over(const NodeView& n, const char* record, size_t axes, bool keep);
// `record` along one axis of input 0 (its attribute `axis`), whose result has the same shape: on three dims. `axis` is
// what axes_input() makes of it.
Result<ValueId> along_axis(const NodeView& n, const char* record, size_t axes, const Expr& axis, Attrs attrs);

Result<ValueId> shape_of(const NodeView& n, ValueId x);
Result<ValueId> filled(const NodeView& n, int64_t count, int64_t value);  // a list of equal integers

}  // namespace dlc::onnx_frontend
